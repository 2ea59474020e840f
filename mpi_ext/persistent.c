/* SPDX-License-Identifier: BSD-3-Clause */
/* Plans: the arguments are checked on all ranks once, and each start is a nonblocking call.
 *
 * MPIX_Sparse_plan_start_all makes the MPI requests of all plans before any call begins, so that all plans
 * start or none does. If none does, and starts are checked, the rank makes one call with the error on each
 * communicator, so that no other rank waits for it.
 *
 * Small plans with the same type, op and settings are fused: the request of the first of them, the leader,
 * runs one call for all. That call completes the requests of all, the leader's last, since until then no
 * member may be freed. */

#include "mpi_ext/persistent.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "mpi_ext/lifecycle.h"
#include "mpi_ext/arguments.h"
#include "mpi_ext/attribute.h"
#include "mpi_ext/error.h"
#include "mpi_ext/info.h"
#include "mpi_ext/user_buffers.h"
#include "core/persistent.h"
#include "core/prepare.h"
#include "core/progress.h"

/* Functions on coordinates, and on dense buffers. */
static const enum sar_function init_functions[SAR_COLLECTIVES][2] = {
    [SAR_ALLREDUCE] = { SAR_FUNCTION_COO_INIT, SAR_FUNCTION_INIT },
    [SAR_REDUCE_SCATTER] = { SAR_FUNCTION_REDUCE_SCATTER_COO_INIT, SAR_FUNCTION_REDUCE_SCATTER_INIT },
    [SAR_ALLGATHER] = { SAR_FUNCTION_ALLGATHER_COO_INIT },
};
static const enum sar_function start_functions[SAR_COLLECTIVES][2] = {
    [SAR_ALLREDUCE] = { SAR_FUNCTION_COO_START, SAR_FUNCTION_START },
    [SAR_REDUCE_SCATTER] = { SAR_FUNCTION_REDUCE_SCATTER_COO_START, SAR_FUNCTION_REDUCE_SCATTER_START },
    [SAR_ALLGATHER] = { SAR_FUNCTION_ALLGATHER_COO_START },
};

/* Set the fields that only plans have, and the memory of this rank's arrays. */
static void prepare(const struct sar_comm_state *comm_state, struct sar_call_args *call, MPI_Info info,
                    char *error_text)
{
    call->sig.field[SAR_AGREE_FUNCTION] = init_functions[call->sig.collective][call->sig.dense_face];
    call->device.memory.stream = comm_state->device.stream;
    if (call->result.error.status == SAR_OK)
        call->result.error.status = sar_info_get_stream(info, &call->device.memory.stream, error_text);
    if (call->sig.dense_face)
        sar_user_buffers_describe(call);
    if (!call->sig.native)
        sar_user_buffers_alloc(call);
}

/* Make the arguments that all starts share. The element type may depend on the plan's hints. */
static void open_plan(struct sar_comm_state *comm_state, struct sar_call_args *call, MPI_Info info,
                      struct MPIX_Sparse_plan_s *made, char *error_text)
{
    struct sar_info from = { .info = info };
    struct sar_config_layer hints = { SAR_SOURCE_PLAN_INFO, sar_info_lookup, &from };
    call->result.error = (struct sar_error){
        .status = sar_plan_open(comm_state, &hints, &made->args, &made->plan, error_text),
    };
    if (call->result.error.status != SAR_OK)
        return;
    made->args = *call;
    made->args.result.error = (struct sar_error){ .status = SAR_OK };
    made->args.sig.field[SAR_AGREE_FUNCTION] = start_functions[call->sig.collective][call->sig.dense_face];
    made->args.sig.field[SAR_AGREE_IN_PLACE] += 2 * ((int64_t)made->plan.id + 1);
    sar_call_args_resolve_types(&made->args, &made->plan.policy);
    call->result.error = made->args.result.error;
    if (call->result.error.status != SAR_OK)
        sar_plan_close(&made->plan);
}

