/* SPDX-License-Identifier: BSD-3-Clause */
/* Pairwise exchange of all elements, for recursive_doubling and hybrid. */

#include "scheme/engine/pairwise.h"

#include <math.h>

#include "vector/dense.h"
#include "wire/round16.h"

static struct sar_wire_layout layout_of(const struct sar_agreed *agreed)
{
    return sar_agreed_layout(agreed, agreed->desc.count, agreed->desc.index_size);
}

static double stage_seconds(const struct sar_agreed *a, int distance, double nnz, double reduced)
{
    struct sar_wire_layout layout = layout_of(a);
    struct sar_link link = sar_agreed_link(a, distance);
    struct sar_cost message = sar_agreed_cost(a, false, &layout, nnz);
    return link.alpha + message.bytes * link.beta + (reduced + message.work) * a->machine.gamma;
}

double sar_pairwise_seconds(const struct sar_agreed *a, int limit)
{
    double time = a->machine.ranks == 1 ? a->data.nnz_mean * a->machine.gamma : 0; /* copy to the output */
    double max_over_mean = a->data.nnz_mean > 0 ? a->data.nnz_max / a->data.nnz_mean : 1;
    double result = sar_agreed_union_nnz(a, a->machine.ranks);
    int group_ranks = sar_pof2_below(a->machine.ranks) == a->machine.ranks ? 1 : 2; /* ranks in a position */
    for (int power = 1; power < limit; power *= 2) {
        double nnz = sar_agreed_union_nnz(a, group_ranks * power) * (power == 1 ? max_over_mean : 1);
        nnz = fmin(nnz, (double)a->desc.count);
        time += stage_seconds(a, power, nnz, 2 * nnz);
    }
    if (group_ranks == 2)
        time +=
            stage_seconds(a, 1, a->data.nnz_max, 2 * a->data.nnz_mean) + stage_seconds(a, 1, result, result);
    return time;
}

void sar_pof2_post_in(struct sar_task *task, const struct sar_msg *message)
{
    struct sar_pof2 f = sar_pof2_of(task->comm);
    if (sar_pof2_sends(&f))
        sar_exchange_send(&task->exchange, f.rank + 1, message);
    if (sar_pof2_receives(&f))
        sar_exchange_expect(&task->exchange, f.rank - 1);
}

void sar_pof2_post_out(struct sar_task *task, const struct sar_msg *message)
{
    struct sar_pof2 f = sar_pof2_of(task->comm);
    if (sar_pof2_receives(&f))
        sar_exchange_send(&task->exchange, f.rank - 1, message);
    if (sar_pof2_sends(&f))
        sar_exchange_expect(&task->exchange, f.rank + 1);
}

/* Drops zeros that a format may lose: with a -0.0 or a NaN, MAX differs between a present and an absent
 * zero. */
static enum sar_status encode(struct sar_task *task, struct sar_spvec *vec)
{
    struct sar_pairwise *d = task->state;
    if (task->agreed->call.dense_face)
        SAR_TRY(sar_spvec_drop_zeros(&task->agreed->desc, task->memory.step_arena, vec));
    return sar_task_encode(task, false, layout_of(task->agreed), vec, &d->outgoing);
}

enum sar_status sar_pairwise_begin(struct sar_task *task)
{
    struct sar_pof2 f = sar_pof2_of(task->comm);
    struct sar_pairwise *d = task->state;
    d->vec = task->input.vec;
    return sar_pof2_sends(&f) ? encode(task, &d->vec) : SAR_OK;
}

void sar_pairwise_pof2_in(struct sar_task *task)
{
    struct sar_pof2 f = sar_pof2_of(task->comm);
    struct sar_pairwise *d = task->state;
    d->distance = 1;
    d->limit = d->limit == 0 ? f.size : d->limit;
    sar_pof2_post_in(task, &d->outgoing);
}

