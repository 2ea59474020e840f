/* SPDX-License-Identifier: BSD-3-Clause */
/* The stages of owner-based schemes: each step of the pipeline pushes one segment and pulls the one
 * before. */

#include "scheme/engine/owner_internal.h"

enum sar_status sar_owner_begin(struct sar_task *task)
{
    struct sar_owner *o = task->state;
    size_t ranks = (size_t)task->comm->ranks;
    for (int parity = 0; parity < 2; parity++) {
        SAR_TRY(sar_task_alloc(task, ranks, sizeof *o->push.parts[0], &o->push.parts[parity]));
        SAR_TRY(sar_task_alloc(task, ranks, sizeof *o->push.messages[0], &o->push.messages[parity]));
    }
    SAR_TRY(sar_task_alloc(task, ranks, sizeof *o->pull.received, &o->pull.received));
    SAR_TRY(sar_task_alloc(task, ranks, sizeof *o->inputs, &o->inputs));
    SAR_TRY(sar_task_alloc(task, ranks, sizeof *o->reduce.decoded, &o->reduce.decoded));
    SAR_TRY(sar_task_alloc(task, ranks, sizeof *o->push.nnz, &o->push.nnz));
    SAR_TRY(sar_task_alloc(task, ranks, sizeof *o->pull.nnz, &o->pull.nnz));
    if (o->parts.is_range && o->parts.bounds == NULL)
        SAR_TRY(sar_range_parts_bounds(task, &o->parts.map, &o->parts.bounds));
    sar_task_next_step_arena(task);
    return sar_owner_prepare_push(task, 0);
}

/* The sums go to all sources of their elements; this rank is always one of them. */
static bool sends_sums(const struct sar_task *task)
{
    return sar_owner_source(task, 1) >= 0;
}

enum sar_status sar_owner_reduce(struct sar_task *task)
{
    struct sar_owner *o = task->state;
    sar_task_next_step_arena(task);
    sar_owner_save_pulled(task);
    if (o->step == 0)
        return SAR_OK;
    uint32_t segment = o->step - 1;
    struct sar_spvec *sums = &o->reduce.sums[segment % 2];
    struct sar_msg *message = sends_sums(task) ? &o->pull.outgoing[segment % 2] : NULL;
    SAR_TRY(sar_owner_sum_push(task, sums));
    return sar_task_encode(task, true, sar_owner_part_layout(task, task->comm->rank, segment), sums, message);
}

void sar_owner_propagate_failure(struct sar_task *task, enum sar_owner_failure failure)
{
    struct sar_owner *o = task->state;
    struct sar_exchange *x = &task->exchange;
    struct sar_msg_key key = { .fingerprint = task->args.fingerprint, .epoch = task->args.epoch };
    o->failure = failure;
    if (failure == SAR_OWNER_SHM_RETRY)
        x->status = SAR_SHM_RETRY;
    else if (failure == SAR_OWNER_FAILURE && (x->status == SAR_OK || x->status == SAR_SHM_RETRY))
        x->status = SAR_PEER_FAILED;
    key.user_word = (uint64_t)failure;
    if (o->step == 0)
        sar_msg_failure(&key, &x->failure);
}

/* Reads the failures that push messages report, and adopts the worst. */
static void collect_failures(struct sar_task *task)
{
    const struct sar_owner *o = task->state;
    uint64_t worst = (uint64_t)o->failure;
    struct sar_msg_header header;
    for (int r, i = 0; (r = sar_owner_source(task, i)) >= 0; i++) {
        int channel = sar_owner_channel(task, SAR_OWNER_PUSH, r);
        const struct sar_msg *received = &task->exchange.arrived[channel];
        if (received->buffer != NULL && received->bytes >= SAR_MSG_HEADER_BYTES &&
            sar_msg_read_header(received->buffer, &header) && header.wire == SAR_MSG_NO_WIRE &&
            header.user_word > worst)
            worst = header.user_word;
    }
    sar_owner_propagate_failure(task, worst < SAR_OWNER_FAILURE ? (enum sar_owner_failure)worst
                                                                : SAR_OWNER_FAILURE);
}

void sar_owner_post(struct sar_task *task)
{
    struct sar_owner *o = task->state;
    if (o->step == 1 && task->exchange.status != SAR_OK)
        collect_failures(task);
    if (o->step < o->parts.segments)
        sar_owner_post_push(task);
    if (o->step > 0)
        sar_owner_post_pull(task, &o->pull.outgoing[(o->step - 1) % 2]);
    task->repeat_stage = o->step < o->parts.segments;
    o->step++;
}

/* sar_owner_post has already incremented o->step. */
enum sar_status sar_owner_overlap(struct sar_task *task)
{
    struct sar_owner *o = task->state;
    uint32_t step = o->step - 1;
    if (step + 1 < o->parts.segments)
        SAR_TRY(sar_owner_prepare_push(task, step + 1));
    return step < 2 ? SAR_OK : sar_owner_write_output(task, step - 2);
}

/* Owners that this rank does not send to have 0 elements. */
static double imbalance(const struct sar_task *task, const size_t *nnz)
{
    const struct sar_owner *o = task->state;
    size_t largest = 0, sum = 0;
    for (int r = 0; r < task->comm->ranks; r++) {
        largest = nnz[r] > largest ? nnz[r] : largest;
        sum += nnz[r];
    }
    return sum == 0 ? 1 : (double)largest * o->parts.n_targets / (double)sum;
}

enum sar_status sar_owner_finish(struct sar_task *task)
{
    struct sar_owner *o = task->state;
    sar_owner_save_pulled(task);
    SAR_TRY(sar_owner_write_output(task, o->parts.segments - 1));
    task->report.push_imbalance = imbalance(task, o->push.nnz);
    task->report.pull_imbalance = imbalance(task, o->pull.nnz);
    return SAR_OK;
}
