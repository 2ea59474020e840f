/* SPDX-License-Identifier: BSD-3-Clause */
/* Sparse first, dense when the sums have filled up: T stages of recursive doubling, after which groups of 2^T
 * ranks have the same, then Rabenseifner's dense allreduce between groups: recursive halving, in which each
 * rank keeps and reduces half of what it has and sends the other half away, and recursive doubling back.
 *
 *     T = max(1, floor(log2(count / (3 s k)))), at most L
 *     time = recursive doubling's of T stages
 *            + sum over i = 1 … L-T of (2 alpha + 2 M / 2^i beta + 3 count / 2^i gamma)
 *
 * L = floor(log2 p), k elements of the fullest rank, s the size of an element with its index over that of
 * the element, M bytes of the dense vector. That is 3 s k 2^T < count: the switch comes before sparse
 * messages grow past a third of dense ones. */

#include <math.h>

#include "scheme/doubling.h"
#include "tensor/stretch.h"

struct hybrid {
    struct sar_doubling doubling;
    int step;            /* of the 2 (L-T) dense ones */
    struct sar_run kept; /* of the half that this rank keeps, indices counting from its beginning */
};

/* 2^T. */
static int group_of(const struct sar_agreed *a)
{
    double element = (double)a->shape.element_size, size = (element + a->shape.index_size) / element;
    double groups = (double)a->shape.count / (3 * size * fmax(a->nnz_max, 1));
    int power = sar_power_below(a->machine.ranks), group = power < 2 ? 1 : 2;
    while (group < power && 2.0 * group <= groups)
        group *= 2;
    return group;
}

static const char *redundant(const struct sar_agreed *a)
{
    bool same = group_of(a) == sar_power_below(a->machine.ranks);
    return same ? "never goes dense, so that recursive_doubling does the same" : NULL;
}

static double seconds(const struct sar_agreed *a)
{
    const struct sar_machine *m = &a->machine;
    int power = sar_power_below(m->ranks), group = group_of(a);
    double time = sar_doubling_seconds(a, group);
    uint64_t span = a->shape.count;
    for (int distance = power / 2; distance >= group; distance /= 2) {
        span = (span + 1) / 2;
        double elements = (double)span;
        struct sar_layout layout = sar_agreed_layout(a, span, a->shape.index_size);
        struct sar_cost message = sar_agreed_cost_in(a, true, &sar_wire_dense, &layout, elements);
        time += 2 * (m->alpha + message.bytes * m->beta) + (2 * message.work + 3 * elements) * m->gamma;
    }
    return time;
}

/* Dense steps in one direction. */
static int halvings(const struct sar_request *request, const struct sar_fold *f)
{
    int n = 0;
    for (int distance = group_of(request->agreed); distance < f->power; distance *= 2)
        n++;
    return n;
}

/* Distance in places of the exchange of a step. */
static int distance_of(const struct sar_request *request, const struct sar_fold *f, int step)
{
    int n = halvings(request, f);
    return step < n ? f->power / 2 >> step : group_of(request->agreed) << (step - n);
}

struct stretch {
    uint64_t from, to;
};

/* Half of a stretch. */
static struct stretch half(struct stretch whole, bool upper)
{
    uint64_t middle = whole.to - (whole.to - whole.from) / 2;
    return upper ? (struct stretch){ middle, whole.to } : (struct stretch){ whole.from, middle };
}

/* What a place has once it has halved at all distances down to this one. */
static struct stretch stretch_of(const struct sar_request *request, const struct sar_fold *f, int place,
                                 int distance)
{
    struct stretch s = { 0, request->agreed->shape.count };
    for (int d = f->power / 2; d >= distance; d /= 2)
        s = half(s, (place & d) != 0);
    return s;
}

/* Indices count from the beginning of the stretch, and are not made narrower. */
static struct sar_layout layout_of(const struct sar_request *request, struct stretch s)
{
    return sar_agreed_layout(request->agreed, s.to - s.from, request->agreed->shape.index_size);
}

/* Reduce what came of the half that this rank keeps; lower places' elements come first. */
static enum sar_status reduce(struct sar_request *request, const struct sar_fold *f, int distance)
{
    struct hybrid *h = request->state;
    struct sar_layout layout = layout_of(request, stretch_of(request, f, f->place, distance));
    bool above = (f->place & distance) != 0;
    struct sar_run both[2];
    both[above] = h->kept;
    SAR_TRY(sar_request_decode(request, layout, sar_fold_peer(f, distance), &both[!above]));
    struct sar_shape shape = sar_request_shape(request);
    shape.count = layout.span;
    return sar_request_reduce(request, &shape, both, 2, &h->doubling.mine);
}