/* Reduces the peer's elements with those of this rank. Those of the lower rank come first, so that both
 * ranks compute equal bits. The last reduction writes the output, unless this rank must send the result on:
 * the output is written when nothing can fail any more. */
static enum sar_status reduce_with_peer(struct sar_task *task, int peer, bool last)
{
    struct sar_pairwise *d = task->state;
    struct sar_spvec theirs, both[2];
    SAR_TRY(sar_task_decode(task, layout_of(task->agreed), &task->exchange.arrived[peer], &theirs));
    struct sar_vec_desc desc = sar_task_desc(task);
    both[peer > task->comm->rank] = theirs;
    both[peer < task->comm->rank] = d->vec;
    d->output_written = last;
    if (last)
        return sar_task_reduce_to_output(task, &desc, both, 2);
    return sar_task_reduce(task, &desc, both, 2, &d->vec);
}

/* The sender is the paired rank before the first exchange, else the peer of the last exchange. */
enum sar_status sar_pairwise_reduce_received(struct sar_task *task)
{
    struct sar_pof2 f = sar_pof2_of(task->comm);
    struct sar_pairwise *d = task->state;
    bool last = d->distance == f.size && !sar_pof2_receives(&f);
    if (f.group_rank < 0)
        return SAR_OK;
    if (d->distance > 1)
        return reduce_with_peer(task, sar_pof2_peer(&f, d->distance / 2), last);
    return sar_pof2_receives(&f) ? reduce_with_peer(task, f.rank - 1, last) : SAR_OK;
}

enum sar_status sar_pairwise_prepare(struct sar_task *task)
{
    struct sar_pof2 f = sar_pof2_of(task->comm);
    struct sar_pairwise *d = task->state;
    if (f.size == 1)
        return SAR_OK;
    SAR_TRY(sar_pairwise_reduce_received(task));
    return f.group_rank < 0 ? SAR_OK : encode(task, &d->vec);
}

void sar_pairwise_exchange(struct sar_task *task)
{
    struct sar_pof2 f = sar_pof2_of(task->comm);
    struct sar_pairwise *d = task->state;
    if (f.size == 1)
        return;
    if (f.group_rank >= 0) {
        sar_exchange_expect(&task->exchange, sar_pof2_peer(&f, d->distance));
        sar_exchange_send(&task->exchange, sar_pof2_peer(&f, d->distance), &d->outgoing);
    }
    d->distance *= 2;
    task->repeat_stage = d->distance < d->limit;
}

/* The result is in the output now, or in d->vec on a rank that has to send it to its pair. */
enum sar_status sar_pairwise_end(struct sar_task *task)
{
    struct sar_pof2 f = sar_pof2_of(task->comm);
    struct sar_pairwise *d = task->state;
    if (d->limit == f.size)
        SAR_TRY(sar_pairwise_reduce_received(task));
    if (f.paired != 0 && d->output_written) /* some ranks get the result in a message, rounded */
        sar_round16_values(task->agreed->wire.precision, task->result.vec.value,
                           task->result.vec.nnz * task->agreed->desc.row_len);
    return sar_pof2_receives(&f) ? encode(task, &d->vec) : SAR_OK;
}

void sar_pairwise_pof2_out(struct sar_task *task)
{
    sar_pof2_post_out(task, &((struct sar_pairwise *)task->state)->outgoing);
}

enum sar_status sar_pairwise_finish(struct sar_task *task)
{
    struct sar_pof2 f = sar_pof2_of(task->comm);
    struct sar_pairwise *d = task->state;
    struct sar_vec_desc desc = task->agreed->desc;
    struct sar_spvec result = d->vec;
    desc.absent_is_zero = false;
    if (d->output_written)
        return SAR_OK;
    if (sar_pof2_sends(&f))
        SAR_TRY(sar_task_decode(task, layout_of(task->agreed), &task->exchange.arrived[f.rank + 1], &result));
    return sar_task_reduce_to_output(task, &desc, &result, 1);
}
