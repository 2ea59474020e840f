/* SPDX-License-Identifier: BSD-3-Clause */
/* The state machine of a call: prepare this rank's input, agree, profile the tensor if that is due, select
 * a scheme, run it, write the result. Errors that one rank may have before the scheme starts go through the
 * agreement: either all ranks go on or none does. The start of a plan with a saved agreement skips
 * agreement and selection.
 *
 * No function waits, unless `block` is set: a call advances from phase to phase each time that progress
 * calls it. */

#include "core/active_call.h"

#include "base/hot_code.h"
#include "base/parallel.h"
#include "comm/shm/numa_distance.h"
#include "comm/shm/group.h"
#include "core/fallback.h"
#include "core/prepare.h"
#include "core/speculate.h"

/* Seconds between calls after which the caches may hold only data of the program. */
static const double CACHES_COLD_AFTER = 20e-6;

static void fail(struct sar_active_call *op, enum sar_status status, bool agreed)
{
    op->args->result.error = (struct sar_error){ .status = status, .agreed = agreed };
    op->run.phase = SAR_PHASE_DONE;
}

static void finish(struct sar_active_call *op)
{
    struct sar_span span = sar_task_span(&op->task, "write");
    sar_active_call_write(op, &span.work);
    sar_active_call_span_end(op, &span);
    sar_timing_feedback_end(op);
    op->args->result.nnz = op->task.result.vec.nnz;
    op->comm_state->last.end = PMPI_Wtime();
    sar_active_call_report(op, op->comm_state->last.end - op->time.start);
    op->run.phase = SAR_PHASE_DONE;
}

static void begin_scheme(struct sar_active_call *op)
{
    op->run.phase_span = sar_task_span(&op->task, op->task.scheme->name);
    sar_task_begin(&op->task);
    op->run.phase = SAR_PHASE_RUNNING;
}

/* sar_profile_start is collective: an error of one rank reaches all of them in its first step. */
static void begin_profile(struct sar_active_call *op)
{
    uint32_t slots = sar_profile_slots((uint64_t)op->common.agreement.global.nnz_sum);
    op->run.profile_due = false;
    op->run.phase = SAR_PHASE_PROFILING;
    op->time.profile_start = sar_active_call_seconds(op);
    op->run.phase_span = sar_task_span(&op->task, "profile");
    op->run.status = sar_profile_start(&op->comm_state->comm, &op->args->sig.desc, &op->task.input.vec, slots,
                                       &op->comm_state->memory.arena, &op->run.profile);
}

/* The saved agreement holds until the next call that profiles. It does not say that the elements of a later
 * allgather have the same owners. With MPIX_SPARSE_CHECK_STARTS=on none is saved. */
static void save_agreement(struct sar_active_call *op)
{
    struct sar_plan *plan = op->plan;
    uint64_t every = op->policy->config.profile_every;
    const struct sar_scheme *scheme = sar_schemes[op->common.selection.scheme];
    bool has_owners = op->args->sig.collective == SAR_ALLGATHER && op->common.agreed.call.block > 0 &&
                      scheme == &sar_scheme_balanced;
    if (plan == NULL || !op->common.selection.settled || has_owners || op->policy->config.check_starts)
        return;
    plan->saved.skip_agree_left = (every - plan->tensor.calls % every) % every;
    plan->saved.all = op->common.agreement.global;
    plan->saved.agreed = op->common.agreed;
    plan->saved.selection = op->common.selection;
}

static void plan_fallback(struct sar_active_call *op)
{
    struct sar_tensor_state *tensor = op->common.tensor;
    if (op->plan != NULL || !op->args->sig.dense_face)
        return;
    if (op->common.agreement.global.dense_path == SAR_DENSE_PATH_PIPELINED)
        tensor->fallback_left = tensor->fallback_run = 0;
    else
        sar_fallback_plan(tensor, &op->common.selection, op->policy);
}

/* Select a scheme, and end the speculation. Returns false after an error. */
static bool select_scheme(struct sar_active_call *op)
{
    struct sar_span span = sar_task_span(&op->task, "select");
    enum sar_status status = sar_active_call_select(op);
    if (status == SAR_OK)
        sar_active_call_log_selection(op);
    sar_active_call_span_end(op, &span);
    if (status == SAR_OK) {
        sar_timing_feedback_begin(op);
        save_agreement(op);
        plan_fallback(op);
    }
    if (op->run.early && (status != SAR_OK || !sar_speculation_confirm(op))) {
        enum sar_status abandoned = sar_speculation_abandon(op);
        status = status != SAR_OK ? status : abandoned;
    }
    if (status == SAR_OK)
        sar_speculation_save(op);
    else
        fail(op, status, true);
    return status == SAR_OK;
}

