/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks the arguments of public functions and fills struct sar_call_args. */

#include "mpi_ext/arguments.h"

#include <mpix_sparse.h>

#include "mpi_ext/error.h"
#include "mpi_ext/user_buffers.h"
#include "mpi_ext/datatypes.h"

/* Check count, datatype and op, of dense and of coordinate calls. */
static void check_vector(struct sar_call_args *call, MPI_Count count, struct sar_datatype type,
                         struct sar_operation op)
{
    call->sig.field[SAR_AGREE_COUNT] = (int64_t)count;
    call->sig.field[SAR_AGREE_DATATYPE] = type.valid ? type.id : 0;
    call->sig.field[SAR_AGREE_OP] = op.valid ? op.id : 0;
    bool valid = type.valid && op.valid;
    call->sig.native = valid && (call->sig.dense_face ? sar_datatype_op_exact(&type, &op)
                                                      : sar_datatype_op_defined(&type, &op));
    /* In dense buffers, 2-byte integers are never floats for ops that floats do not have. */
    call->sig.int16_as_float = valid && type.is_int16 && op.native &&
                               (!call->sig.dense_face || sar_op_kernels_of(SAR_BF16, op.op) != NULL);
    int64_t bytes;
    if (count < 0 || __builtin_mul_overflow(count, type.extent, &bytes))
        sar_error_set(&call->result.error, SAR_BAD_COUNT, (int64_t)count);
    if (!type.valid)
        sar_error_set(&call->result.error, SAR_BAD_DATATYPE, 0);
    if (!op.valid)
        sar_error_set(&call->result.error, SAR_BAD_OP, 0);
    call->sig.desc = (struct sar_vec_desc){ .count = (uint64_t)(count > 0 ? count : 0),
                                            .row_len = type.row_len,
                                            .element_size = type.extent,
                                            .dtype = type.dtype,
                                            .op = op.op };
    call->sig.desc.index_size = sar_index_size(call->sig.desc.count);
    if (call->sig.native)
        call->sig.desc.kernels = sar_op_kernels_of(type.dtype, op.op);
}

void sar_args_check_array(struct sar_error *error, const void *array, enum sar_status status)
{
    if (array == NULL)
        sar_error_set(error, status, SAR_FAULT_NULL);
    else if (array == MPI_IN_PLACE)
        sar_error_set(error, status, SAR_FAULT_IN_PLACE);
    else if (array == MPIX_SPARSE_STRIDED)
        sar_error_set(error, status, SAR_FAULT_STRIDED);
}

static void check_buffers(struct sar_call_args *call, const void *sendbuf, void *recvbuf)
{
    call->sig.in_place = sendbuf == MPI_IN_PLACE;
    if (call->sig.desc.count == 0)
        return;
    sar_args_check_array(&call->result.error, recvbuf, SAR_BAD_RECVBUF);
    if (!call->sig.in_place)
        sar_args_check_array(&call->result.error, sendbuf, SAR_BAD_SENDBUF);
    if (sendbuf == recvbuf)
        sar_error_set(&call->result.error, SAR_BAD_SENDBUF, SAR_FAULT_NOT_IN_PLACE);
    sar_user_buffers_locate(call, recvbuf, SAR_BAD_RECVBUF);
    sar_user_buffers_check(&call->result.error, &call->device.memory, sendbuf, SAR_BAD_SENDBUF);
}

void sar_args_check_dense(struct sar_call_args *call, const void *sendbuf, void *recvbuf, MPI_Count count,
                          MPI_Datatype datatype, MPI_Op op)
{
    struct sar_datatype type = sar_datatype_classify(datatype);
    struct sar_operation operation = sar_operation_classify(op);
    *call =
        (struct sar_call_args){ .sig.dense_face = true, .sig.field[SAR_AGREE_FUNCTION] = SAR_FUNCTION_DENSE };
    check_vector(call, count, type, operation);
    check_buffers(call, sendbuf, recvbuf);
    call->sig.field[SAR_AGREE_IN_PLACE] = call->sig.in_place;
    if (type.valid && (operation.kinds & type.kind) == 0)
        sar_error_set(&call->result.error, SAR_UNDEFINED_OP, operation.id);
    /* In sums zero is neutral except for -0.0, which the call detects in its input. */
    call->sig.desc.absent_is_zero = !sar_op_zero_is_neutral(operation.op);
    call->data.buffers = (struct sar_dense_args){ sendbuf, recvbuf, call->sig.desc.count, datatype, op, 0 };
    if (operation.id > 0 && type.kind != SAR_KIND_DERIVED) {
        call->data.buffers.count *= type.row_len;
        call->data.buffers.datatype = type.basic;
    }
}

