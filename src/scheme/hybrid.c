/* SPDX-License-Identifier: BSD-3-Clause */
/* Hybrid: sparse first, dense when the sums have filled up. After T stages of recursive doubling all ranks
 * of a group of 2^T have equal sums. Then follows Rabenseifner's dense allreduce between groups: recursive
 * halving, in which each rank keeps and reduces half of its range and sends the other half, and recursive
 * doubling back.
 *
 *     T = max(1, floor(log2(count / (3 s k)))), at most L
 *     time = recursive doubling's of T stages
 *            + sum over i = 1 … L-T of (2 alpha + 2 M / 2^i beta + 3 count / 2^i gamma)
 *
 * L = floor(log2 p), k elements of the rank with most, s the size of an element with its index over that of
 * the element, M bytes of the dense vector. T is the largest with 3 s k 2^T < count: the switch comes
 * before sparse messages exceed a third of dense ones. */

#include <math.h>

#include "scheme/engine/pairwise.h"
#include "scheme/scheme.h"
#include "vector/spvec.h"

struct hybrid {
    struct sar_pairwise doubling; /* first */
    int step;                     /* of the 2 (L-T) dense steps */
    struct sar_spvec kept_half;   /* the half that this rank keeps; indices count from its beginning */
};

/* Returns 2^T. */
static int group_of(const struct sar_agreed *a)
{
    double element = (double)a->desc.element_size, size = (element + a->desc.index_size) / element;
    double groups = (double)a->desc.count / (3 * size * fmax(a->data.nnz_max, 1));
    int power = sar_pof2_below(a->machine.ranks), group = power < 2 ? 1 : 2;
    while (group < power && 2.0 * group <= groups)
        group *= 2;
    return group;
}

static const char *redundant_reason(const struct sar_agreed *a)
{
    bool same = group_of(a) == sar_pof2_below(a->machine.ranks);
    return same ? "never goes dense, so that recursive_doubling does the same" : NULL;
}

static double seconds(const struct sar_agreed *a)
{
    const struct sar_machine *m = &a->machine;
    int power = sar_pof2_below(m->ranks), group = group_of(a);
    double time = sar_pairwise_seconds(a, group);
    uint64_t slots = a->desc.count;
    const struct sar_wire_policy dense = { .preferred = &sar_wire_dense };
    for (int distance = power / 2; distance >= group; distance /= 2) {
        slots = (slots + 1) / 2;
        double nnz = (double)slots;
        struct sar_wire_layout layout = sar_agreed_layout(a, slots, a->desc.index_size);
        struct sar_cost message = sar_agreed_cost_with(a, true, &dense, &layout, nnz);
        time += 2 * (m->alpha + message.bytes * m->beta) + (2 * message.work + 3 * nnz) * m->gamma;
    }
    return time;
}

/* Returns the dense steps in one direction, L-T. */
static int halvings(const struct sar_task *task, const struct sar_pof2 *f)
{
    int n = 0;
    for (int distance = group_of(task->agreed); distance < f->size; distance *= 2)
        n++;
    return n;
}

/* Returns the distance of the exchange of a step, in positions of the group. */
static int distance_of(const struct sar_task *task, const struct sar_pof2 *f, int step)
{
    int n = halvings(task, f);
    return step < n ? f->size / 2 >> step : group_of(task->agreed) << (step - n);
}

struct index_range {
    uint64_t from, to;
};

static struct index_range half(struct index_range whole, bool upper)
{
    uint64_t middle = whole.to - (whole.to - whole.from) / 2;
    return upper ? (struct index_range){ middle, whole.to } : (struct index_range){ whole.from, middle };
}

/* Returns the range of a position after the halvings at all distances down to this one. */
static struct index_range range_of(const struct sar_task *task, const struct sar_pof2 *f, int group_rank,
                                   int distance)
{
    struct index_range range = { 0, task->agreed->desc.count };
    for (int d = f->size / 2; d >= distance; d /= 2)
        range = half(range, (group_rank & d) != 0);
    return range;
}

/* Indices count from the beginning of the range; their size does not change. */
static struct sar_wire_layout layout_of(const struct sar_task *task, struct index_range range)
{
    return sar_agreed_layout(task->agreed, range.to - range.from, task->agreed->desc.index_size);
}

/* Reduces the received half with the one that this rank keeps; the lower position's elements come first. */
static enum sar_status reduce(struct sar_task *task, const struct sar_pof2 *f, int distance)
{
    struct hybrid *h = task->state;
    struct sar_wire_layout layout = layout_of(task, range_of(task, f, f->group_rank, distance));
    bool in_upper = (f->group_rank & distance) != 0;
    struct sar_spvec both[2];
    both[in_upper] = h->kept_half;
    SAR_TRY(
        sar_task_decode(task, layout, &task->exchange.arrived[sar_pof2_peer(f, distance)], &both[!in_upper]));
    struct sar_vec_desc desc = sar_task_desc(task);
    desc.count = layout.slots;
    return sar_task_reduce(task, &desc, both, 2, &h->doubling.vec);
}

