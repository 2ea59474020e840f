/* SPDX-License-Identifier: BSD-3-Clause */
/* The collective calls: look at the arguments, find the context, run the call, raise what went wrong.
 * A wrong argument does not return at once: the rank takes its verdict to the agreement, where all learn
 * of it. */

#include "mpi_ext/allreduce.h"

#include "mpi_ext/arguments.h"
#include "mpi_ext/attribute.h"
#include "mpi_ext/error.h"
#include "mpi_ext/forward.h"
#include "mpi_ext/memory.h"
#include "mpi_ext/request.h"
#include "mpi_ext/result.h"
#include "mpi_ext/straight.h"
#include "plan/forward.h"
#include "plan/progress.h"

static int run(MPI_Comm comm, const char *function, struct sar_context *context, struct sar_call *call)
{
    sar_call_run(context, call);
    return sar_raise(comm, function, &call->verdict, NULL);
}

static int forward(MPI_Comm comm, const char *function, struct sar_context *context,
                   const struct sar_call *call)
{
    if (context == NULL)
        return sar_forward(comm, function, call);
    struct sar_span span = sar_forward_begin(context, call, "MPI_Allreduce");
    int code = sar_forward(comm, function, call);
    sar_forward_end(context, &span);
    return code;
}

static int run_coo(MPI_Comm comm, const char *function, struct sar_call *call)
{
    struct sar_context *context;
    int code = sar_attribute_need(comm, function, &context);
    if (code != MPI_SUCCESS)
        return code;
    sar_call_interpret(call, &context->policy);
    sar_memory_enter(call, context);
    return sar_memory_leave(comm, function, call, run(comm, function, context, call));
}

/* Between two groups everything is MPI's, where MPI_IN_PLACE has no meaning. */
static void look_at_groups(struct sar_call *call)
{
    if (call->in_place)
        sar_blame(&call->verdict, SAR_BAD_SENDBUF, SAR_FAULT_MISPLACED);
}

/* What a call on dense buffers begins with. *context is NULL where everything is MPI's. */
static int enter_dense(MPI_Comm comm, const char *function, struct sar_call *call,
                       struct sar_context **context)
{
    int code = sar_attribute_want(comm, function, context);
    if (code != MPI_SUCCESS)
        return code;
    if (*context == NULL)
        look_at_groups(call);
    else
        sar_call_interpret(call, &(*context)->policy);
    return MPI_SUCCESS;
}

static bool is_forwarded(struct sar_context *context, const struct sar_call *call)
{
    if (context == NULL || sar_forward_always(context, call))
        return true;
    sar_progress_drain(context);
    return sar_forward_turn(context, call);
}

/* A vector that cannot be whole is none that others could take for good. */
static int forward_whole(MPI_Comm comm, const char *function, struct sar_context *context,
                         struct sar_call *call)
{
    if (call->verdict.status == SAR_OK && sar_call_make_whole(context, call) != SAR_OK) {
        call->verdict.status = SAR_DEVICE_FAILED;
        sar_memory_spoil(call);
    }
    return forward(comm, function, context, call);
}

int sar_allreduce_dense(MPI_Comm comm, const char *function, struct sar_context *context,
                        struct sar_call *call)
{
    if (is_forwarded(context, call))
        return forward_whole(comm, function, context, call);
    return run(comm, function, context, call);
}

static int run_forwarded(MPI_Comm comm, const char *function, struct sar_context *context,
                         struct sar_call *call)
{
    sar_memory_use_stream(call, context == NULL ? NULL : context->stream);
    if (sar_memory_suits_mpi(call, context)) {
        sar_straight_keep(comm, context, call);
        return forward(comm, function, context, call);
    }
    sar_memory_take(call);
    sar_memory_read(call);
    return sar_memory_leave(comm, function, call, forward(comm, function, context, call));
}

static int run_dense(MPI_Comm comm, const char *function, struct sar_call *call)
{
    struct sar_context *context;
    int code = enter_dense(comm, function, call, &context);
    if (code != MPI_SUCCESS)
        return code;
    if (is_forwarded(context, call))
        return run_forwarded(comm, function, context, call);
    sar_memory_enter(call, context);
    return sar_memory_leave(comm, function, call, run(comm, function, context, call));
}

