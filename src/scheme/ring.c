/* SPDX-License-Identifier: BSD-3-Clause */
/* SparCML's sparse ring: p contiguous ranges travel around a ring of ranks. In the first p-1 steps a rank
 * adds its elements to the range that comes from the rank before and sends it on; then it has the sums of
 * one range, and in p-1 steps more all ranges' sums go around as they are, without being decoded in
 * between.
 *
 * Each rank talks to two neighbours only. Range by range the elements fill up on their way, so that most
 * steps carry the union of many ranks; and in every step all wait for the fullest range.
 *
 *     time = sum over i < p-1 of (alpha + m(F_i) beta) + (p-1) (alpha + m(F_p) beta)
 *            + (z + 2 (F_1 + … + F_(p-1)) + Z) gamma
 *
 * p ranks, z elements of the fullest, Z of the outcome, F_i of the union of i ranks in the fullest range, m
 * bytes of message for so many. */

#include <math.h>

#include "scheme/contiguous.h"
#include "tensor/reduce.h"

enum { MOST_LOOKS = 32 }; /* at how full messages are, for a price */

struct ring {
    const uint64_t *bounds;
    struct sar_run *parts;        /* this rank's elements of each range; in the end the sums */
    struct sar_message *gathered; /* sums of each range, as they arrived */
    struct sar_message outgoing;
    int step; /* of the 2 (p-1) */
};

/* Elements that k ranks have in the fullest range. */
static double fullest(const struct sar_agreed *a, double k, uint64_t span)
{
    return fmin(sar_agreed_union(a, k) * sar_contiguous_union_share(a, k), (double)span);
}

static double seconds(const struct sar_agreed *a)
{
    const struct sar_machine *m = &a->machine;
    double sums = sar_agreed_union(a, m->ranks), time = 0, work = a->nnz_max + sums;
    uint64_t span = sar_contiguous_map(a).span;
    struct sar_layout layout = sar_agreed_layout(a, span, sar_index_size(span));
    struct sar_cost pull = sar_agreed_cost(a, true, &layout, fullest(a, m->ranks, span));
    int stride = m->ranks / MOST_LOOKS + 1;
    for (int step = 1; step < m->ranks; step += stride) {
        double steps = fmin(stride, m->ranks - step), middle = step + (steps - 1) / 2;
        double elements = fullest(a, middle, span);
        struct sar_cost push = sar_agreed_cost(a, false, &layout, elements);
        time += steps * (2 * m->alpha + (push.bytes + pull.bytes) * m->beta);
        work += steps * (push.work + 2 * elements);
    }
    return time + (work + m->ranks / 2.0 * pull.work) * m->gamma; /* sums are written once */
}

/* The range that this rank sends in a step; what arrives in a step is sent in the next. */
static int range_of(const struct sar_request *request, int step)
{
    int ranks = request->net->ranks;
    return (request->net->rank + 2 * ranks - step) % ranks;
}

static bool gathering(const struct sar_request *request, int step)
{
    return step >= request->net->ranks - 1;
}

static struct sar_layout layout_of(const struct sar_request *request, int range)
{
    const struct ring *r = request->state;
    return sar_contiguous_layout(request, r->bounds, range);
}

static enum sar_status split(struct sar_request *request)
{
    struct ring *r = request->state;
    struct sar_map map = sar_contiguous_map(request->agreed);
    size_t ranks = (size_t)request->net->ranks;
    SAR_TRY(sar_request_take(request, ranks, sizeof *r->parts, &r->parts));
    SAR_TRY(sar_request_take(request, ranks, sizeof *r->gathered, &r->gathered));
    SAR_TRY(sar_contiguous_bounds(request, &map, &r->bounds));
    return sar_contiguous_split(request, r->bounds, r->parts);
}

/* Reduce what came with this rank's elements of the range; those of the ranks before come first. */
static enum sar_status add(struct sar_request *request, int range)
{
    struct ring *r = request->state;
    int before = (request->net->rank + request->net->ranks - 1) % request->net->ranks;
    struct sar_layout layout = layout_of(request, range);
    struct sar_run both[2] = { [1] = r->parts[range] };
    SAR_TRY(sar_request_decode(request, layout, before, &both[0]));
    struct sar_shape shape = sar_request_shape(request);
    shape.count = layout.span;
    shape.index_size = layout.index_size;
    return sar_request_reduce(request, &shape, both, 2, &r->parts[range]);
}

/* Messages of the steps that gather are kept until the end. */
static void choose_memory(struct sar_request *request, int step)
{
    if (!gathering(request, step)) {
        sar_request_next_scratch(request);
        return;
    }
    request->passing = request->arena;
    request->exchange.arena = request->arena;
}

static enum sar_status prepare(struct sar_request *request)
{
    struct ring *r = request->state;
    int range = range_of(request, r->step), ranks = request->net->ranks;
    if (r->step == 0)
        SAR_TRY(split(request));
    if (ranks == 1)
        return SAR_OK;
    choose_memory(request, r->step);
    if (r->step >= ranks) {
        r->outgoing = request->exchange.arrived[(request->net->rank + ranks - 1) % ranks];
        r->gathered[range] = r->outgoing;
        return SAR_OK;
    }
    if (r->step > 0)
        SAR_TRY(add(request, range));
    return sar_request_encode(request, gathering(request, r->step), layout_of(request, range),
                              &r->parts[range], &r->outgoing);
}

static void post(struct sar_request *request)
{
    struct ring *r = request->state;
    int ranks = request->net->ranks, rank = request->net->rank;
    if (ranks == 1)
        return;
    sar_exchange_expect(&request->exchange, (rank + ranks - 1) % ranks);
    sar_exchange_send(&request->exchange, (rank + 1) % ranks, &r->outgoing);
    r->step++;
    request->again = r->step < 2 * (ranks - 1);
}

static enum sar_status finish(struct sar_request *request)
{
    struct ring *r = request->state;
    int ranks = request->net->ranks, rank = request->net->rank, last = range_of(request, r->step);
    if (ranks == 1)
        return sar_request_deliver(request, &request->agreed->shape, &request->input, 1);
    r->gathered[last] = request->exchange.arrived[(rank + ranks - 1) % ranks];
    for (int range = 0; range < ranks; range++)
        if (range != (rank + 1) % ranks)
            SAR_TRY(
                sar_request_read(request, layout_of(request, range), &r->gathered[range], &r->parts[range]));
    return sar_contiguous_deliver(request, r->bounds, r->parts);
}

static const struct sar_stage stages[] = { { .compute = prepare, .post = post },
                                           { .compute = finish },
                                           { .compute = NULL } };

const struct sar_scheme sar_scheme_ring = {
    .name = "ring",
    .summary =
        "contiguous ranges travel around a ring of ranks, to be summed and then to be shared (SparCML)",
    .obstacle = sar_sparse_obstacle,
    .seconds = seconds,
    .state_size = sizeof(struct ring),
    .stages = stages,
};
