/* SPDX-License-Identifier: BSD-3-Clause */
/* SparCML's sparse ring: p contiguous ranges travel around a ring of ranks. In each of the first p-1 steps
 * a rank adds its elements to the range that it receives from the rank before, and sends the sums to the
 * next rank. Then it has the sums of one range. In p-1 more steps the sums of all ranges go around the
 * ring, undecoded.
 *
 * Each rank exchanges messages with two neighbours only. The ranges fill up on their way, so that most
 * steps carry the union of many ranks; and in every step all ranks wait for the largest range. Ranges consist
 * of whole rows, and a row is sent with one index, where SparCML sends one for every value.
 *
 *     time = sum over i < p-1 of (alpha + m(F_i) beta) + (p-1) (alpha + m(F_p) beta)
 *            + (z + 2 (F_1 + … + F_(p-1)) + Z) gamma
 *
 * p ranks, z elements of the rank with most, Z of the result, F_i of the union of i ranks in the largest
 * range, m the bytes of a message of this many elements. */

#include <math.h>

#include "scheme/engine/range_parts.h"
#include "scheme/scheme.h"
#include "vector/reduce.h"

enum { MAX_SAMPLES = 32 }; /* steps that the price looks at */

struct ring {
    const uint64_t *bounds;
    struct sar_spvec *parts;  /* this rank's elements of each range; at the end the sums */
    struct sar_msg *gathered; /* sums of each range, as received */
    struct sar_msg outgoing;
    int step; /* of the 2 (p-1) steps */
};

/* Elements of the union of k ranks in the largest range. */
static double max_part_nnz(const struct sar_agreed *a, double k, uint64_t slots)
{
    return fmin(sar_agreed_union_nnz(a, k) * sar_range_parts_max_union_share(a, k), (double)slots);
}

static double seconds(const struct sar_agreed *a)
{
    const struct sar_machine *m = &a->machine;
    double sums = sar_agreed_union_nnz(a, m->ranks), time = 0, work = a->data.nnz_max + sums;
    uint64_t slots = sar_range_parts_map(a).slots_max;
    struct sar_wire_layout layout = sar_agreed_layout(a, slots, sar_index_size(slots));
    struct sar_cost pull = sar_agreed_cost(a, true, &layout, max_part_nnz(a, m->ranks, slots));
    int stride = m->ranks / MAX_SAMPLES + 1;
    for (int step = 1; step < m->ranks; step += stride) {
        double steps = fmin(stride, m->ranks - step), middle = step + (steps - 1) / 2;
        double nnz = max_part_nnz(a, middle, slots);
        struct sar_cost push = sar_agreed_cost(a, false, &layout, nnz);
        time += steps * (2 * m->alpha + (push.bytes + pull.bytes) * m->beta);
        work += steps * (push.work + 2 * nnz);
    }
    return time + (work + m->ranks / 2.0 * pull.work) * m->gamma; /* sums are encoded once */
}

/* Returns the range that this rank sends in a step: the one that it received in the step before. */
static int range_of(const struct sar_task *task, int step)
{
    int ranks = task->comm->ranks;
    return (task->comm->rank + 2 * ranks - step) % ranks;
}

static bool gathering(const struct sar_task *task, int step)
{
    return step >= task->comm->ranks - 1;
}

static struct sar_wire_layout layout_of(const struct sar_task *task, int range)
{
    const struct ring *r = task->state;
    return sar_range_parts_layout(task, r->bounds, range);
}

static enum sar_status split(struct sar_task *task)
{
    struct ring *r = task->state;
    struct sar_partition_map map = sar_range_parts_map(task->agreed);
    size_t ranks = (size_t)task->comm->ranks;
    SAR_TRY(sar_task_alloc(task, ranks, sizeof *r->parts, &r->parts));
    SAR_TRY(sar_task_alloc(task, ranks, sizeof *r->gathered, &r->gathered));
    SAR_TRY(sar_range_parts_bounds(task, &map, &r->bounds));
    return sar_range_parts_split(task, r->bounds, r->parts);
}

/* Adds this rank's elements to the received range; those of the ranks before come first. */
static enum sar_status add_own(struct sar_task *task, int range)
{
    struct ring *r = task->state;
    int before = (task->comm->rank + task->comm->ranks - 1) % task->comm->ranks;
    struct sar_wire_layout layout = layout_of(task, range);
    struct sar_spvec both[2] = { [1] = r->parts[range] };
    SAR_TRY(sar_task_decode(task, layout, &task->exchange.arrived[before], &both[0]));
    struct sar_vec_desc desc = sar_task_desc(task);
    desc.count = layout.slots;
    desc.index_size = layout.index_size;
    return sar_task_reduce(task, &desc, both, 2, &r->parts[range]);
}

/* Messages of the gathering steps are kept until the end. */
static void choose_arena(struct sar_task *task, int step)
{
    if (!gathering(task, step)) {
        sar_task_next_step_arena(task);
        return;
    }
    task->memory.step_arena = task->memory.call_arena;
    task->exchange.arena = task->memory.call_arena;
}

static enum sar_status prepare(struct sar_task *task)
{
    struct ring *r = task->state;
    int range = range_of(task, r->step), ranks = task->comm->ranks;
    if (r->step == 0)
        SAR_TRY(split(task));
    if (ranks == 1)
        return SAR_OK;
    choose_arena(task, r->step);
    if (r->step >= ranks) {
        r->outgoing = task->exchange.arrived[(task->comm->rank + ranks - 1) % ranks];
        r->gathered[range] = r->outgoing;
        return SAR_OK;
    }
    if (r->step > 0)
        SAR_TRY(add_own(task, range));
    return sar_task_encode(task, gathering(task, r->step), layout_of(task, range), &r->parts[range],
                           &r->outgoing);
}

static void post(struct sar_task *task)
{
    struct ring *r = task->state;
    int ranks = task->comm->ranks, rank = task->comm->rank;
    if (ranks == 1)
        return;
    sar_exchange_expect(&task->exchange, (rank + ranks - 1) % ranks);
    sar_exchange_send(&task->exchange, (rank + 1) % ranks, &r->outgoing);
    r->step++;
    task->repeat_stage = r->step < 2 * (ranks - 1);
}

static enum sar_status finish(struct sar_task *task)
{
    struct ring *r = task->state;
    int ranks = task->comm->ranks, rank = task->comm->rank, last = range_of(task, r->step);
    if (ranks == 1)
        return sar_task_reduce_to_output(task, &task->agreed->desc, &task->input.vec, 1);
    r->gathered[last] = task->exchange.arrived[(rank + ranks - 1) % ranks];
    struct sar_task_part *parts;
    size_t n = 0;
    SAR_TRY(sar_task_alloc(task, (size_t)ranks, sizeof *parts, &parts));
    for (int range = 0; range < ranks; range++)
        if (range != (rank + 1) % ranks)
            parts[n++] = (struct sar_task_part){ layout_of(task, range), &r->parts[range],
                                                 &r->gathered[range], NULL, false };
    SAR_TRY(sar_task_decode_parts(task, parts, n));
    return sar_range_parts_write_output(task, r->bounds, r->parts);
}

static const struct sar_stage stages[] = { { .compute = prepare, .post = post },
                                           { .compute = finish },
                                           { .compute = NULL } };

const struct sar_scheme sar_scheme_ring = {
    .name = "ring",
    .summary =
        "contiguous ranges travel around a ring of ranks, to be summed and then to be shared (SparCML)",
    .unsupported_reason = sar_agreed_sparse_unsupported,
    .seconds = seconds,
    .state_size = sizeof(struct ring),
    .stages = stages,
};
