/* SPDX-License-Identifier: BSD-3-Clause */
#include "mpi_ext/arguments.h"

#include <mpix_sparse.h>

#include "device/ordinary.h"
#include "mpi_ext/alive.h"
#include "mpi_ext/error.h"
#include "mpi_ext/memory.h"
#include "mpi_ext/types.h"

static void blame(struct sar_call *call, enum sar_status status, int64_t value)
{
    if (call->verdict.status == SAR_OK)
        call->verdict = (struct sar_verdict){ .status = status, .value = value };
}

/* Count, datatype and op, which both calls have. */
static void look_at_vector(struct sar_call *call, MPI_Count count, struct sar_datatype type,
                           struct sar_operation op)
{
    call->field[SAR_FIELD_COUNT] = (int64_t)count;
    call->field[SAR_FIELD_DATATYPE] = type.valid ? type.number : 0;
    call->field[SAR_FIELD_OP] = op.valid ? op.number : 0;
    call->native = type.valid && type.native && op.valid && op.native;
    call->narrow = type.valid && type.narrow && op.valid && op.native;
    int64_t bytes;
    if (count < 0 || __builtin_mul_overflow(count, type.extent, &bytes))
        blame(call, SAR_BAD_COUNT, (int64_t)count);
    if (!type.valid)
        blame(call, SAR_BAD_DATATYPE, 0);
    if (!op.valid)
        blame(call, SAR_BAD_OP, 0);
    call->shape = (struct sar_shape){ .count = (uint64_t)(count > 0 ? count : 0),
                                      .row = type.row,
                                      .element_size = type.extent,
                                      .base = type.base,
                                      .op = op.op };
    call->shape.index_size = sar_index_size(call->shape.count);
    if (call->native)
        call->shape.kernels = sar_kernels_of(type.base, op.op);
}

void sar_look_at_array(struct sar_verdict *verdict, const void *array, enum sar_status status)
{
    bool usable = array != NULL && array != MPI_IN_PLACE && array != MPIX_SPARSE_STRIDED;
    if (usable || verdict->status != SAR_OK)
        return;
    *verdict = (struct sar_verdict){ .status = status,
                                     .value = array == NULL           ? SAR_FAULT_NULL
                                              : array == MPI_IN_PLACE ? SAR_FAULT_MISPLACED
                                                                      : SAR_FAULT_STRIDED };
}

static void look_at_buffers(struct sar_call *call, const void *sendbuf, void *recvbuf)
{
    call->in_place = sendbuf == MPI_IN_PLACE;
    if (call->shape.count == 0)
        return;
    sar_look_at_array(&call->verdict, recvbuf, SAR_BAD_RECVBUF);
    if (!call->in_place)
        sar_look_at_array(&call->verdict, sendbuf, SAR_BAD_SENDBUF);
    if (sendbuf == recvbuf)
        blame(call, SAR_BAD_SENDBUF, SAR_FAULT_SHARED);
    sar_memory_look(call, recvbuf, sendbuf, SAR_BAD_SENDBUF);
}

void sar_look_at_dense(struct sar_call *call, const void *sendbuf, void *recvbuf, MPI_Count count,
                       MPI_Datatype datatype, MPI_Op op)
{
    struct sar_datatype type = sar_datatype_look(datatype);
    struct sar_operation operation = sar_operation_look(op);
    *call = (struct sar_call){ .dense_face = true, .field[SAR_FIELD_CALL] = SAR_CALL_DENSE };
    look_at_vector(call, count, type, operation);
    look_at_buffers(call, sendbuf, recvbuf);
    call->field[SAR_FIELD_IN_PLACE] = call->in_place;
    if (type.valid && (operation.kinds & type.kind) == 0)
        blame(call, SAR_UNDEFINED_OP, operation.number);
    call->shape.absent_is_zero = operation.native && operation.op != SAR_SUM;
    call->buffers = (struct sar_dense_call){ sendbuf, recvbuf, call->shape.count, datatype, op };
    if (operation.number > 0 && type.kind != SAR_KIND_DERIVED) {
        call->buffers.count *= type.row;
        call->buffers.datatype = type.basic;
    }
}

