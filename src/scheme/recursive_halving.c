/* SPDX-License-Identifier: BSD-3-Clause */
/* Recursive halving, a reduce_scatter: the first half of Rabenseifner's allreduce (ICCS 2004), of sparse
 * vectors. The elements are put in the order of their owners. In step i each of 2^L positions of ranks keeps
 * the elements of one half of the owners that it still serves, sends those of the other half to the position
 * 2^(L-1-i) away, and reduces those that it receives.
 *
 * It takes few messages in sequence, and equal indices are reduced on the way to their owner: it suits short
 * messages, and owners that have much larger parts than others, as of contiguous parts of a skewed vector. In
 * the push of `balanced` the owner of the largest part receives it from all ranks.
 *
 * If p is not a power of two, the first 2 (p - 2^L) ranks pair up, as in recursive_doubling: the even ones
 * send all their elements to the odd ones, which send them their sums at the end.
 *
 *     time = sum over i < L of (alpha + m_i beta + 2 z_i gamma),   z_i = z gamma^(2^i) s_i
 *
 * L = floor(log2 p), z elements of a rank, s_i the share of them that the owners of a half have, where it is
 * largest; m_i bytes of a message of z_i elements. If p is not a power of two there are two more messages, of
 * z and of the largest part, and gamma^(2^(i+1)) replaces gamma^(2^i). */

#include <limits.h>
#include <math.h>
#include <string.h>

#include "scheme/engine/owner.h"
#include "scheme/engine/pairwise.h"
#include "scheme/engine/spread.h"
#include "scheme/scheme.h"
#include "vector/dense.h"
#include "vector/partition.h"
#include "vector/spvec.h"

struct state {
    struct sar_partition_map map;
    const uint64_t *bounds; /* in the order of owners: rank r owns [bounds[r], bounds[r + 1]) */
    struct sar_spvec vec;   /* elements that this rank still serves; indices count from their first owner's */
    struct sar_msg outgoing;
    int distance; /* of the last exchange, in positions; at first the size of the group */
};

/* Ranks that own consecutive parts: [begin, end). */
struct owners {
    int begin, end;
};

static const char *unsupported_reason(const struct sar_agreed *a)
{
    return sar_owner_unsupported_reason(a, sar_agreed_block_map(a));
}

static const char *redundant_reason(const struct sar_agreed *a)
{
    return a->machine.ranks <= 2 ? "balanced sends as much, in as many steps" : NULL;
}

/* Returns the share that the largest of all parts has in the union of k ranks. */
static double max_part_share(const struct sar_agreed *a, const struct sar_partition_map *map, double k)
{
    double ranks = a->machine.ranks;
    if (map->kind == SAR_PARTITION_RANGE)
        return fmax(sar_range_parts_max_union_share(a, k), sar_range_parts_even_share(map));
    double imbalance = sar_agreed_max_load(a, ranks, k, 1);
    if (a->data.pull_parts == a->machine.ranks)
        imbalance = fmax(imbalance, a->data.pull_imbalance);
    return fmin(imbalance / ranks, 1);
}

/* Returns the share of the fullest `n` contiguous parts of those that begin with a multiple of n. */
static double max_run_share(const struct sar_agreed *a, const struct sar_partition_map *map, double n,
                            double k)
{
    struct sar_spread spread = sar_spread_make(a, k);
    double length = n * sar_range_parts_even_share(map), most = 0;
    for (double begin = 0; begin < 1; begin += length)
        most = fmax(most, sar_spread_share(&spread, begin, fmin(begin + length, 1)));
    return most;
}

/* Returns the share that n parts in a row have. Where it is not known how the elements spread, they are the
 * largest part and others: half of these are equal, half as large as the largest. */
