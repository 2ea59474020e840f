/* SPDX-License-Identifier: BSD-3-Clause */
#include "mpi_ext/arguments.h"

#include <mpix_sparse.h>

#include "mpi_ext/error.h"
#include "mpi_ext/memory.h"
#include "mpi_ext/types.h"

/* In vectors, integers of 2 bytes are never floats where an op is for integers alone. */
static bool is_for_halves(enum sar_op op)
{
    return sar_kernels_of(SAR_BF16, op) != NULL;
}

/* Count, datatype and op, which both calls have. */
static void look_at_vector(struct sar_call *call, MPI_Count count, struct sar_datatype type,
                           struct sar_operation op)
{
    call->field[SAR_FIELD_COUNT] = (int64_t)count;
    call->field[SAR_FIELD_DATATYPE] = type.valid ? type.number : 0;
    call->field[SAR_FIELD_OP] = op.valid ? op.number : 0;
    bool valid = type.valid && op.valid;
    call->native =
        valid && (call->dense_face ? sar_pair_is_for_vectors(&type, &op) : sar_pair_is_defined(&type, &op));
    call->narrow = valid && type.narrow && op.native && (!call->dense_face || is_for_halves(op.op));
    int64_t bytes;
    if (count < 0 || __builtin_mul_overflow(count, type.extent, &bytes))
        sar_blame(&call->verdict, SAR_BAD_COUNT, (int64_t)count);
    if (!type.valid)
        sar_blame(&call->verdict, SAR_BAD_DATATYPE, 0);
    if (!op.valid)
        sar_blame(&call->verdict, SAR_BAD_OP, 0);
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
    if (array == NULL)
        sar_blame(verdict, status, SAR_FAULT_NULL);
    else if (array == MPI_IN_PLACE)
        sar_blame(verdict, status, SAR_FAULT_MISPLACED);
    else if (array == MPIX_SPARSE_STRIDED)
        sar_blame(verdict, status, SAR_FAULT_STRIDED);
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
        sar_blame(&call->verdict, SAR_BAD_SENDBUF, SAR_FAULT_SHARED);
    sar_memory_look(call, recvbuf, SAR_BAD_RECVBUF);
    sar_memory_look_at(&call->verdict, &call->memory, sendbuf, SAR_BAD_SENDBUF);
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
        sar_blame(&call->verdict, SAR_UNDEFINED_OP, operation.number);
    call->shape.absent_is_zero = !sar_op_keeps(operation.op); /* -0.0 is looked for */
    call->buffers = (struct sar_dense_call){ sendbuf, recvbuf, call->shape.count, datatype, op };
    if (operation.number > 0 && type.kind != SAR_KIND_DERIVED) {
        call->buffers.count *= type.row;
        call->buffers.datatype = type.basic;
    }
}

void sar_look_at_index_type(struct sar_call *call, MPI_Datatype indextype, enum sar_index_type *type)
{
    bool known = sar_index_type_look(indextype, type);
    if (!known || call->shape.count > sar_index_type_limit(*type))
        sar_blame(&call->verdict, SAR_BAD_INDEXTYPE,
                  indextype == MPI_DATATYPE_NULL ? 0 : sar_datatype_look(indextype).number);
}

void sar_look_at_coo(struct sar_call *call, MPI_Datatype indextype, MPI_Count count, MPI_Datatype datatype,
                     MPI_Op op)
{
    struct sar_datatype type = sar_datatype_look(datatype);
    struct sar_operation operation = sar_operation_look(op);
    *call = (struct sar_call){ .field[SAR_FIELD_CALL] = SAR_CALL_COO };
    look_at_vector(call, count, type, operation);
    sar_look_at_index_type(call, indextype, &call->coo.type);
    if (type.valid && !type.native)
        sar_blame(&call->verdict, SAR_BAD_DATATYPE, type.number);
    if (operation.valid && !operation.native)
        sar_blame(&call->verdict, SAR_BAD_OP, operation.number);
    if (type.valid && operation.valid && !call->native)
        sar_blame(&call->verdict, SAR_UNDEFINED_OP, operation.number);
    call->buffers = (struct sar_dense_call){ NULL, NULL, call->shape.count * type.row, type.basic, op };
}

void sar_look_at_elements(struct sar_call *call, const void *indices, const void *values, MPI_Count nnz)
{
    call->coo.indices = indices;
    call->coo.values = values;
    call->coo.nnz = (size_t)(nnz > 0 ? nnz : 0);
    if (nnz < 0)
        sar_blame(&call->verdict, SAR_BAD_NNZ, (int64_t)nnz);
    if (nnz > 0) {
        sar_look_at_array(&call->verdict, indices, SAR_BAD_INDICES);
        sar_look_at_array(&call->verdict, values, SAR_BAD_VALUES);
    }
    sar_memory_look(call, indices != NULL ? indices : values, SAR_BAD_INDICES);
    sar_memory_look_at(&call->verdict, &call->memory, values, SAR_BAD_VALUES);
}