int sar_plan_make(const struct sar_call_args *template, MPI_Comm comm, MPI_Info info, const char *function,
                  MPIX_Sparse_plan *plan)
{
    struct sar_comm_state *comm_state;
    char error_text[SAR_ERROR_TEXT_SIZE] = "";
    struct sar_call_args call = *template;
    if (plan != NULL)
        *plan = MPIX_SPARSE_PLAN_NULL;
    int code = sar_comm_state_get(comm, function, &comm_state);
    if (code != MPI_SUCCESS)
        return code;
    struct MPIX_Sparse_plan_s *made = calloc(1, sizeof *made);
    sar_error_set(&call.result.error, plan == NULL ? SAR_BAD_PLAN : made == NULL ? SAR_NO_MEMORY : SAR_OK, 0);
    if (comm_state->comm.rank == 0)
        sar_info_warn_unknown(info);
    prepare(comm_state, &call, info, error_text);
    sar_progress_drain(comm_state);
    sar_progress_check(comm_state, &call);
    if (call.result.error.status == SAR_OK)
        open_plan(comm_state, &call, info, made, error_text);
    if (call.result.error.status != SAR_OK) {
        sar_user_buffers_release(&call);
        free(made);
        /* Ranks other than the one with a bad stream key have no error text. */
        const char *detail = error_text[0] != '\0' ? error_text : "mpix_sparse_stream is no address";
        return sar_error_raise(comm, function, &call.result.error,
                               call.result.error.status == SAR_BAD_SETTING ? detail : NULL);
    }
    made->req.persistent = true;
    made->req.comm = comm;
    made->req.plan = &made->plan;
    *plan = made;
    return MPI_SUCCESS;
}

int PMPIX_Sparse_allreduce_init(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype,
                                MPI_Op op, MPI_Comm comm, MPI_Info info, MPIX_Sparse_plan *plan)
{
    struct sar_call_args call;
    sar_args_check_dense(&call, sendbuf, recvbuf, count, datatype, op);
    return sar_plan_make(&call, comm, info, "MPIX_Sparse_allreduce_init", plan);
}

int PMPIX_Sparse_allreduce_coo_init(MPI_Datatype indextype, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                                    MPI_Comm comm, MPI_Info info, MPIX_Sparse_plan *plan)
{
    struct sar_call_args call;
    sar_args_check_coo(&call, indextype, count, datatype, op);
    return sar_plan_make(&call, comm, info, "MPIX_Sparse_allreduce_coo_init", plan);
}

static bool has_kind(MPIX_Sparse_plan plan, bool dense_face)
{
    return plan != MPIX_SPARSE_PLAN_NULL && plan->args.sig.dense_face == dense_face;
}

static int wrong_kind_code(MPIX_Sparse_plan plan, const char *function)
{
    return sar_error_code(function, SAR_BAD_PLAN,
                          plan == MPIX_SPARSE_PLAN_NULL ? SAR_FAULT_NULL : SAR_FAULT_WRONG_KIND);
}

int PMPIX_Sparse_plan_start(MPIX_Sparse_plan plan, MPI_Request *request)
{
    static const char function[] = "MPIX_Sparse_plan_start";
    if (!has_kind(plan, true))
        return wrong_kind_code(plan, function);
    if (!sar_mpi_request_in_use(&plan->req))
        plan->req.args = plan->args;
    plan->req.function = function;
    return sar_mpi_request_restart(&plan->req, NULL, request);
}

int PMPIX_Sparse_plan_start_coo(MPIX_Sparse_plan plan, const void *indices, const void *values, MPI_Count nnz,
                                MPIX_Sparse_result *result, MPI_Request *request)
{
    static const char function[] = "MPIX_Sparse_plan_start_coo";
    if (!has_kind(plan, false))
        return wrong_kind_code(plan, function);
    if (!sar_mpi_request_in_use(&plan->req)) {
        plan->req.args = plan->args;
        sar_args_check_elements(&plan->req.args, indices, values, nnz);
    }
    plan->req.function = function;
    return sar_mpi_request_restart(&plan->req, &result, request);
}