/* MPI does not tell us of the end of its requests, where we would have to write to the device: it gets
 * what it takes as it is, if all ranks agree that it does, as they do on knobs. */
static bool may_forward(struct sar_context *context, const struct sar_call *call)
{
    bool agreed = call->memory.accelerator == NULL || context->policy.config.cuda_aware == SAR_AWARE_YES;
    return agreed && sar_forward_always(context, call) && sar_forward_fits(call);
}

static int start_forwarded(MPI_Comm comm, const char *function, struct sar_context *context,
                           struct sar_call *call, MPI_Request *request)
{
    sar_memory_give_mpi(call, context);
    sar_straight_keep(comm, context, call);
    struct sar_span span = sar_forward_begin(context, call, "MPI_Iallreduce");
    int code = sar_forward_start(comm, function, call, request);
    sar_forward_end(context, &span);
    sar_memory_release(call);
    return code;
}

static int start_dense(MPI_Comm comm, const char *function, struct sar_call *call, MPI_Request *request)
{
    struct sar_context *context;
    int code = enter_dense(comm, function, call, &context);
    if (code != MPI_SUCCESS)
        return code;
    if (context == NULL) {
        if (call->memory.accelerator != NULL)
            sar_blame(&call->verdict, SAR_BAD_RECVBUF, SAR_FAULT_ON_DEVICE);
        return sar_forward_start(comm, function, call, request);
    }
    if (may_forward(context, call))
        return start_forwarded(comm, function, context, call, request);
    return sar_request_post(comm, function, context, call, NULL, request);
}

int PMPIX_Sparse_allreduce(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype,
                           MPI_Op op, MPI_Comm comm)
{
    struct sar_call call;
    if (sar_straight_again(sendbuf, recvbuf, count, datatype, op, comm))
        return PMPI_Allreduce(sendbuf, recvbuf, (int)count, datatype, op, comm);
    sar_look_at_dense(&call, sendbuf, recvbuf, count, datatype, op);
    return run_dense(comm, "MPIX_Sparse_allreduce", &call);
}

int PMPIX_Isparse_allreduce(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype,
                            MPI_Op op, MPI_Comm comm, MPI_Request *request)
{
    struct sar_call call;
    if (request != NULL && sar_straight_start(sendbuf, recvbuf, count, datatype, op, comm))
        return PMPI_Iallreduce(sendbuf, recvbuf, (int)count, datatype, op, comm, request);
    sar_look_at_dense(&call, sendbuf, recvbuf, count, datatype, op);
    return start_dense(comm, "MPIX_Isparse_allreduce", &call, request);
}

int PMPIX_Sparse_allreduce_coo(const void *indices, const void *values, MPI_Count nnz, MPI_Datatype indextype,
                               MPI_Count count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                               MPIX_Sparse_result *result)
{
    static const char function[] = "MPIX_Sparse_allreduce_coo";
    struct sar_call call;
    struct sar_into into;
    sar_look_at_coo(&call, indextype, count, datatype, op);
    sar_look_at_elements(&call, indices, values, nnz);
    sar_result_open(&into, result, &call);
    return sar_result_close(comm, function, &into, &call, run_coo(comm, function, &call));
}

int PMPIX_Isparse_allreduce_coo(const void *indices, const void *values, MPI_Count nnz,
                                MPI_Datatype indextype, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                                MPI_Comm comm, MPIX_Sparse_result *result, MPI_Request *request)
{
    static const char function[] = "MPIX_Isparse_allreduce_coo";
    struct sar_context *context;
    struct sar_call call;
    sar_look_at_coo(&call, indextype, count, datatype, op);
    sar_look_at_elements(&call, indices, values, nnz);
    int code = sar_attribute_need(comm, function, &context);
    if (code != MPI_SUCCESS)
        return code;
    sar_call_interpret(&call, &context->policy);
    return sar_request_post(comm, function, context, &call, &result, request);
}

#pragma weak MPIX_Sparse_allreduce = PMPIX_Sparse_allreduce
#pragma weak MPIX_Isparse_allreduce = PMPIX_Isparse_allreduce
#pragma weak MPIX_Sparse_allreduce_coo = PMPIX_Sparse_allreduce_coo
#pragma weak MPIX_Isparse_allreduce_coo = PMPIX_Isparse_allreduce_coo
