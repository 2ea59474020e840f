/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs in every call between nodes that makes a check; costs a copy of the decisions, 1 KiB.
 *
 * Ranks tell in the check that they have sent messages, with the number of the call whose decisions they
 * follow. Equal numbers mean equal decisions. If a rank has sent none, or others, all ranks discard what
 * arrives. The next attempt has other tags. */

#include "core/speculate.h"

#include "base/log.h"
#include "core/prepare.h"
#include "scheme/scheme.h"

enum {
    GROWTH = 2, /* a rank with so many times the elements of the last call's fullest rank waits */
    PAUSE = 16  /* calls without speculation after one in which not all ranks could */
};

static bool is_on_host(const struct sar_call_args *args)
{
    return args->device.memory.accelerator == NULL && !args->device.resident && !args->device.fused &&
           !sar_call_args_has_packed(args);
}

/* True if the next call may speculate. Counts down a pause. */
static bool may_save(const struct sar_active_call *op)
{
    struct sar_speculation *saved = &op->common.tensor->speculation;
    const struct sar_scheme *scheme = sar_schemes[op->common.selection.scheme];
    if (saved->pause > 0) {
        saved->pause--;
        return false;
    }
    return op->common.selection.settled && is_on_host(op->args) &&
           sar_scheme_speculates(scheme, &op->common.agreed);
}

void sar_speculation_save(struct sar_active_call *op)
{
    struct sar_speculation *saved = &op->common.tensor->speculation;
    bool may = may_save(op);
    if (op->run.speculates) { /* confirmed: the task refers to the numbers that it was begun with */
        struct sar_agreed begun_with = saved->agreed;
        saved->agreed = op->common.agreed;
        op->common.agreed = begun_with;
    } else if (may) {
        saved->agreed = op->common.agreed;
    }
    saved->call = may ? op->comm_state->epoch : 0;
    saved->scheme = op->common.selection.scheme;
    saved->nnz_max = (size_t)op->common.agreement.global.nnz_max;
}

/* NULL if there is none, or calls on this communicator cannot speculate. */
static struct sar_tensor_state *find_tensor(const struct sar_active_call *op)
{
    if (op->comm_state->comm.agree == NULL)
        return NULL;
    return op->plan != NULL ? &op->plan->tensor
                            : sar_comm_state_find_tensor(op->comm_state, op->args->sig.field);
}

static bool may_begin(const struct sar_active_call *op, const struct sar_tensor_state *tensor)
{
    return tensor != NULL && tensor->speculation.call != 0 && op->args->result.error.status == SAR_OK &&
           is_on_host(op->args) && tensor->calls % op->policy->config.profile_every != 0 &&
           op->comm_state->no_shm_calls == 0;
}

bool sar_speculation_begin(struct sar_active_call *op)
{
    struct sar_tensor_state *tensor = find_tensor(op);
    struct sar_task *task = &op->task;
    if (!may_begin(op, tensor))
        return false;
    const struct sar_speculation *saved = &tensor->speculation;
    op->common.tensor = tensor;
    op->common.agreed = saved->agreed;
    op->common.selection.scheme = saved->scheme;
    op->common.agreement.global =
        (struct sar_agree_msg){ .may_block = SAR_MAY_NOT_BLOCK, .dense_path = SAR_DENSE_PATH_HOST };
    sar_active_call_task_init(op);
    sar_active_call_load_dense(op);
    if (task->exchange.status != SAR_OK || task->input.vec.nnz > GROWTH * saved->nnz_max) {
        sar_active_call_task_reset(op);
        return false;
    }
    struct sar_span span = sar_task_span(task, task->scheme->name);
    task->exchange.send_only = true;
    sar_task_begin(task);
    sar_task_run_stages(task, task->scheme->stages_to_push);
    sar_active_call_span_end(op, &span);
    return true;
}

bool sar_speculation_confirm(struct sar_active_call *op)
{
    struct sar_speculation *saved = &op->common.tensor->speculation;
    if (!sar_agree_early_equal(&op->common.agreement.global)) {
        saved->pause = PAUSE + 1; /* this call counts */
        return false;
    }
    if (op->common.selection.scheme != saved->scheme)
        return false;
    op->task.exchange.send_only = false;
    op->run.early = false;
    SAR_LOG(DEBUG, CORE, "call %u sent its first messages beside its consistency check",
            op->comm_state->epoch);
    return true;
}

enum sar_status sar_speculation_abandon(struct sar_active_call *op)
{
    enum sar_status status = SAR_OK;
    bool done;
    if (op->run.early && sar_agree_early_equal(&op->common.agreement.global))
        status = sar_agree_discard_early(&op->comm_state->comm);
    if (op->run.speculates) {
        sar_exchange_advance(&op->task.exchange, true, &done);
        sar_active_call_task_reset(op);
        op->task.exchange.send_only = false;
    }
    if (op->run.early)
        SAR_LOG(DEBUG, CORE, "call %u discards messages that were sent beside its consistency check",
                op->comm_state->epoch);
    op->run.speculates = op->run.early = false;
    op->run.first_phase = SAR_PUSH_STAGES_MAX;
    return status;
}
