/* SPDX-License-Identifier: BSD-3-Clause */
/* The collective calls: check the arguments, get the comm_state, run the call, raise its error. An invalid
 * argument does not return at once: the agree step of the call reports the error on all ranks. */

#include "mpi_ext/allreduce.h"

#include "mpi_ext/arguments.h"
#include "mpi_ext/attribute.h"
#include "mpi_ext/error.h"
#include "mpi_ext/fallback.h"
#include "mpi_ext/user_buffers.h"
#include "mpi_ext/mpi_request.h"
#include "mpi_ext/result.h"
#include "core/prepare.h"
#include "core/progress.h"

static int run(MPI_Comm comm, const char *function, struct sar_comm_state *comm_state,
               struct sar_call_args *call)
{
    sar_progress_run(comm_state, call);
    return sar_error_raise(comm, function, &call->result.error, NULL);
}

static int run_mpi(MPI_Comm comm, const char *function, struct sar_comm_state *comm_state,
                   const struct sar_call_args *call)
{
    bool scatters = call->sig.collective == SAR_REDUCE_SCATTER;
    if (comm_state == NULL)
        return sar_fallback_run(comm, function, call);
    struct sar_span span =
        sar_fallback_begin(comm_state, call, scatters ? "MPI_Reduce_scatter_block" : "MPI_Allreduce");
    int code = sar_fallback_run(comm, function, call);
    sar_fallback_end(comm_state, &span);
    return code;
}

/* The label of the next allreduce, not of a reduce_scatter or an allgather. */
static void take_label(struct sar_comm_state *comm_state, struct sar_call_args *call)
{
    if (call->sig.collective != SAR_ALLREDUCE)
        return;
    call->sig.field[SAR_AGREE_LABEL] = comm_state->label;
    comm_state->label = 0;
}

static int run_coo(MPI_Comm comm, const char *function, struct sar_call_args *call)
{
    struct sar_comm_state *comm_state;
    int code = sar_comm_state_get(comm, function, &comm_state);
    if (code != MPI_SUCCESS)
        return code;
    take_label(comm_state, call);
    sar_call_args_resolve_types(call, &comm_state->settings.policy);
    sar_user_buffers_open(call, comm_state);
    return sar_user_buffers_close(comm, function, call, run(comm, function, comm_state, call));
}

/* *comm_state is NULL for an intercommunicator, whose calls go to MPI; it does not allow MPI_IN_PLACE there.
 * A reduce_scatter of so many elements that MPI would need several calls cannot run there. */
static int begin_dense(MPI_Comm comm, const char *function, struct sar_call_args *call,
                       struct sar_comm_state **comm_state)
{
    int code = sar_comm_state_get_opt(comm, function, comm_state);
    if (code != MPI_SUCCESS)
        return code;
    if (*comm_state != NULL) {
        take_label(*comm_state, call);
        sar_call_args_resolve_types(call, &(*comm_state)->settings.policy);
    } else if (call->sig.in_place) {
        sar_error_set(&call->result.error, SAR_BAD_SENDBUF, SAR_FAULT_IN_PLACE);
    } else if (call->data.buffers.parts > 0 && !sar_fallback_fits_int(call)) {
        sar_error_set(&call->result.error, SAR_BAD_RECVCOUNT, call->sig.field[SAR_AGREE_COUNT]);
    }
    return MPI_SUCCESS;
}

static bool uses_fallback(struct sar_comm_state *comm_state, const struct sar_call_args *call)
{
    if (comm_state == NULL || sar_fallback_always(comm_state, call))
        return true;
    sar_progress_drain(comm_state);
    return sar_fallback_take(comm_state, call);
}

/* If unpacking fails, poison the buffer so that peers cannot mistake it for valid data. */
static int fallback_dense(MPI_Comm comm, const char *function, struct sar_comm_state *comm_state,
                          struct sar_call_args *call)
{
    if (call->result.error.status == SAR_OK && sar_call_args_expand(comm_state, call) != SAR_OK) {
        call->result.error.status = SAR_DEVICE_FAILED;
        sar_user_buffers_poison(call);
    }
    return run_mpi(comm, function, comm_state, call);
}

int sar_allreduce_dense(MPI_Comm comm, const char *function, struct sar_comm_state *comm_state,
                        struct sar_call_args *call)
{
    if (uses_fallback(comm_state, call))
        return fallback_dense(comm, function, comm_state, call);
    return run(comm, function, comm_state, call);
}

static int run_fallback(MPI_Comm comm, const char *function, struct sar_comm_state *comm_state,
                        struct sar_call_args *call)
{
    sar_user_buffers_set_stream(call, comm_state == NULL ? NULL : comm_state->device.stream);
    if (sar_user_buffers_mpi_accepts(call, comm_state)) {
        sar_fallback_cache_store(comm, comm_state, call);
        return run_mpi(comm, function, comm_state, call);
    }
    sar_user_buffers_describe(call);
    sar_user_buffers_read(call);
    return sar_user_buffers_close(comm, function, call, run_mpi(comm, function, comm_state, call));
}

int sar_dense_run(MPI_Comm comm, const char *function, struct sar_call_args *call)
{
    struct sar_comm_state *comm_state;
    int code = begin_dense(comm, function, call, &comm_state);
    if (code != MPI_SUCCESS)
        return code;
    if (uses_fallback(comm_state, call))
        return run_fallback(comm, function, comm_state, call);
    sar_user_buffers_open(call, comm_state);
    return sar_user_buffers_close(comm, function, call, run(comm, function, comm_state, call));
}