static double max_share(const struct sar_agreed *a, const struct sar_partition_map *map, double n, double k)
{
    double ranks = a->machine.ranks;
    bool contiguous = map->kind == SAR_PARTITION_RANGE;
    if (n >= ranks)
        return 1;
    if (contiguous && sar_spread_is_known(a))
        return max_run_share(a, map, n, k);
    double largest = max_part_share(a, map, k), equal = largest + (n - 1) * (1 - largest) / (ranks - 1);
    if (!contiguous)
        return fmin(equal, 1);
    return fmax(fmin((equal + n * largest) / 2, 1), fmin(n * sar_range_parts_even_share(map), 1));
}

/* Returns the seconds in which the owners of `parts` parts receive their share of what k ranks have. */
static double stage_seconds(const struct sar_agreed *a, const struct sar_partition_map *map, int distance,
                            double parts, double k)
{
    uint64_t slots = sar_mul_saturate(map->slots_max, (uint64_t)parts);
    slots = slots < a->desc.count ? slots : a->desc.count;
    double max_over_mean = k == 1 && a->data.nnz_mean > 0 ? a->data.nnz_max / a->data.nnz_mean : 1;
    double nnz = sar_agreed_union_nnz(a, k) * max_over_mean * max_share(a, map, parts, k);
    nnz = fmin(nnz, (double)slots);
    struct sar_wire_layout layout = sar_agreed_layout(a, slots, a->desc.index_size);
    struct sar_link link = sar_agreed_link(a, distance);
    struct sar_cost message = sar_agreed_cost(a, false, &layout, nnz);
    return link.alpha + message.bytes * link.beta + (2 * nnz + message.work) * a->machine.gamma;
}

static double seconds(const struct sar_agreed *a)
{
    struct sar_partition_map map = sar_agreed_block_map(a);
    int ranks = a->machine.ranks, size = sar_pof2_below(ranks), group_ranks = size == ranks ? 1 : 2;
    double time = a->data.nnz_mean * a->machine.gamma, k = group_ranks; /* put in order, or copied */
    for (int distance = size / 2; distance > 0; distance /= 2) {
        time += stage_seconds(a, &map, distance, fmin((double)distance * group_ranks, ranks - 1), k);
        k = fmin(2 * k, ranks);
    }
    if (group_ranks == 2)
        time += stage_seconds(a, &map, 1, ranks, 1) + stage_seconds(a, &map, 1, 1, ranks);
    return time;
}

/* Returns the ranks that own the elements of `n` positions, from a multiple of n on. */
static struct owners owners_of(const struct sar_pof2 *f, int position, int n)
{
    int begin = position - position % n, end = begin + n;
    return (struct owners){ begin + (begin < f->paired / 2 ? begin : f->paired / 2),
                            end + (end < f->paired / 2 ? end : f->paired / 2) };
}

/* Indices count from the first element of the first owner; their size does not change. */
static struct sar_wire_layout layout_of(const struct sar_task *task, struct owners owners)
{
    const uint64_t *bounds = ((const struct state *)task->state)->bounds;
    return sar_agreed_layout(task->agreed, bounds[owners.end] - bounds[owners.begin],
                             task->agreed->desc.index_size);
}

/* Replaces slots of parts by indices in the order of owners. */
static void add_bounds(const struct sar_task *task, const struct sar_spvec parts[], void *index)
{
    const struct state *s = task->state;
    unsigned size = task->agreed->desc.index_size;
    size_t at = 0;
    for (int r = 0; r < task->comm->ranks; r++)
        for (size_t i = 0; i < parts[r].nnz; i++, at++)
            sar_index_set(index, size, at, s->bounds[r] + sar_index_get(parts[r].index, sizeof(uint32_t), i));
}