/* The last call of a thread that sar_look_keep was told of, if its type and op are MPI's own: their handles
 * are never another's. */
static _Thread_local struct {
    struct sar_call call;
    bool holds;
    bool at_home; /* its buffers are where no device's memory ever is */
} last;

static bool is_well(const struct sar_call *call)
{
    return call->verdict.status == SAR_OK && call->memory.accelerator == NULL;
}

static bool is_at_home(const struct sar_call *call)
{
    const struct sar_dense_call *b = &call->buffers;
    return sar_memory_is_ordinary(b->recvbuf) && (call->in_place || sar_memory_is_ordinary(b->sendbuf));
}

void sar_look_keep(const struct sar_call *call)
{
    bool own = sar_predefined_find(call->buffers.datatype) != NULL && call->field[SAR_FIELD_OP] > 0;
    last.holds = own && call->shape.row == 1 && !call->narrow && is_well(call);
    if (!last.holds)
        return;
    last.call = *call;
    last.at_home = is_at_home(call);
}

static bool look_at_others(const void *sendbuf, void *recvbuf)
{
    last.call.buffers.sendbuf = sendbuf;
    last.call.buffers.recvbuf = recvbuf;
    look_at_buffers(&last.call, sendbuf, recvbuf);
    last.holds = is_well(&last.call);
    last.at_home = last.holds && is_at_home(&last.call);
    return last.holds;
}

const struct sar_call *sar_look_again(const void *sendbuf, void *recvbuf, MPI_Count count,
                                      MPI_Datatype datatype, MPI_Op op)
{
    const struct sar_dense_call *b = &last.call.buffers;
    bool alike = count == last.call.field[SAR_FIELD_COUNT] && datatype == b->datatype && op == b->op &&
                 last.call.in_place == (sendbuf == MPI_IN_PLACE);
    if (!last.holds || !alike || sar_is_forked())
        return NULL;
    bool same = last.at_home && sendbuf == b->sendbuf && recvbuf == b->recvbuf;
    return same || look_at_others(sendbuf, recvbuf) ? &last.call : NULL;
}

static void look_at_index_type(struct sar_call *call, MPI_Datatype indextype)
{
    bool known = sar_index_type_look(indextype, &call->coo.type);
    if (!known || call->shape.count > sar_index_type_limit(call->coo.type))
        blame(call, SAR_BAD_INDEXTYPE,
              indextype == MPI_DATATYPE_NULL ? 0 : sar_datatype_look(indextype).number);
}

void sar_look_at_elements(struct sar_call *call, const void *indices, const void *values, MPI_Count nnz)
{
    call->coo.indices = indices;
    call->coo.values = values;
    call->coo.nnz = (size_t)(nnz > 0 ? nnz : 0);
    if (nnz < 0)
        blame(call, SAR_BAD_NNZ, (int64_t)nnz);
    if (nnz <= 0)
        return;
    sar_look_at_array(&call->verdict, indices, SAR_BAD_INDICES);
    sar_look_at_array(&call->verdict, values, SAR_BAD_VALUES);
    sar_memory_look(call, indices, values, SAR_BAD_VALUES);
}

void sar_look_at_coo(struct sar_call *call, const void *indices, const void *values, MPI_Count nnz,
                     MPI_Datatype indextype, MPI_Count count, MPI_Datatype datatype, MPI_Op op)
{
    struct sar_datatype type = sar_datatype_look(datatype);
    struct sar_operation operation = sar_operation_look(op);
    *call = (struct sar_call){ .field[SAR_FIELD_CALL] = SAR_CALL_COO };
    look_at_vector(call, count, type, operation);
    look_at_index_type(call, indextype);
    sar_look_at_elements(call, indices, values, nnz);
    if (type.valid && !type.native && !type.narrow)
        blame(call, SAR_BAD_DATATYPE, type.number);
    if (operation.valid && !operation.native)
        blame(call, SAR_BAD_OP, operation.number);
    call->buffers = (struct sar_dense_call){ NULL, NULL, call->shape.count * type.row, type.basic, op };
}
