/* SPDX-License-Identifier: BSD-3-Clause */
/* SparCML's SSAR_Split_allgather and DSAR_Split_allgather: each rank owns one of p contiguous ranges and
 * reduces it; the sums are gathered by concatenation. split_dense gathers them in dense format, because the
 * sum of many sparse vectors may be dense. Ranges consist of whole rows, and a row is sent with one index,
 * where SparCML sends one for every value.
 *
 * The push is that of sparse_ps; the pull takes fewer messages, in ceil(log2 p) steps. A range with more
 * elements than others delays the push, and each step of the pull.
 *
 * SparCML concatenates by recursive doubling, for powers of two. Here it is Bruck's allgather (Bruck et
 * al., IEEE TPDS 8(11), 1997), for any p. In step i a rank has the parts of 2^i ranks, from its own on,
 * around the end of the vector. It sends those that are missing there to the rank 2^i before it, and appends
 * those that it receives from the rank 2^i after it. Indices count from the beginning of the rank's own part;
 * the last stage converts them.
 *
 *     time = e(p-1, (p-1) m(z s)) + sum over i < L of (alpha + m(F_i) beta)
 *            + (z + z s p + 2 Z) gamma
 *
 * p ranks, L = ceil(log2 p), z elements of the rank with most, Z of the result, F_i of the result in the
 * fullest n_i = min(2^i, p - 2^i) consecutive ranges, m the bytes of a message of this many elements, s =
 * skewness / p the largest range's share of a rank's elements, e the time of sar_agreed_exchange. For
 * split_dense m(F_i) is M n_i / p, with M bytes of the dense vector. */

#include <math.h>

#include "scheme/engine/owner.h"
#include "scheme/engine/spread.h"
#include "scheme/scheme.h"
#include "vector/reduce.h"
#include "vector/spvec.h"

struct state {
    struct sar_owner owner;  /* first */
    int n_parts, n_expected; /* parts that this rank has, and parts in flight to it */
    struct sar_spvec vec;    /* elements of the n_parts parts */
    struct sar_msg outgoing;
};

/* Parts that a step adds to a rank that has `parts` of them. */
static int next_count(int parts, int ranks)
{
    return parts < ranks - parts ? parts : ranks - parts;
}

/* Returns the share of all sums in the largest sequence of `parts` parts. Where it is not known how they
 * spread, the parts beside the largest are equal. */
static double max_parts_share(const struct sar_agreed *a, const struct sar_spread *spread, double share,
                              int parts)
{
    double ranks = a->machine.ranks, equal = share + (parts - 1) * (1 - share) / fmax(ranks - 1, 1);
    if (parts == 1 || !sar_spread_is_known(a))
        return equal;
    double chance = sar_agreed_max_load(a, ranks / parts, ranks, 1) * parts / ranks;
    return fmin(fmax(sar_spread_max_share(spread, a->machine.ranks, parts), chance), 1);
}

/* pull_wire: preferred format of the pull, or NULL. */
static double seconds_with(const struct sar_agreed *a, const struct sar_wire *pull_wire)
{
    const struct sar_machine *m = &a->machine;
    double ranks = m->ranks, share = sar_range_parts_max_share(a), sums = sar_agreed_union_nnz(a, ranks);
    uint64_t part = sar_range_parts_map(a).slots_max;
    struct sar_wire_layout layout = sar_agreed_layout(a, part, sar_index_size(part));
    struct sar_cost push = sar_agreed_cost(a, false, &layout, a->data.nnz_max * share);
    double work = a->data.nnz_max + a->data.nnz_mean * ranks * share + 2 * sums + (ranks - 1) * push.work;
    double time = sar_agreed_exchange(a, ranks - 1, (ranks - 1) * push.bytes);
    struct sar_wire_policy policy = { .preferred = pull_wire };
    struct sar_spread spread = { .weight = { 0 } };
    double sums_share = sar_range_parts_max_union_share(a, ranks);
    if (sar_spread_is_known(a))
        spread = sar_spread_make(a, ranks);
    layout.index_size = a->desc.index_size;
    for (int parts = 1; parts < m->ranks; parts += next_count(parts, m->ranks)) {
        int moved = next_count(parts, m->ranks);
        layout.slots = part * (uint64_t)moved;
        double nnz = fmin(sums * max_parts_share(a, &spread, sums_share, moved), (double)layout.slots);
        struct sar_cost pull = sar_agreed_cost_with(a, true, &policy, &layout, nnz);
        time += m->alpha + pull.bytes * m->beta;
        work += pull.work;
    }
    return time + work * m->gamma;
}

static double seconds(const struct sar_agreed *a)
{
    return seconds_with(a, NULL);
}

static double seconds_dense(const struct sar_agreed *a)
{
    return seconds_with(a, &sar_wire_dense);
}

static void open(struct sar_task *task)
{
    struct state *s = task->state;
    task->wire_policy[1].preferred = task->scheme == &sar_scheme_split_dense ? &sar_wire_dense : NULL;
    sar_owner_open(task, sar_range_parts_map(task->agreed), NULL);
    s->n_parts = 1;
}

/* Slots of n parts, from a rank's own on. */
static uint64_t slots_of(const struct sar_task *task, int rank, int n)
{
    const uint64_t *bounds = ((struct sar_owner *)task->state)->parts.bounds;
    int end = rank + n, ranks = task->comm->ranks;
    return end < ranks ? bounds[end] - bounds[rank] : bounds[ranks] - bounds[rank] + bounds[end - ranks];
}