/* Puts the input in the order of owners. Contiguous parts are in that order. */
static enum sar_status order(struct sar_task *task)
{
    struct state *s = task->state;
    const struct sar_vec_desc *desc = &task->agreed->desc;
    const struct sar_spvec *in = &task->input.vec;
    struct sar_arena *arena = task->memory.step_arena;
    struct sar_spvec *parts, slots;
    struct sar_span span = sar_task_span(task, "partition");
    SAR_TRY(sar_task_alloc(task, s->map.parts, sizeof *parts, &parts));
    SAR_TRY(sar_spvec_alloc(desc, in->nnz, arena, &s->vec));
    slots = s->vec;
    if (desc->index_size != sizeof(uint32_t))
        SAR_TRY(sar_arena_alloc(arena, in->nnz, sizeof(uint32_t), &slots.index));
    SAR_TRY(sar_partition_into(&s->map, desc, in, arena, &slots, parts));
    add_bounds(task, parts, s->vec.index);
    span.work = sar_span_work_make("partition", in->nnz, desc->element_size, 0);
    sar_task_span_end(task, &span);
    return SAR_OK;
}

/* Drops the zeros of sums of dense buffers, which some formats would lose. */
static enum sar_status encode(struct sar_task *task, struct owners owners, struct sar_spvec *vec)
{
    struct state *s = task->state;
    if (task->agreed->call.dense_face)
        SAR_TRY(sar_spvec_drop_zeros(&task->agreed->desc, task->memory.step_arena, vec));
    return sar_task_encode(task, false, layout_of(task, owners), vec, &s->outgoing);
}

static void open(struct sar_task *task)
{
    struct state *s = task->state;
    s->map = sar_agreed_block_map(task->agreed);
    bool is_range = s->map.kind == SAR_PARTITION_RANGE;
    task->report.partition = sar_partition_map_name(&s->map);
    task->report.grain = is_range ? 0 : (int)fmin((double)s->map.grain, INT_MAX);
    s->distance = sar_pof2_below(task->comm->ranks);
}

static enum sar_status begin(struct sar_task *task)
{
    struct sar_pof2 f = sar_pof2_of(task->comm);
    struct state *s = task->state;
    sar_task_next_step_arena(task);
    SAR_TRY(sar_range_parts_bounds(task, &s->map, &s->bounds));
    s->vec = task->input.vec;
    if (s->map.kind != SAR_PARTITION_RANGE)
        SAR_TRY(order(task));
    return sar_pof2_sends(&f) ? encode(task, (struct owners){ 0, task->comm->ranks }, &s->vec) : SAR_OK;
}

static void post_pof2_in(struct sar_task *task)
{
    sar_pof2_post_in(task, &((struct state *)task->state)->outgoing);
}

/* Reduces the peer's elements with those of this rank; those of the lower rank come first. */
static enum sar_status reduce_with_peer(struct sar_task *task, struct owners owners, int peer)
{
    struct state *s = task->state;
    struct sar_wire_layout layout = layout_of(task, owners);
    struct sar_vec_desc desc;
    struct sar_spvec both[2];
    both[peer < task->comm->rank] = s->vec;
    SAR_TRY(sar_task_decode(task, layout, &task->exchange.arrived[peer], &both[peer > task->comm->rank]));
    desc = sar_task_desc(task);
    desc.count = layout.slots;
    return sar_task_reduce(task, &desc, both, 2, &s->vec);
}

/* Reduces what the last stage received: from the paired rank, or from the peer of the last exchange. */
static enum sar_status reduce_received(struct sar_task *task, const struct sar_pof2 *f)
{
    const struct state *s = task->state;
    struct owners owners = owners_of(f, f->group_rank, s->distance);
    if (s->distance < f->size)
        return reduce_with_peer(task, owners, sar_pof2_peer(f, s->distance));
    return sar_pof2_receives(f) ? reduce_with_peer(task, owners, f->rank - 1) : SAR_OK;
}

/* Splits the vector at the first element of an owner. */
static enum sar_status split_at(struct sar_task *task, int first_owner, int owner, struct sar_spvec halves[2])
{
    const struct state *s = task->state;
    return sar_spvec_split(&task->agreed->desc, &s->vec, s->bounds[owner] - s->bounds[first_owner],
                           task->memory.step_arena, halves);
}