/* Concatenates the received half and that of this rank. */
static enum sar_status join(struct sar_task *task, const struct sar_pof2 *f, int distance)
{
    struct hybrid *h = task->state;
    const struct sar_vec_desc *desc = &task->agreed->desc;
    int peer = f->group_rank ^ distance;
    bool in_upper = (f->group_rank & distance) != 0;
    struct sar_wire_layout layout = layout_of(task, range_of(task, f, peer, distance));
    struct index_range lower = range_of(task, f, f->group_rank & ~distance, distance);
    struct sar_spvec both[2], whole;
    both[in_upper] = h->doubling.vec;
    SAR_TRY(sar_task_decode(task, layout, &task->exchange.arrived[sar_pof2_rank(f, peer)], &both[!in_upper]));
    SAR_TRY(sar_spvec_alloc(desc, both[0].nnz + both[1].nnz, task->memory.step_arena, &whole));
    whole.nnz = 0;
    sar_task_append(task, &both[0], desc->index_size, 0, &whole);
    sar_task_append(task, &both[1], desc->index_size, lower.to - lower.from, &whole);
    h->doubling.vec = whole;
    return SAR_OK;
}

/* Splits the vector in two halves, and encodes the one that the peer keeps. */
static enum sar_status halve(struct sar_task *task, const struct sar_pof2 *f, int distance)
{
    struct hybrid *h = task->state;
    struct index_range lower = range_of(task, f, f->group_rank & ~distance, distance),
                       theirs = range_of(task, f, f->group_rank ^ distance, distance);
    struct sar_spvec halves[2];
    bool in_upper = (f->group_rank & distance) != 0;
    SAR_TRY(sar_spvec_split(&task->agreed->desc, &h->doubling.vec, lower.to - lower.from,
                            task->memory.step_arena, halves));
    h->kept_half = halves[in_upper];
    return sar_task_encode(task, true, layout_of(task, theirs), &halves[!in_upper], &h->doubling.outgoing);
}

static enum sar_status apply_received(struct sar_task *task, const struct sar_pof2 *f, int step)
{
    int distance = distance_of(task, f, step);
    return step < halvings(task, f) ? reduce(task, f, distance) : join(task, f, distance);
}

static enum sar_status prepare(struct sar_task *task)
{
    struct sar_pof2 f = sar_pof2_of(task->comm);
    struct hybrid *h = task->state;
    int n = halvings(task, &f), distance = distance_of(task, &f, h->step);
    if (n == 0 || f.group_rank < 0)
        return SAR_OK;
    SAR_TRY(h->step == 0 ? sar_pairwise_reduce_received(task) : apply_received(task, &f, h->step - 1));
    if (h->step < n)
        return halve(task, &f, distance);
    struct sar_wire_layout layout = layout_of(task, range_of(task, &f, f.group_rank, distance));
    return sar_task_encode(task, true, layout, &h->doubling.vec, &h->doubling.outgoing);
}

static void exchange(struct sar_task *task)
{
    struct sar_pof2 f = sar_pof2_of(task->comm);
    struct hybrid *h = task->state;
    int n = halvings(task, &f), peer = sar_pof2_peer(&f, distance_of(task, &f, h->step));
    if (n == 0)
        return;
    if (f.group_rank >= 0) {
        sar_exchange_expect(&task->exchange, peer);
        sar_exchange_send(&task->exchange, peer, &h->doubling.outgoing);
    }
    h->step++;
    task->repeat_stage = h->step < 2 * n;
}

static enum sar_status join_last(struct sar_task *task)
{
    struct sar_pof2 f = sar_pof2_of(task->comm);
    const struct hybrid *h = task->state;
    return h->step == 0 || f.group_rank < 0 ? SAR_OK : apply_received(task, &f, h->step - 1);
}

static void open(struct sar_task *task)
{
    ((struct hybrid *)task->state)->doubling.limit = group_of(task->agreed);
    task->wire_policy[1].preferred = &sar_wire_dense;
}

static const struct sar_stage stages[] = {
    { .post = open },         SAR_PAIRWISE_STAGES_IN,  { .compute = prepare, .post = exchange },
    { .compute = join_last }, SAR_PAIRWISE_STAGES_OUT, { .compute = NULL }
};

const struct sar_scheme sar_scheme_hybrid = {
    .name = "hybrid",
    .summary = "recursive doubling while sparse, then dense recursive halving and doubling",
    .unsupported_reason = sar_agreed_sparse_unsupported,
    .redundant_reason = redundant_reason,
    .seconds = seconds,
    .state_size = sizeof(struct hybrid),
    .stages = stages,
};
