/* SPDX-License-Identifier: BSD-3-Clause */
/* The broadcasts: check the arguments, get the comm_state, run the call, raise its error. An invalid argument
 * does not return at once: the agreement of the call reports the error on all ranks. */

#include "core/bcast.h"

#include <mpix_sparse.h>

#include "core/progress.h"
#include "mpi_ext/arguments.h"
#include "mpi_ext/attribute.h"
#include "mpi_ext/datatypes.h"
#include "mpi_ext/error.h"
#include "mpi_ext/result.h"
#include "mpi_ext/user_buffers.h"
#include "vector/replace_kernels.h"

enum { UNIT_MAX = 8 };

/* Returns the bytes of the numbers that a basic value of `bytes` bytes consists of. */
static unsigned unit_of(size_t bytes)
{
    unsigned unit = UNIT_MAX;
    while (bytes % unit != 0)
        unit /= 2;
    return unit;
}

/* Check count and datatype. Elements are described as rows of unsigned integers, since values are only
 * copied. */
static void check_vector(struct sar_call_args *call, int64_t function, MPI_Count count, MPI_Datatype datatype,
                         int root)
{
    struct sar_datatype type = sar_datatype_classify(datatype);
    bool basic = type.valid && (type.kind & (SAR_KIND_DERIVED | SAR_KIND_PAIR)) == 0 && type.extent > 0;
    size_t element_size = basic ? type.extent : 1;
    unsigned unit = unit_of(basic ? type.extent / type.row_len : 1);
    int64_t bytes;
    *call = (struct sar_call_args){ .sig.field = { [SAR_AGREE_FUNCTION] = function,
                                                   [SAR_AGREE_COUNT] = (int64_t)count,
                                                   [SAR_AGREE_DATATYPE] = type.valid ? type.id : 0,
                                                   [SAR_AGREE_OP] = root } };
    if (count < 0 || __builtin_mul_overflow(count, element_size, &bytes))
        sar_error_set(&call->result.error, SAR_BAD_COUNT, (int64_t)count);
    if (!basic)
        sar_error_set(&call->result.error, SAR_BAD_DATATYPE, call->sig.field[SAR_AGREE_DATATYPE]);
    call->sig.desc = (struct sar_vec_desc){ .count = (uint64_t)(count > 0 ? count : 0),
                                            .row_len = element_size / unit,
                                            .element_size = element_size,
                                            .dtype = sar_unsigned_of(unit),
                                            .kernels = sar_replace_kernels_of(unit) };
    call->sig.desc.index_size = sar_index_size(call->sig.desc.count);
}

static void check_host_array(struct sar_call_args *call, const void *array, enum sar_status status)
{
    sar_args_check_array(&call->result.error, array, status);
    sar_user_buffers_check(&call->result.error, &(struct sar_device_ctx){ .accelerator = NULL }, array,
                           status);
}

static void check_root(struct sar_call_args *call, const struct sar_comm *comm, int root)
{
    if (root < 0 || root >= comm->ranks)
        sar_error_set(&call->result.error, SAR_BAD_ROOT, root);
}

static bool overlap(const void *a, const void *b, size_t bytes)
{
    uintptr_t one = (uintptr_t)a, other = (uintptr_t)b;
    return one < other ? bytes > other - one : bytes > one - other;
}

static void check_versions(struct sar_call_args *call, bool root, const struct sar_bcast_versions *v)
{
    size_t bytes = (size_t)v->n * v->unit;
    if (v->n == 0)
        return;
    check_host_array(call, v->after, SAR_BAD_NEW_VERSION);
    if (v->before == MPI_IN_PLACE && !root)
        return;
    check_host_array(call, v->before, SAR_BAD_OLD_VERSION);
    if (overlap(v->before, v->after, bytes))
        sar_error_set(&call->result.error, SAR_BAD_OLD_VERSION,
                      v->before == v->after ? SAR_FAULT_ALIASED : SAR_FAULT_OVERLAPPING);
}

int PMPIX_Sparse_bcast_delta(const void *old_version, void *new_version, MPI_Count count,
                             MPI_Datatype datatype, int root, MPI_Comm comm)
{
    static const char function[] = "MPIX_Sparse_bcast_delta";
    struct sar_comm_state *comm_state;
    struct sar_call_args call;
    check_vector(&call, SAR_FUNCTION_BCAST_DELTA, count, datatype, root);
    int code = sar_comm_state_get(comm, function, &comm_state);
    if (code != MPI_SUCCESS)
        return code;
    struct sar_bcast_versions versions = { old_version, new_version,
                                           (unsigned)(call.sig.desc.element_size / call.sig.desc.row_len),
                                           call.sig.desc.count * call.sig.desc.row_len };
    check_root(&call, &comm_state->comm, root);
    check_versions(&call, comm_state->comm.rank == root, &versions);
    if (old_version == MPI_IN_PLACE)
        versions.before = NULL;
    sar_progress_drain(comm_state);
    sar_bcast_delta(comm_state, &call, root, &versions);
    return sar_error_raise(comm, function, &call.result.error, NULL);
}

static void check_coordinates(struct sar_call_args *call, const void *indices, const void *values,
                              MPI_Count nnz)
{
    sar_args_check_elements(call, indices, values, nnz);
    if (call->device.memory.accelerator != NULL)
        sar_error_set(&call->result.error, SAR_BAD_INDICES, SAR_FAULT_ON_DEVICE);
}

int PMPIX_Sparse_bcast_coo(const void *indices, const void *values, MPI_Count nnz, MPI_Datatype indextype,
                           MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm,
                           MPIX_Sparse_result *result)
{
    static const char function[] = "MPIX_Sparse_bcast_coo";
    struct sar_comm_state *comm_state;
    struct sar_call_args call;
    struct sar_result_guard guard;
    check_vector(&call, SAR_FUNCTION_BCAST_COO, count, datatype, root);
    sar_args_check_index_type(&call, indextype, &call.data.coo.type);
    int code = sar_comm_state_get(comm, function, &comm_state);
    if (code != MPI_SUCCESS)
        return code;
    check_root(&call, &comm_state->comm, root);
    if (comm_state->comm.rank == root)
        check_coordinates(&call, indices, values, nnz);
    sar_result_guard_open(&guard, result, &call);
    sar_progress_drain(comm_state);
    sar_bcast_coo(comm_state, &call, root);
    return sar_result_guard_close(comm, function, &guard, &call,
                                  sar_error_raise(comm, function, &call.result.error, NULL));
}

#pragma weak MPIX_Sparse_bcast_delta = PMPIX_Sparse_bcast_delta
#pragma weak MPIX_Sparse_bcast_coo = PMPIX_Sparse_bcast_coo