static const char start_all_name[] = "MPIX_Sparse_plan_start_all";

/* Returns true if the starts of all plans of this communicator are checked. */
static bool all_checked(int n, MPIX_Sparse_plan plans[], const struct sar_comm_state *comm_state)
{
    for (int i = 0; i < n; i++)
        if (plans[i] != MPIX_SPARSE_PLAN_NULL && plans[i]->plan.comm_state == comm_state &&
            !plans[i]->plan.policy.config.check_starts)
            return false;
    return true;
}

static bool is_first_of_comm(MPIX_Sparse_plan plans[], const struct MPIX_Sparse_plan_s *left_out, int i)
{
    const struct sar_comm_state *comm_state = plans[i]->plan.comm_state;
    for (int j = 0; j < i; j++)
        if (plans[j] != MPIX_SPARSE_PLAN_NULL && plans[j] != left_out &&
            plans[j]->plan.comm_state == comm_state)
            return false;
    return true;
}

/* A call that fails on all ranks. */
struct refusal {
    struct sar_blocking_call call;
    struct sar_call_args args;
};

/* Makes the calls of the other ranks fail: one call with the error on each communicator of the plans. Blocks
 * until the other ranks start theirs, which may be in another order of communicators. Calls without a check
 * do not fail. Without memory for refusals they are made one after the other.
 * @param left_out  a plan that other ranks may not have in their lists, or NULL */
static void refuse_all(int n, MPIX_Sparse_plan plans[], const struct MPIX_Sparse_plan_s *left_out,
                       const struct sar_error *error)
{
    struct refusal *refusals = sar_lifecycle_is_forked() ? NULL : calloc((size_t)n, sizeof *refusals);
    for (int i = 0; i < n && !sar_lifecycle_is_forked(); i++) {
        if (plans[i] == MPIX_SPARSE_PLAN_NULL || plans[i] == left_out || plans[i]->plan.comm_state == NULL ||
            !is_first_of_comm(plans, left_out, i) || !all_checked(n, plans, plans[i]->plan.comm_state))
            continue;
        struct sar_call_args refused = plans[i]->args;
        refused.result.error = *error;
        if (refusals == NULL) {
            sar_progress_run(plans[i]->plan.comm_state, &refused);
            continue;
        }
        refusals[i].args = refused;
        sar_progress_begin(plans[i]->plan.comm_state, &refusals[i].args, &refusals[i].call);
    }
    for (int i = 0; i < n && refusals != NULL; i++)
        if (refusals[i].call.op.comm_state != NULL)
            sar_progress_end(plans[i]->plan.comm_state, &refusals[i].call);
    free(refusals);
}

static int raise_plan(MPIX_Sparse_plan plan, int i, const struct sar_error *error)
{
    char title[64];
    snprintf(title, sizeof title, "%s: plans[%d]", start_all_name, i);
    if (!has_kind(plan, true))
        return wrong_kind_code(plan, title);
    return sar_error_raise(plan->plan.comm_state == NULL ? MPI_COMM_NULL : plan->req.comm, title, error,
                           NULL);
}

static struct sar_error acquire(MPIX_Sparse_plan plan, int i, uint64_t group)
{
    struct sar_error error = { .status = SAR_BAD_PLAN, .value = SAR_FAULT_NULL };
    if (has_kind(plan, true))
        error = sar_mpi_request_acquire(&plan->req);
    else if (plan != MPIX_SPARSE_PLAN_NULL)
        error.value = SAR_FAULT_WRONG_KIND;
    if (error.status != SAR_OK)
        return error;
    sar_user_buffers_set_stream(&plan->args, plan->args.device.memory.stream);
    sar_user_buffers_read(&plan->args);
    plan->req.args = plan->args;
    plan->args.result.error.status = SAR_OK;
    plan->req.function = start_all_name;
    plan->req.plan_number = i + 1;
    plan->req.group = group;
    plan->req.fused_count = 0;
    plan->plan.next_fused = NULL;
    plan->fused = false;
    return error;
}