/* Set after an error of the count: what is wrong with the product is recvcount. */
void sar_args_check_reduce_scatter_dense(struct sar_call_args *call, const void *sendbuf, void *recvbuf,
                                         MPI_Count recvcount, MPI_Datatype datatype, MPI_Op op, int parts)
{
    int64_t count;
    struct sar_error *error = &call->result.error;
    bool fits = !__builtin_mul_overflow((int64_t)recvcount, parts, &count);
    sar_args_check_dense(call, sendbuf, recvbuf, (MPI_Count)(fits ? count : -1), datatype, op);
    if (error->status == SAR_BAD_COUNT)
        *error = (struct sar_error){ .status = SAR_BAD_RECVCOUNT, .value = (int64_t)recvcount };
    call->sig.collective = SAR_REDUCE_SCATTER;
    call->sig.block = (uint64_t)(recvcount > 0 ? recvcount : 1);
    call->sig.field[SAR_AGREE_FUNCTION] = SAR_FUNCTION_REDUCE_SCATTER;
    call->sig.field[SAR_AGREE_COUNT] = (int64_t)recvcount;
    call->data.buffers.count /= (uint64_t)parts;
    call->data.buffers.parts = (uint32_t)parts;
}

void sar_args_check_index_type(struct sar_call_args *call, MPI_Datatype indextype, enum sar_index_type *type)
{
    bool known = sar_index_type_classify(indextype, type);
    if (!known || call->sig.desc.count > sar_index_type_limit(*type))
        sar_error_set(&call->result.error, SAR_BAD_INDEXTYPE,
                      indextype == MPI_DATATYPE_NULL ? 0 : sar_datatype_classify(indextype).id);
}

void sar_args_check_coo(struct sar_call_args *call, MPI_Datatype indextype, MPI_Count count,
                        MPI_Datatype datatype, MPI_Op op)
{
    struct sar_datatype type = sar_datatype_classify(datatype);
    struct sar_operation operation = sar_operation_classify(op);
    *call = (struct sar_call_args){ .sig.field[SAR_AGREE_FUNCTION] = SAR_FUNCTION_COO };
    check_vector(call, count, type, operation);
    sar_args_check_index_type(call, indextype, &call->data.coo.type);
    if (type.valid && !type.native)
        sar_error_set(&call->result.error, SAR_BAD_DATATYPE, sar_datatype_fault(datatype, &type));
    if (operation.valid && !operation.native)
        sar_error_set(&call->result.error, SAR_BAD_OP, operation.id);
    if (type.valid && operation.valid && !call->sig.native)
        sar_error_set(&call->result.error, SAR_UNDEFINED_OP, operation.id);
    call->data.buffers =
        (struct sar_dense_args){ NULL, NULL, call->sig.desc.count * type.row_len, type.basic, op, 0 };
}

void sar_args_check_reduce_scatter(struct sar_call_args *call, MPI_Count block, int parts)
{
    uint64_t most = call->sig.desc.count / (uint64_t)parts + (call->sig.desc.count % (uint64_t)parts != 0);
    call->sig.collective = SAR_REDUCE_SCATTER;
    call->sig.block = (uint64_t)(block > 0 ? block : 1);
    call->sig.field[SAR_AGREE_FUNCTION] = SAR_FUNCTION_REDUCE_SCATTER_COO;
    call->sig.field[SAR_AGREE_BLOCK] = (int64_t)block;
    if (block <= 0)
        sar_error_set(&call->result.error, SAR_BAD_BLOCK, (int64_t)block);
    else if ((uint64_t)block > UINT32_MAX && (uint64_t)block < most)
        sar_error_set(&call->result.error, SAR_LONG_BLOCK, (int64_t)block);
}

/* Values are copied as unsigned integers of their size: operations on floats may change the bits of NaNs. */
void sar_args_check_allgather(struct sar_call_args *call, MPI_Datatype indextype, MPI_Count count,
                              MPI_Datatype datatype)
{
    static const enum sar_dtype words[] = {
        [1] = SAR_UINT8, [2] = SAR_UINT16, [4] = SAR_UINT32, [8] = SAR_UINT64
    };
    struct sar_datatype type = sar_datatype_classify(datatype);
    struct sar_operation none = { .valid = true, .op = SAR_BOR };
    *call = (struct sar_call_args){ .sig.field[SAR_AGREE_FUNCTION] = SAR_FUNCTION_ALLGATHER_COO };
    check_vector(call, count, type, none);
    sar_args_check_index_type(call, indextype, &call->data.coo.type);
    call->sig.collective = SAR_ALLGATHER;
    call->sig.int16_as_float = false;
    call->sig.native = type.valid && type.native;
    if (type.valid && !type.native)
        sar_error_set(&call->result.error, SAR_BAD_DATATYPE, sar_datatype_fault(datatype, &type));
    if (!call->sig.native)
        return;
    call->sig.desc.dtype = words[type.extent / type.row_len];
    call->sig.desc.kernels = sar_op_kernels_of(call->sig.desc.dtype, SAR_BOR);
}

void sar_args_check_elements(struct sar_call_args *call, const void *indices, const void *values,
                             MPI_Count nnz)
{
    call->data.coo.indices = indices;
    call->data.coo.values = values;
    call->data.coo.nnz = (size_t)(nnz > 0 ? nnz : 0);
    if (nnz < 0)
        sar_error_set(&call->result.error, SAR_BAD_NNZ, (int64_t)nnz);
    if (nnz > 0) {
        sar_args_check_array(&call->result.error, indices, SAR_BAD_INDICES);
        sar_args_check_array(&call->result.error, values, SAR_BAD_VALUES);
    }
    sar_user_buffers_locate(call, indices != NULL ? indices : values, SAR_BAD_INDICES);
    sar_user_buffers_check(&call->result.error, &call->device.memory, values, SAR_BAD_VALUES);
}