/* Layout of messages about n parts. Indices keep their size: they count from the beginning of `rank`. */
static struct sar_wire_layout layout_of(const struct sar_task *task, int rank, int n)
{
    return sar_agreed_layout(task->agreed, slots_of(task, rank, n), task->agreed->desc.index_size);
}

static enum sar_status sum(struct sar_task *task)
{
    struct state *s = task->state;
    const struct sar_vec_desc *desc = &task->agreed->desc;
    struct sar_wire_layout layout = sar_range_parts_layout(task, s->owner.parts.bounds, task->comm->rank);
    struct sar_spvec sums;
    sar_task_next_step_arena(task);
    SAR_TRY(sar_owner_sum_push(task, &sums));
    SAR_TRY(sar_spvec_alloc(desc, sums.nnz, task->memory.call_arena, &s->vec));
    s->vec.nnz = 0;
    sar_task_append(task, &sums, layout.index_size, 0, &s->vec);
    return SAR_OK;
}

/* Appends the parts that the last exchange received. */
static enum sar_status append_received(struct sar_task *task)
{
    struct state *s = task->state;
    const struct sar_vec_desc *desc = &task->agreed->desc;
    int rank = task->comm->rank, peer = (rank + s->n_parts) % task->comm->ranks;
    struct sar_spvec theirs, both;
    if (s->n_expected == 0)
        return SAR_OK;
    SAR_TRY(
        sar_task_decode(task, layout_of(task, peer, s->n_expected), &task->exchange.arrived[peer], &theirs));
    SAR_TRY(sar_spvec_alloc(desc, s->vec.nnz + theirs.nnz, task->memory.call_arena, &both));
    both.nnz = 0;
    sar_task_append(task, &s->vec, desc->index_size, 0, &both);
    sar_task_append(task, &theirs, desc->index_size, slots_of(task, rank, s->n_parts), &both);
    s->vec = both;
    return SAR_OK;
}

static enum sar_status prepare(struct sar_task *task)
{
    struct state *s = task->state;
    const struct sar_vec_desc *desc = &task->agreed->desc;
    int n = next_count(s->n_parts + s->n_expected, task->comm->ranks);
    sar_task_next_step_arena(task);
    SAR_TRY(append_received(task));
    if (n == 0)
        return SAR_OK;
    struct sar_wire_layout layout = layout_of(task, task->comm->rank, n);
    struct sar_spvec first =
        sar_spvec_slice(desc, &s->vec, 0, sar_spvec_lower_bound(desc, &s->vec, 0, layout.slots));
    SAR_TRY(sar_task_encode(task, true, layout, &first, &s->outgoing));
    if (s->n_expected == 0)
        s->vec = first; /* this rank's whole part, as the receivers decode it */
    return SAR_OK;
}

static void exchange(struct sar_task *task)
{
    struct state *s = task->state;
    int ranks = task->comm->ranks, rank = task->comm->rank;
    s->n_parts += s->n_expected;
    s->n_expected = next_count(s->n_parts, ranks);
    if (s->n_expected == 0)
        return;
    sar_exchange_expect(&task->exchange, (rank + s->n_parts) % ranks);
    sar_exchange_send(&task->exchange, (rank + ranks - s->n_parts) % ranks, &s->outgoing);
    task->repeat_stage = s->n_parts + s->n_expected < ranks;
}

/* The elements after the end of the vector come first in the result. */
static enum sar_status finish(struct sar_task *task)
{
    struct state *s = task->state;
    const struct sar_vec_desc *desc = &task->agreed->desc;
    uint64_t begin = s->owner.parts.bounds[task->comm->rank], rest = desc->count - begin;
    SAR_TRY(append_received(task));
    SAR_TRY(sar_task_reserve(task, s->vec.nnz, &task->result.vec));
    size_t cut = sar_spvec_lower_bound(desc, &s->vec, 0, rest);
    struct sar_spvec first = sar_spvec_slice(desc, &s->vec, cut, s->vec.nnz),
                     last = sar_spvec_slice(desc, &s->vec, 0, cut);
    sar_task_append(task, &first, desc->index_size, -rest, &task->result.vec);
    sar_task_append(task, &last, desc->index_size, begin, &task->result.vec);
    return SAR_OK;
}

static const struct sar_stage stages[] = {
    { .post = open },
    { .compute = sar_owner_begin, .post = sar_owner_post_push, .on_arrival = sar_owner_on_arrival },
    { .compute = sum },
    { .compute = prepare, .post = exchange },
    { .compute = finish },
    { .compute = NULL },
};

const struct sar_scheme sar_scheme_split_allgather = {
    .name = "split_allgather",
    .summary = "push to owners of contiguous ranges, concatenate the sums in log2 n steps (SparCML)",
    .unsupported_reason = sar_agreed_sparse_unsupported,
    .seconds = seconds,
    .state_size = sizeof(struct state),
    .stages = stages,
};

const struct sar_scheme sar_scheme_split_dense = {
    .name = "split_dense",
    .summary = "push to owners of contiguous ranges, gather the sums dense (SparCML)",
    .unsupported_reason = sar_agreed_sparse_unsupported,
    .seconds = seconds_dense,
    .state_size = sizeof(struct state),
    .stages = stages,
};