/* Put what came of the other half together with this one. */
static enum sar_status join(struct sar_request *request, const struct sar_fold *f, int distance)
{
    struct hybrid *h = request->state;
    const struct sar_shape *shape = &request->agreed->shape;
    int peer = f->place ^ distance;
    bool above = (f->place & distance) != 0;
    struct sar_layout layout = layout_of(request, stretch_of(request, f, peer, distance));
    struct stretch lower = stretch_of(request, f, f->place & ~distance, distance);
    struct sar_run both[2], whole;
    both[above] = h->doubling.mine;
    SAR_TRY(sar_request_decode(request, layout, sar_fold_rank(f, peer), &both[!above]));
    SAR_TRY(sar_run_take(shape, both[0].nnz + both[1].nnz, request->passing, &whole));
    whole.nnz = 0;
    sar_request_append(request, &both[0], shape->index_size, 0, &whole);
    sar_request_append(request, &both[1], shape->index_size, lower.to - lower.from, &whole);
    h->doubling.mine = whole;
    return SAR_OK;
}

/* Cut what is here in two, and encode the half that the peer keeps. */
static enum sar_status halve(struct sar_request *request, const struct sar_fold *f, int distance)
{
    struct hybrid *h = request->state;
    const struct sar_shape *shape = &request->agreed->shape;
    const struct sar_run *mine = &h->doubling.mine;
    struct stretch lower = stretch_of(request, f, f->place & ~distance, distance),
                   theirs = stretch_of(request, f, f->place ^ distance, distance);
    size_t cut = sar_run_find(shape, mine, 0, lower.to - lower.from);
    struct sar_run halves[2] = { sar_run_slice(shape, mine, 0, cut),
                                 sar_run_slice(shape, mine, cut, mine->nnz) };
    bool above = (f->place & distance) != 0;
    SAR_TRY(sar_run_rebase(shape, lower.to - lower.from, shape->index_size, request->passing, &halves[1]));
    h->kept = halves[above];
    return sar_request_encode(request, true, layout_of(request, theirs), &halves[!above],
                              &h->doubling.outgoing);
}

static enum sar_status absorb(struct sar_request *request, const struct sar_fold *f, int step)
{
    int distance = distance_of(request, f, step);
    return step < halvings(request, f) ? reduce(request, f, distance) : join(request, f, distance);
}

static enum sar_status prepare(struct sar_request *request)
{
    struct sar_fold f = sar_fold_of(request->net);
    struct hybrid *h = request->state;
    int n = halvings(request, &f), distance = distance_of(request, &f, h->step);
    if (n == 0 || f.place < 0)
        return SAR_OK;
    SAR_TRY(h->step == 0 ? sar_doubling_absorb(request) : absorb(request, &f, h->step - 1));
    if (h->step < n)
        return halve(request, &f, distance);
    struct sar_layout layout = layout_of(request, stretch_of(request, &f, f.place, distance));
    return sar_request_encode(request, true, layout, &h->doubling.mine, &h->doubling.outgoing);
}

static void exchange(struct sar_request *request)
{
    struct sar_fold f = sar_fold_of(request->net);
    struct hybrid *h = request->state;
    int n = halvings(request, &f), peer = sar_fold_peer(&f, distance_of(request, &f, h->step));
    if (n == 0)
        return;
    if (f.place >= 0) {
        sar_exchange_expect(&request->exchange, peer);
        sar_exchange_send(&request->exchange, peer, &h->doubling.outgoing);
    }
    h->step++;
    request->again = h->step < 2 * n;
}

static enum sar_status join_last(struct sar_request *request)
{
    struct sar_fold f = sar_fold_of(request->net);
    const struct hybrid *h = request->state;
    return h->step == 0 || f.place < 0 ? SAR_OK : absorb(request, &f, h->step - 1);
}

static void open(struct sar_request *request)
{
    ((struct hybrid *)request->state)->doubling.limit = group_of(request->agreed);
    request->own_wire[1] = &sar_wire_dense;
}

static const struct sar_stage stages[] = {
    { .post = open },         SAR_DOUBLING_IN,  { .compute = prepare, .post = exchange },
    { .compute = join_last }, SAR_DOUBLING_OUT, { .compute = NULL }
};

const struct sar_scheme sar_scheme_hybrid = {
    .name = "hybrid",
    .summary = "recursive doubling while sparse, then dense recursive halving and doubling",
    .obstacle = sar_sparse_obstacle,
    .redundant = redundant,
    .seconds = seconds,
    .state_size = sizeof(struct hybrid),
    .stages = stages,
};