static enum sar_status prepare(struct sar_task *task)
{
    struct sar_pof2 f = sar_pof2_of(task->comm);
    struct state *s = task->state;
    struct sar_spvec halves[2];
    if (f.group_rank < 0 || f.size == 1)
        return SAR_OK;
    sar_task_next_step_arena(task);
    SAR_TRY(reduce_received(task, &f));
    int distance = s->distance / 2;
    struct owners lower = owners_of(&f, f.group_rank & ~distance, distance),
                  theirs = owners_of(&f, f.group_rank ^ distance, distance);
    bool in_upper = (f.group_rank & distance) != 0;
    SAR_TRY(split_at(task, lower.begin, lower.end, halves));
    s->vec = halves[in_upper];
    return encode(task, theirs, &halves[!in_upper]);
}

static void exchange(struct sar_task *task)
{
    struct sar_pof2 f = sar_pof2_of(task->comm);
    struct state *s = task->state;
    if (f.size == 1)
        return;
    s->distance /= 2;
    if (f.group_rank >= 0) {
        sar_exchange_expect(&task->exchange, sar_pof2_peer(&f, s->distance));
        sar_exchange_send(&task->exchange, sar_pof2_peer(&f, s->distance), &s->outgoing);
    }
    task->repeat_stage = s->distance > 1;
}

/* A position of two ranks has the sums of both. */
static enum sar_status end(struct sar_task *task)
{
    struct sar_pof2 f = sar_pof2_of(task->comm);
    struct state *s = task->state;
    struct sar_spvec halves[2];
    if (f.group_rank < 0)
        return SAR_OK;
    sar_task_next_step_arena(task);
    SAR_TRY(reduce_received(task, &f));
    if (!sar_pof2_receives(&f))
        return SAR_OK;
    SAR_TRY(split_at(task, f.rank - 1, f.rank, halves));
    s->vec = halves[1];
    return encode(task, (struct owners){ f.rank - 1, f.rank }, &halves[0]);
}

static void post_pof2_out(struct sar_task *task)
{
    sar_pof2_post_out(task, &((struct state *)task->state)->outgoing);
}

/* Writes the sums of this rank's elements. Those of dense buffers count from its part's beginning. */
static enum sar_status finish(struct sar_task *task)
{
    struct sar_pof2 f = sar_pof2_of(task->comm);
    struct state *s = task->state;
    const struct sar_vec_desc *desc = &task->agreed->desc;
    struct sar_spvec *out = &task->result.vec;
    if (sar_pof2_sends(&f))
        SAR_TRY(sar_task_decode(task, layout_of(task, (struct owners){ f.rank, f.rank + 1 }),
                                &task->exchange.arrived[f.rank + 1], &s->vec));
    SAR_TRY(sar_task_reserve(task, s->vec.nnz, out));
    if (s->map.kind == SAR_PARTITION_RANGE) {
        sar_task_append(task, &s->vec, desc->index_size,
                        task->agreed->call.dense_face ? 0 : s->bounds[f.rank], out);
    } else if (s->vec.nnz > 0) {
        sar_partition_slots_to_indices(&s->map, (uint32_t)f.rank, s->vec.index, desc->index_size, s->vec.nnz,
                                       out->index, desc->index_size);
        memcpy(out->value, s->vec.value, s->vec.nnz * desc->element_size);
        out->nnz = s->vec.nnz;
    }
    return SAR_OK;
}

static const struct sar_stage stages[] = {
    { .post = open },
    { .compute = begin, .post = post_pof2_in },
    { .compute = prepare, .post = exchange },
    { .compute = end, .post = post_pof2_out },
    { .compute = finish },
    { .compute = NULL },
};

const struct sar_scheme sar_scheme_recursive_halving = {
    .name = "recursive_halving",
    .summary = "log2 n stages in which pairs exchange and reduce half of what they have",
    .collectives = 1u << SAR_REDUCE_SCATTER,
    .unsupported_reason = unsupported_reason,
    .redundant_reason = redundant_reason,
    .seconds = seconds,
    .state_size = sizeof(struct state),
    .stages = stages,
};