/* Dense buffers are profiled once they are compacted; schemes on dense buffers do not compact them. */
static void select_and_init(struct sar_active_call *op)
{
    if (!select_scheme(op))
        return;
    if (op->run.speculates) { /* confirmed: its messages are in flight */
        op->run.phase_span = sar_task_span(&op->task, op->task.scheme->name);
        op->task.engine.wait_span = sar_task_span(&op->task, "wait");
        op->run.phase = SAR_PHASE_RUNNING;
        return;
    }
    sar_active_call_task_init(op);
    sar_active_call_load_dense(op);
    if (op->run.profile_due && op->args->sig.dense_face && !op->task.scheme->on_dense_buffers)
        begin_profile(op);
    else
        begin_scheme(op);
}

/* All ranks know that one of them cannot allocate shared memory: run another scheme on the same input. The
 * time of this call is not used as feedback. */
static void retry_without_shm(struct sar_active_call *op)
{
    sar_comm_state_suspend_shm(op->comm_state);
    sar_active_call_task_reset(op);
    select_and_init(op);
    op->comm_state->feedback.tensor = NULL;
}

static void end_failed(struct sar_active_call *op)
{
    enum sar_status status = op->task.exchange.status;
    if (op->comm_state->comm.shm_group != NULL)
        sar_shm_group_set_failed(op->comm_state->comm.shm_group, sar_shm_region_is_unavailable(status));
    if (status == SAR_SHM_RETRY)
        op->run.phase = SAR_PHASE_SHM_RETRY;
    else
        fail(op, status, false);
}

static void move_messages(void *arg)
{
    struct sar_active_call *op = arg;
    sar_task_progress(&op->task);
}

/* Returns the threads of a call's work. Messages move meanwhile if the scheme is running. */
static struct sar_parallel threads_of(struct sar_active_call *op, bool running)
{
    struct sar_parallel parallel = sar_comm_state_parallel(op->comm_state, op->policy);
    parallel.progress = running ? move_messages : NULL;
    parallel.arg = op;
    return parallel;
}

static void advance_scheme(struct sar_active_call *op, bool block)
{
    bool done;
    struct sar_parallel former = sar_parallel_begin(threads_of(op, true));
    sar_task_advance(&op->task, block, &done);
    sar_parallel_end(former);
    if (!done)
        return;
    sar_active_call_span_end(op, &op->run.phase_span);
    if (op->args->result.error.status != SAR_OK)
        op->run.phase = SAR_PHASE_DONE;
    else if (op->task.exchange.status != SAR_OK)
        end_failed(op);
    else
        finish(op);
}

static void advance_profile(struct sar_active_call *op, bool block)
{
    bool done = false;
    if (op->run.status == SAR_OK)
        op->run.status = sar_profile_advance(&op->run.profile, block, &op->common.tensor->profile, &done);
    if (op->run.status == SAR_OK && !done)
        return;
    sar_active_call_span_end(op, &op->run.phase_span);
    op->time.excluded += sar_active_call_seconds(op) - op->time.profile_start;
    op->common.tensor->has_profile |= op->run.status == SAR_OK;
    op->common.tensor->prices.valid = false;
    sar_active_call_log_profile(op);
    if (op->task.scheme != NULL) { /* a later failure travels in its messages */
        sar_exchange_fail(&op->task.exchange, op->run.status);
        begin_scheme(op);
    } else if (op->run.status != SAR_OK) {
        fail(op, op->run.status, true);
    } else {
        select_and_init(op);
    }
}

static void find_tensor(struct sar_active_call *op)
{
    uint64_t every = op->policy->config.profile_every;
    op->common.tensor =
        op->plan != NULL ? &op->plan->tensor : sar_comm_state_get_tensor(op->comm_state, op->args->sig.field);
    bool has_overlap = op->args->sig.collective != SAR_ALLGATHER; /* else the profile is known */
    op->run.profile_due =
        op->common.tensor->calls++ % every == 0 && op->comm_state->comm.ranks > 1 && has_overlap;
    if (op->run.profile_due) {
        sar_cost_history_refresh(&op->common.tensor->costs);
        op->common.tensor->reuse.reuse_left = 0;
    }
}