/* A plan that is named twice is in use the second time, which is an error. */
static int acquire_all(int n, MPIX_Sparse_plan plans[])
{
    static atomic_uint_least64_t groups;
    uint64_t group = atomic_fetch_add(&groups, 1) + 1;
    struct sar_error error = { .status = SAR_OK };
    int acquired = 0;
    while (acquired < n && (error = acquire(plans[acquired], acquired, group)).status == SAR_OK)
        acquired++;
    if (error.status == SAR_OK)
        return MPI_SUCCESS;
    for (int i = 0; i < acquired; i++)
        sar_mpi_request_drop(&plans[i]->req);
    int64_t fault = error.status == SAR_BAD_PLAN ? error.value : SAR_FAULT_NO_REQUEST;
    bool other_kind = error.status == SAR_BAD_PLAN && error.value == SAR_FAULT_WRONG_KIND;
    refuse_all(n, plans, other_kind ? plans[acquired] : NULL,
               &(struct sar_error){ .status = SAR_BAD_PLANS,
                                    .value = sar_error_plan_fault(acquired, fault) });
    return raise_plan(plans[acquired], acquired, &error);
}

/* Link the plans that can be fused with the first one to it; returns their number. */
static size_t fuse_small(int n, MPIX_Sparse_plan plans[])
{
    struct sar_plan *leader = &plans[0]->plan, *last = leader;
    size_t others = 0;
    if (!sar_fusion_accepts(leader))
        return 0;
    for (int i = 1; i < n; i++) {
        struct sar_plan *plan = &plans[i]->plan;
        if (plans[i]->fused || !sar_fusion_compatible(leader, plan) || !sar_fusion_accepts(plan))
            continue;
        plans[i]->fused = true;
        last = last->next_fused = plan;
        others++;
    }
    return others;
}

static void complete_fused(struct sar_active_call *active)
{
    struct sar_mpi_request *req = (struct sar_mpi_request *)active;
    struct sar_plan *leader = req->plan, *next;
    int code = sar_mpi_request_raise(req);
    if (code == MPI_SUCCESS)
        sar_fusion_unpack(leader);
    for (struct sar_plan *plan = leader; plan != NULL; plan = plan->next_fused)
        code = sar_user_buffers_write(req->comm, start_all_name, &((MPIX_Sparse_plan)plan)->args, code);
    for (struct sar_plan *plan = leader->next_fused; plan != NULL; plan = next) {
        next = plan->next_fused;
        sar_mpi_request_finish(&((MPIX_Sparse_plan)plan)->req, code);
    }
    sar_mpi_request_finish(req, code);
}

/* Returns the first error among the fused plans' inputs, or SAR_OK. */
static struct sar_error first_failed(MPIX_Sparse_plan leader)
{
    const struct sar_plan *plan = &leader->plan;
    while (plan->next_fused != NULL && ((MPIX_Sparse_plan)plan)->req.args.result.error.status == SAR_OK)
        plan = plan->next_fused;
    return ((MPIX_Sparse_plan)plan)->req.args.result.error;
}

/* A rank without memory for the fusion buffer takes part in the call; its agree step reports the error to
 * all. */
static void start_fused(MPIX_Sparse_plan leader, size_t others)
{
    struct sar_plan *plan = &leader->plan;
    struct sar_error error = first_failed(leader);
    leader->req.fused_count = others;
    sar_progress_lock(plan->comm_state);
    sar_fusion_prepare(plan, &leader->req.args);
    sar_progress_unlock();
    if (leader->req.args.result.error.status == SAR_OK)
        leader->req.args.result.error = error;
    for (struct sar_plan *other = plan->next_fused; other != NULL; other = other->next_fused) {
        struct sar_mpi_request *req = &((MPIX_Sparse_plan)other)->req;
        req->active.comm_state = plan->comm_state;
        atomic_store(&req->done, false); /* complete_fused calls sar_mpi_request_finish */
    }
    if (leader->req.args.result.error.status == SAR_OK)
        sar_fusion_pack(plan);
    sar_mpi_request_start(&leader->req, plan->fusion == NULL ? NULL : &plan->fusion->plan, complete_fused);
}

