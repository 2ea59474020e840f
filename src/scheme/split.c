/* SPDX-License-Identifier: BSD-3-Clause */
#include "scheme/split.h"

#include <math.h>

#include "tensor/reduce.h"
#include "tensor/stretch.h"

/* Parts that a step brings to a rank that has so many. */
static int more(int parts, int ranks)
{
    return parts < ranks - parts ? parts : ranks - parts;
}

/* Elements of the fullest of all stretches of so many parts, where the fullest part has a share of them. */
static double fullest(double sums, double share, double parts, double ranks)
{
    return sums * (share + (parts - 1) * (1 - share) / fmax(ranks - 1, 1));
}

double sar_split_seconds(const struct sar_agreed *a, const struct sar_wire *pull_wire)
{
    const struct sar_machine *m = &a->machine;
    double ranks = m->ranks, share = sar_contiguous_share(a), sums = sar_agreed_union(a, ranks);
    double sums_share = sar_contiguous_union_share(a, ranks);
    uint64_t part = sar_contiguous_map(a).span;
    struct sar_layout layout = sar_agreed_layout(a, part, sar_index_size(part));
    struct sar_cost push = sar_agreed_cost(a, false, &layout, a->nnz_max * share);
    double work = a->nnz_max + a->nnz_mean * ranks * share + 2 * sums + (ranks - 1) * push.work;
    double time = sar_agreed_exchange(a, ranks - 1, (ranks - 1) * push.bytes);
    layout.index_size = a->shape.index_size;
    for (int parts = 1; parts < m->ranks; parts += more(parts, m->ranks)) {
        double moved = more(parts, m->ranks);
        layout.span = part * (uint64_t)moved;
        double elements = fmin(fullest(sums, sums_share, moved, ranks), (double)layout.span);
        struct sar_cost pull = sar_agreed_cost_in(a, true, pull_wire, &layout, elements);
        time += m->alpha + pull.bytes * m->beta;
        work += pull.work;
    }
    return time + work * m->gamma;
}

void sar_split_open(struct sar_request *request, const struct sar_wire *pull_wire)
{
    struct sar_split *s = request->state;
    struct sar_map map = sar_contiguous_map(request->agreed);
    request->own_wire[1] = pull_wire;
    sar_owner_open(request, &map);
    s->parts = 1;
}

/* Elements of n parts, a rank's own and those behind it. */
static uint64_t length(const struct sar_request *request, int rank, int n)
{
    const uint64_t *bounds = ((struct sar_owner *)request->state)->bounds;
    int end = rank + n, ranks = request->net->ranks;
    return end < ranks ? bounds[end] - bounds[rank] : bounds[ranks] - bounds[rank] + bounds[end - ranks];
}

/* Of messages about them. Indices are sent as they stand, and not made narrower. */
static struct sar_layout layout_of(const struct sar_request *request, int rank, int n)
{
    return sar_agreed_layout(request->agreed, length(request, rank, n), request->agreed->shape.index_size);
}

enum sar_status sar_split_sum(struct sar_request *request)
{
    struct sar_split *s = request->state;
    const struct sar_shape *shape = &request->agreed->shape;
    struct sar_layout layout = sar_contiguous_layout(request, s->owner.bounds, request->net->rank);
    struct sar_run sums;
    sar_request_next_scratch(request);
    SAR_TRY(sar_owner_sum(request, &sums));
    SAR_TRY(sar_run_take(shape, sums.nnz, request->arena, &s->have));
    s->have.nnz = 0;
    sar_request_append(request, &sums, layout.index_size, 0, &s->have);
    return SAR_OK;
}

/* Put what came behind what is here. */
static enum sar_status absorb(struct sar_request *request)
{
    struct sar_split *s = request->state;
    const struct sar_shape *shape = &request->agreed->shape;
    int rank = request->net->rank, peer = (rank + s->parts) % request->net->ranks;
    struct sar_run theirs, both;
    if (s->coming == 0)
        return SAR_OK;
    SAR_TRY(sar_request_decode(request, layout_of(request, peer, s->coming), peer, &theirs));
    SAR_TRY(sar_run_take(shape, s->have.nnz + theirs.nnz, request->arena, &both));
    both.nnz = 0;
    sar_request_append(request, &s->have, shape->index_size, 0, &both);
    sar_request_append(request, &theirs, shape->index_size, length(request, rank, s->parts), &both);
    s->have = both;
    return SAR_OK;
}

enum sar_status sar_split_prepare(struct sar_request *request)
{
    struct sar_split *s = request->state;
    const struct sar_shape *shape = &request->agreed->shape;
    int n = more(s->parts + s->coming, request->net->ranks);
    sar_request_next_scratch(request);
    SAR_TRY(absorb(request));
    if (n == 0)
        return SAR_OK;
    struct sar_layout layout = layout_of(request, request->net->rank, n);
    struct sar_run first = sar_run_slice(shape, &s->have, 0, sar_run_find(shape, &s->have, 0, layout.span));
    SAR_TRY(sar_request_encode(request, true, layout, &first, &s->outgoing));
    if (s->coming == 0)
        s->have = first; /* all of it, as the others read it */
    return SAR_OK;
}

void sar_split_exchange(struct sar_request *request)
{
    struct sar_split *s = request->state;
    int ranks = request->net->ranks, rank = request->net->rank;
    s->parts += s->coming;
    s->coming = more(s->parts, ranks);
    if (s->coming == 0)
        return;
    sar_exchange_expect(&request->exchange, (rank + s->parts) % ranks);
    sar_exchange_send(&request->exchange, (rank + ranks - s->parts) % ranks, &s->outgoing);
    request->again = s->parts + s->coming < ranks;
}

/* The elements around the end of the vector come first. */
enum sar_status sar_split_finish(struct sar_request *request)
{
    struct sar_split *s = request->state;
    const struct sar_shape *shape = &request->agreed->shape;
    uint64_t before = s->owner.bounds[request->net->rank], behind = shape->count - before;
    SAR_TRY(absorb(request));
    SAR_TRY(request->sink->room(request->sink, request, s->have.nnz, &request->output));
    size_t cut = sar_run_find(shape, &s->have, 0, behind);
    struct sar_run first = sar_run_slice(shape, &s->have, cut, s->have.nnz),
                   last = sar_run_slice(shape, &s->have, 0, cut);
    sar_request_append(request, &first, shape->index_size, -behind, &request->output);
    sar_request_append(request, &last, shape->index_size, before, &request->output);
    return SAR_OK;
}