/* A rank with an error in its list of plans makes one call, with the error. So the other calls of the list
 * end with that error on all ranks, too. */
static void refuse_group(const struct sar_active_call *op)
{
    const struct sar_error *error = &op->args->result.error;
    bool of_list = error->status == SAR_BAD_PLANS || error->status == SAR_BAD_OUTPUT ||
                   error->status == SAR_BAD_NNZ; /* the Python package refuses lists by a negative nnz */
    if (op->group != 0 && of_list)
        op->comm_state->refusal = (struct sar_comm_refusal){ op->group, *error };
}

static bool is_refused(const struct sar_active_call *op)
{
    return op->group != 0 && op->group == op->comm_state->refusal.group;
}

bool sar_active_call_end_agree(struct sar_active_call *op)
{
    sar_active_call_span_end(op, &op->run.phase_span);
    if (op->run.status != SAR_OK) {
        fail(op, op->run.status, false);
        return false;
    }
    op->args->result.error = sar_error_resolve(&op->common.agreement.global, &op->args->sig);
    if (op->args->result.error.status != SAR_OK) {
        refuse_group(op);
        op->run.phase = SAR_PHASE_DONE;
        return false;
    }
    op->time.pre_scheme = sar_active_call_seconds(op);
    sar_timing_feedback_apply(op);
    return true;
}

void sar_active_call_begin_agree(struct sar_active_call *op, bool block)
{
    bool shm_failed = sar_shm_group_failed(op->comm_state->comm.shm_group);
    op->run.phase_span = sar_task_span(&op->task, "agree");
    op->common.agreement.local = sar_active_call_agree_msg(op);
    op->common.agreement.local.may_block = shm_failed ? SAR_MAY_NOT_BLOCK_SHM_FAILED
                                           : block    ? SAR_MAY_BLOCK
                                                      : SAR_MAY_NOT_BLOCK;
    sar_comm_state_set_call(op->comm_state, op->args->sig.field[SAR_AGREE_FUNCTION]);
    op->run.status = sar_agree_start(&op->comm_state->comm, &op->common.agreement);
    op->run.phase = SAR_PHASE_AGREEING;
}

static void advance_agree(struct sar_active_call *op, bool block)
{
    bool done = false;
    if (op->run.status == SAR_OK)
        op->run.status = sar_agree_test(&op->comm_state->comm, &op->common.agreement, block, &done);
    if (op->run.status == SAR_OK && !done)
        return;
    op->run.early = op->run.status == SAR_OK && sar_agree_early_any(&op->common.agreement.global);
    if (!sar_active_call_end_agree(op)) {
        if (op->run.early || op->run.speculates)
            sar_speculation_abandon(op);
        return;
    }
    if (op->common.agreement.global.may_block == SAR_MAY_NOT_BLOCK_SHM_FAILED)
        sar_comm_state_suspend_shm(op->comm_state);
    if (op->common.agreement.global.may_block == SAR_MAY_BLOCK)
        sar_numa_distance_remeasure(&op->comm_state->comm);
    find_tensor(op);
    if (op->run.profile_due && !op->args->sig.dense_face) {
        sar_active_call_load_coo(op);
        begin_profile(op);
    } else {
        select_and_init(op);
    }
}

/* A rank with an error sends that in place of its messages. */
static void begin_saved(struct sar_active_call *op)
{
    struct sar_plan *plan = op->plan;
    plan->saved.skip_agree_left--;
    plan->tensor.calls++;
    sar_comm_state_set_call(op->comm_state, op->args->sig.field[SAR_AGREE_FUNCTION]);
    op->common.agreement.global = plan->saved.all;
    op->common.agreed = plan->saved.agreed;
    op->common.selection = plan->saved.selection;
    op->common.tensor = &plan->tensor;
    sar_active_call_task_init(op);
    sar_exchange_fail(&op->task.exchange, op->args->result.error.status);
    sar_active_call_load_dense(op);
    begin_scheme(op);
}