static void start_all(int n, MPIX_Sparse_plan plans[])
{
    for (int i = 0; i < n; i++) {
        if (plans[i]->fused)
            continue;
        size_t others = fuse_small(n - i, plans + i);
        if (others != 0)
            start_fused(plans[i], others);
        else
            sar_mpi_request_start(&plans[i]->req, &plans[i]->plan, sar_mpi_request_complete);
    }
}

int PMPIX_Sparse_plan_start_all(int n, MPIX_Sparse_plan plans[], MPI_Request requests[])
{
    if (n < 0)
        return sar_error_code(start_all_name, SAR_BAD_N, n);
    if (n > 0 && plans != NULL && requests == NULL)
        refuse_all(n, plans, NULL,
                   &(struct sar_error){ .status = SAR_BAD_OUTPUT, .value = SAR_NULL_REQUESTS });
    if (n > 0 && (plans == NULL || requests == NULL))
        return sar_error_code(start_all_name, SAR_BAD_OUTPUT,
                              plans == NULL ? SAR_NULL_PLANS : SAR_NULL_REQUESTS);
    int code = acquire_all(n, plans);
    if (code != MPI_SUCCESS)
        return code;
    for (int i = 0; i < n; i++)
        requests[i] = plans[i]->req.request;
    start_all(n, plans);
    return MPI_SUCCESS;
}

/* Active calls of other plans on the communicator may still read this plan's timing feedback, hence the
 * lock. A child of fork() has no active calls, and must not wait for a lock that a thread of its parent
 * held. */
static void close_plan(struct sar_plan *plan)
{
    const struct sar_comm_state *comm_state = sar_lifecycle_is_forked() ? NULL : plan->comm_state;
    if (comm_state != NULL)
        sar_progress_lock(comm_state);
    sar_plan_close(plan);
    if (comm_state != NULL)
        sar_progress_unlock();
}

struct sar_plan_report sar_plan_get_report(MPIX_Sparse_plan plan)
{
    const struct sar_active_call *last = &plan->req.active;
    const struct sar_selection *s = &last->common.selection;
    return (struct sar_plan_report){ sar_schemes[s->scheme]->name, sar_schemes[s->choice]->name,
                                     s->prices[s->scheme].price,
                                     last->common.agreed.data.nnz_mean / (double)last->args->sig.desc.count };
}

int PMPIX_Sparse_plan_free(MPIX_Sparse_plan *plan)
{
    static const char function[] = "MPIX_Sparse_plan_free";
    if (plan == NULL)
        return sar_error_code(function, SAR_BAD_PLAN, SAR_FAULT_NULL);
    if (*plan != MPIX_SPARSE_PLAN_NULL && sar_mpi_request_in_use(&(*plan)->req))
        return sar_error_code(function, SAR_BAD_PLAN, SAR_FAULT_IN_USE);
    if (*plan != MPIX_SPARSE_PLAN_NULL) {
        close_plan(&(*plan)->plan);
        sar_user_buffers_release(&(*plan)->args);
        free(*plan);
    }
    *plan = MPIX_SPARSE_PLAN_NULL;
    return MPI_SUCCESS;
}

#pragma weak MPIX_Sparse_allreduce_init = PMPIX_Sparse_allreduce_init
#pragma weak MPIX_Sparse_allreduce_coo_init = PMPIX_Sparse_allreduce_coo_init
#pragma weak MPIX_Sparse_plan_start = PMPIX_Sparse_plan_start
#pragma weak MPIX_Sparse_plan_start_coo = PMPIX_Sparse_plan_start_coo
#pragma weak MPIX_Sparse_plan_start_all = PMPIX_Sparse_plan_start_all
#pragma weak MPIX_Sparse_plan_free = PMPIX_Sparse_plan_free