/* MPI requests have no completion callback, which could copy a result back to the device. So vectors in
 * device memory are passed to MPI only if MPI accepts them (sar_user_buffers_mpi_accepts), and only if a
 * setting says so: settings are equal on all ranks, but a test of MPI may not be. */
static bool may_start_fallback(struct sar_comm_state *comm_state, const struct sar_call_args *call)
{
    bool accepted = call->device.memory.accelerator == NULL ||
                    (call->sig.native && comm_state->settings.policy.config.cuda_aware == SAR_CUDA_AWARE_YES);
    return accepted && sar_fallback_always(comm_state, call) && sar_fallback_fits_int(call);
}

static int start_fallback(MPI_Comm comm, const char *function, struct sar_comm_state *comm_state,
                          struct sar_call_args *call, MPI_Request *request)
{
    sar_user_buffers_prepare_mpi(call, comm_state);
    sar_fallback_cache_store(comm, comm_state, call);
    bool scatters = call->sig.collective == SAR_REDUCE_SCATTER;
    struct sar_span span =
        sar_fallback_begin(comm_state, call, scatters ? "MPI_Ireduce_scatter_block" : "MPI_Iallreduce");
    int code = sar_fallback_start(comm, function, call, request);
    sar_fallback_end(comm_state, &span);
    sar_user_buffers_release(call);
    return code;
}

int sar_dense_start(MPI_Comm comm, const char *function, struct sar_call_args *call, MPI_Request *request)
{
    struct sar_comm_state *comm_state;
    int code = begin_dense(comm, function, call, &comm_state);
    if (code != MPI_SUCCESS)
        return code;
    if (comm_state == NULL) {
        if (call->device.memory.accelerator != NULL)
            sar_error_set(&call->result.error, SAR_BAD_RECVBUF, SAR_FAULT_ON_DEVICE);
        return sar_fallback_start(comm, function, call, request);
    }
    if (may_start_fallback(comm_state, call))
        return start_fallback(comm, function, comm_state, call, request);
    return sar_mpi_request_post(comm, function, comm_state, call, NULL, request);
}

int PMPIX_Sparse_allreduce(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype,
                           MPI_Op op, MPI_Comm comm)
{
    struct sar_call_args call;
    if (sar_fallback_cache_hit(sendbuf, recvbuf, count, datatype, op, comm))
        return PMPI_Allreduce(sendbuf, recvbuf, (int)count, datatype, op, comm);
    sar_args_check_dense(&call, sendbuf, recvbuf, count, datatype, op);
    return sar_dense_run(comm, "MPIX_Sparse_allreduce", &call);
}

int PMPIX_Isparse_allreduce(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype,
                            MPI_Op op, MPI_Comm comm, MPI_Request *request)
{
    struct sar_call_args call;
    if (request != NULL && sar_fallback_cache_hit_start(sendbuf, recvbuf, count, datatype, op, comm))
        return PMPI_Iallreduce(sendbuf, recvbuf, (int)count, datatype, op, comm, request);
    sar_args_check_dense(&call, sendbuf, recvbuf, count, datatype, op);
    return sar_dense_start(comm, "MPIX_Isparse_allreduce", &call, request);
}

int sar_coo_run(MPI_Comm comm, const char *function, struct sar_call_args *call, MPIX_Sparse_result *result)
{
    struct sar_result_guard guard;
    sar_result_guard_open(&guard, result, call);
    return sar_result_guard_close(comm, function, &guard, call, run_coo(comm, function, call));
}

int sar_coo_start(MPI_Comm comm, const char *function, struct sar_call_args *call, MPIX_Sparse_result *result,
                  MPI_Request *request)
{
    struct sar_comm_state *comm_state;
    int code = sar_comm_state_get(comm, function, &comm_state);
    if (code != MPI_SUCCESS)
        return code;
    take_label(comm_state, call);
    sar_call_args_resolve_types(call, &comm_state->settings.policy);
    return sar_mpi_request_post(comm, function, comm_state, call, &result, request);
}

int PMPIX_Sparse_allreduce_coo(const void *indices, const void *values, MPI_Count nnz, MPI_Datatype indextype,
                               MPI_Count count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                               MPIX_Sparse_result *result)
{
    struct sar_call_args call;
    sar_args_check_coo(&call, indextype, count, datatype, op);
    sar_args_check_elements(&call, indices, values, nnz);
    return sar_coo_run(comm, "MPIX_Sparse_allreduce_coo", &call, result);
}

int PMPIX_Isparse_allreduce_coo(const void *indices, const void *values, MPI_Count nnz,
                                MPI_Datatype indextype, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                                MPI_Comm comm, MPIX_Sparse_result *result, MPI_Request *request)
{
    struct sar_call_args call;
    sar_args_check_coo(&call, indextype, count, datatype, op);
    sar_args_check_elements(&call, indices, values, nnz);
    return sar_coo_start(comm, "MPIX_Isparse_allreduce_coo", &call, result, request);
}

#pragma weak MPIX_Sparse_allreduce = PMPIX_Sparse_allreduce
#pragma weak MPIX_Isparse_allreduce = PMPIX_Isparse_allreduce
#pragma weak MPIX_Sparse_allreduce_coo = PMPIX_Sparse_allreduce_coo
#pragma weak MPIX_Isparse_allreduce_coo = PMPIX_Isparse_allreduce_coo