static struct sar_span_work canonicalize_work(const struct sar_active_call *op)
{
    const struct sar_coo_args *coo = &op->args->data.coo;
    const struct sar_spvec *vec = &op->task.input.vec;
    struct sar_span_work work = sar_span_work_make("ingest", coo->nnz, op->args->sig.desc.element_size, 0);
    work.format = vec->index == coo->indices ? "sorted" : vec->value == coo->values ? "resized" : "unsorted";
    return work;
}

/* True if the elements of the input were sorted or merged, and so have other places than the caller's. */
static bool has_sorted_input(const struct sar_active_call *op)
{
    const struct sar_coo_args *coo = &op->args->data.coo;
    const struct sar_spvec *vec = &op->task.input.vec;
    return coo->nnz > 0 && vec->index != coo->indices && vec->value != coo->values;
}

/* Prefetch memory that a program which computes between calls may have driven out of the caches. */
static void prefetch(const struct sar_comm_state *comm_state)
{
    size_t rest = offsetof(struct sar_comm_state, tensors.last_found);
    if (comm_state->comm.shm_group != NULL)
        sar_hot_code_prefetch_data(comm_state->comm.shm_group, sizeof *comm_state->comm.shm_group);
    sar_hot_code_prefetch_data((const char *)comm_state + rest, sizeof *comm_state - rest);
    sar_hot_code_prefetch_data(&comm_state->tensors.state[comm_state->tensors.last_found],
                               sizeof comm_state->tensors.state[0]);
    sar_hot_code_prefetch();
}

static void begin(struct sar_active_call *op, bool block)
{
    if (is_refused(op)) {
        op->args->result.error = op->comm_state->refusal.error;
        op->run.phase = SAR_PHASE_DONE;
        return;
    }
    sar_comm_state_reset_memory(op->comm_state);
    op->comm_state->epoch++;
    op->time.start = PMPI_Wtime();
    if (op->time.start - op->comm_state->last.end > CACHES_COLD_AFTER)
        prefetch(op->comm_state);
    op->run.call_span = sar_task_span(&op->task, "call");
    op->run.call_span.collective = sar_collective_names[op->args->sig.collective];
    struct sar_span span = sar_task_span(&op->task, "prepare");
    sar_active_call_prepare(op);
    if (!op->args->sig.dense_face && !op->args->device.resident) {
        span.work = canonicalize_work(op);
        op->run.sorted_input = has_sorted_input(op);
    }
    sar_active_call_span_end(op, &span);
    if (op->plan != NULL && op->plan->saved.skip_agree_left > 0) {
        begin_saved(op);
        return;
    }
    op->run.speculates = sar_speculation_begin(op);
    sar_active_call_begin_agree(op, block);
}

/* Advance from phase to phase until one has to wait. */
static void advance(struct sar_active_call *op, bool block)
{
    enum sar_phase before;
    do {
        before = op->run.phase;
        if (before == SAR_PHASE_QUEUED)
            begin(op, block);
        else if (before == SAR_PHASE_AGREEING)
            advance_agree(op, block);
        else if (before == SAR_PHASE_PROFILING)
            advance_profile(op, block);
        else if (before == SAR_PHASE_RUNNING)
            advance_scheme(op, block);
        else if (before == SAR_PHASE_SHM_RETRY)
            retry_without_shm(op);
    } while (op->run.phase != before);
}

void sar_active_call_enqueue(struct sar_comm_state *comm_state, struct sar_call_args *args,
                             struct sar_active_call *op)
{
    op->comm_state = comm_state;
    op->args = args;
    op->policy = op->plan != NULL ? &op->plan->policy : &comm_state->settings.policy;
    if (comm_state->queue.first == NULL)
        comm_state->queue.first = op;
    else
        comm_state->queue.last->next = op;
    comm_state->queue.last = op;
}

void sar_active_call_advance(struct sar_comm_state *comm_state, bool block)
{
    struct sar_active_call *op;
    while ((op = comm_state->queue.first) != NULL) {
        struct sar_parallel former = sar_parallel_begin(threads_of(op, false));
        advance(op, block);
        sar_parallel_end(former);
        if (op->run.phase != SAR_PHASE_DONE)
            return;
        sar_active_call_span_end(op, &op->run.call_span);
        sar_device_input_release(op);
        comm_state->queue.first = op->next;
        if (op->on_done != NULL)
            op->on_done(op);
        block = false;
    }
}
