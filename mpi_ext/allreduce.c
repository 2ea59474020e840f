/* SPDX-License-Identifier: BSD-3-Clause */
/* The collective calls: look at the arguments, find the context, run the call, raise what went wrong.
 * A wrong argument does not return at once: the rank takes its verdict to the agreement, where all learn
 * of it. */

#include "mpi_ext/attribute.h"
#include "mpi_ext/error.h"
#include "mpi_ext/request.h"
#include "mpi_ext/result.h"
#include "mpi_ext/types.h"
#include "plan/progress.h"

/* Values of SAR_FIELD_CALL. */
enum { CALL_DENSE, CALL_COO };

/* Values of verdict.value for buffers. */
enum { BUFFER_NULL, BUFFER_SHARED, BUFFER_MISPLACED };

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
    if (count < 0 || (type.extent > 0 && (uint64_t)count > (uint64_t)INT64_MAX / type.extent))
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

static int run(MPI_Comm comm, const char *function, struct sar_call *call)
{
    struct sar_context *context;
    int code = sar_attribute_need(comm, function, &context);
    if (code != MPI_SUCCESS)
        return code;
    sar_call_run(context, call);
    return sar_raise(comm, function, &call->verdict, NULL);
}

static void look_at_buffers(struct sar_call *call, const void *sendbuf, void *recvbuf)
{
    call->in_place = sendbuf == MPI_IN_PLACE;
    if (call->shape.count == 0)
        return;
    if (recvbuf == NULL)
        blame(call, SAR_BAD_RECVBUF, BUFFER_NULL);
    if (recvbuf == MPI_IN_PLACE)
        blame(call, SAR_BAD_RECVBUF, BUFFER_MISPLACED);
    if (sendbuf == NULL)
        blame(call, SAR_BAD_SENDBUF, BUFFER_NULL);
    if (sendbuf == recvbuf)
        blame(call, SAR_BAD_SENDBUF, BUFFER_SHARED);
}

static void look_at_dense(struct sar_call *call, const void *sendbuf, void *recvbuf, MPI_Count count,
                          MPI_Datatype datatype, MPI_Op op)
{
    struct sar_datatype type = sar_datatype_look(datatype);
    struct sar_operation operation = sar_operation_look(op);
    *call = (struct sar_call){ .dense_face = true, .field[SAR_FIELD_CALL] = CALL_DENSE };
    look_at_vector(call, count, type, operation);
    look_at_buffers(call, sendbuf, recvbuf);
    call->field[SAR_FIELD_IN_PLACE] = call->in_place;
    call->shape.absent_is_zero = operation.native && operation.op != SAR_SUM;
    call->buffers = (struct sar_dense_call){ sendbuf, recvbuf, call->shape.count, datatype, op };
    if (call->native) {
        call->buffers.count *= type.row;
        call->buffers.datatype = type.basic;
    }
}

int PMPIX_Sparse_allreduce(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype,
                           MPI_Op op, MPI_Comm comm)
{
    struct sar_call call;
    look_at_dense(&call, sendbuf, recvbuf, count, datatype, op);
    return run(comm, "MPIX_Sparse_allreduce", &call);
}

int PMPIX_Isparse_allreduce(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype,
                            MPI_Op op, MPI_Comm comm, MPI_Request *request)
{
    struct sar_call call;
    look_at_dense(&call, sendbuf, recvbuf, count, datatype, op);
    return sar_request_post(comm, "MPIX_Isparse_allreduce", &call, NULL, request);
}

static void look_at_coordinates(struct sar_call *call, MPI_Count nnz, MPI_Datatype indextype)
{
    bool known = sar_index_type_look(indextype, &call->coo.type);
    if (nnz < 0)
        blame(call, SAR_BAD_NNZ, (int64_t)nnz);
    if (!known || call->shape.count > sar_index_type_limit(call->coo.type))
        blame(call, SAR_BAD_INDEXTYPE,
              indextype == MPI_DATATYPE_NULL ? 0 : sar_datatype_look(indextype).number);
    if (nnz > 0 && call->coo.indices == NULL)
        blame(call, SAR_BAD_INDICES, BUFFER_NULL);
    if (nnz > 0 && call->coo.values == NULL)
        blame(call, SAR_BAD_VALUES, BUFFER_NULL);
    call->coo.nnz = (size_t)(nnz > 0 ? nnz : 0);
}

static void look_at_coo(struct sar_call *call, const void *indices, const void *values, MPI_Count nnz,
                        MPI_Datatype indextype, MPI_Count count, MPI_Datatype datatype, MPI_Op op)
{
    struct sar_datatype type = sar_datatype_look(datatype);
    struct sar_operation operation = sar_operation_look(op);
    *call = (struct sar_call){ .coo = { .indices = indices, .values = values },
                               .field[SAR_FIELD_CALL] = CALL_COO };
    look_at_vector(call, count, type, operation);
    look_at_coordinates(call, nnz, indextype);
    if (type.valid && !type.native)
        blame(call, SAR_BAD_DATATYPE, type.number);
    if (operation.valid && !operation.native)
        blame(call, SAR_BAD_OP, operation.number);
    call->buffers = (struct sar_dense_call){ NULL, NULL, call->shape.count * type.row, type.basic, op };
}

int PMPIX_Sparse_allreduce_coo(const void *indices, const void *values, MPI_Count nnz, MPI_Datatype indextype,
                               MPI_Count count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                               MPIX_Sparse_result *result)
{
    struct sar_call call;
    struct sar_into into;
    look_at_coo(&call, indices, values, nnz, indextype, count, datatype, op);
    sar_result_open(&into, result, &call);
    return sar_result_close(&into, &call, run(comm, "MPIX_Sparse_allreduce_coo", &call));
}

int PMPIX_Isparse_allreduce_coo(const void *indices, const void *values, MPI_Count nnz,
                                MPI_Datatype indextype, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                                MPI_Comm comm, MPIX_Sparse_result *result, MPI_Request *request)
{
    struct sar_call call;
    look_at_coo(&call, indices, values, nnz, indextype, count, datatype, op);
    return sar_request_post(comm, "MPIX_Isparse_allreduce_coo", &call, &result, request);
}

#pragma weak MPIX_Sparse_allreduce = PMPIX_Sparse_allreduce
#pragma weak MPIX_Isparse_allreduce = PMPIX_Isparse_allreduce
#pragma weak MPIX_Sparse_allreduce_coo = PMPIX_Sparse_allreduce_coo
#pragma weak MPIX_Isparse_allreduce_coo = PMPIX_Isparse_allreduce_coo
