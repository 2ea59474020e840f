/* SPDX-License-Identifier: BSD-3-Clause */
/* Ok-Topk's split: contiguous parts whose boundaries are computed from the data, so that every part has about
 * equally many elements, and kept for R calls. Each rank cuts its own elements into p equal shares, and
 * the boundaries are the means of all ranks'. R = MPIX_SPARSE_RECOMPUTE; a thousand is what the Zen
 * paper measures as the data-dependent strawman.
 *
 * As good as a hash on the call that computes them, and as bad as contiguous ranges once the data have
 * moved on: the report's imbalance tells.
 *
 *     time = alpha log2 p / R + that of owner.h with shares f / p of the push and s of the pull
 *
 * p ranks, z elements of the fullest rank, Z of the outcome, m bytes of message for so many, f what chance
 * makes of equal parts (sar_agreed_fullest) in the calls after the one that computed boundaries. These
 * follow the elements and not the outcome: in the emptiest part a share r of z elements remains, so that s is
 * r z / Z, but no more than without boundaries, skewness / p. With y for the share of indices there that a
 * quarter of the ranks leave out,
 *
 *     y (1 + y) = (gamma^p - gamma^(p/2)) / (gamma^(p/2) - gamma^(p/4))     r^2 = (1 - y^4) / (-4 ln y)
 *
 * since what half of the ranks add to a union comes from where it is emptiest; the square root is chosen to
 * come near the times that are simulated at 4 to 128 ranks. */

#include <math.h>

#include "scheme/owner.h"

/* The sum of all ranks' boundaries must fit 64 bits. */
static const char *obstacle(const struct sar_agreed *a)
{
    const char *first = sar_sparse_obstacle(a);
    if (first != NULL)
        return first;
    return sar_times(a->shape.count, (uint64_t)a->machine.ranks) == UINT64_MAX ? "too many elements" : NULL;
}

/* Of what is pushed to the emptiest part, what remains when ranks have met there; all where there are too few
 * ranks to tell. Half way to all of it, since what few ranks add comes from fuller parts, too. */
static double remainder_of(const struct sar_agreed *a)
{
    double ranks = a->machine.ranks, half = sar_gamma_at(&a->gamma, ranks / 2);
    double late = sar_gamma_at(&a->gamma, ranks) - half, early = half - sar_gamma_at(&a->gamma, ranks / 4);
    double ratio = early > 0 ? fmax(late, 0) / early : 0, left = (sqrt(1 + 4 * ratio) - 1) / 2;
    if (ranks < 4 || left >= 1)
        return 1;
    return left > 0 ? sqrt((1 - pow(left, 4)) / (-4 * log(left))) : 0;
}

static double seconds(const struct sar_agreed *a)
{
    struct sar_map map = sar_contiguous_map(a);
    double ranks = a->machine.ranks, left = remainder_of(a) / fmax(sar_gamma_at(&a->gamma, ranks), 1);
    double share = fmin(left, a->skewness / ranks);
    struct sar_owner_terms terms = sar_owner_terms(a, &map);
    terms.push_share = sar_agreed_fullest_push(a) / ranks;
    terms.pull_share = fmax(share, sar_agreed_fullest(a, ranks, 1) / ranks);
    terms.span = fmax(terms.span, ceil((double)a->shape.count * share));
    return sar_owner_seconds(a, &terms);
}

/* Where equal shares of this rank's elements begin; an empty rank says equal ranges. */
static void set_own_bounds(const struct sar_request *request, uint64_t *bounds)
{
    const struct sar_run *run = &request->input;
    const struct sar_shape *shape = &request->agreed->shape;
    uint64_t ranks = (uint64_t)request->net->ranks;
    for (uint64_t r = 0; r <= ranks; r++) {
        size_t at = (size_t)((double)run->nnz * (double)r / (double)ranks);
        bool inside = r > 0 && at < run->nnz;
        bounds[r] = inside ? sar_index_get(run->index, shape->index_size, at) : shape->count / ranks * r;
    }
    bounds[ranks] = shape->count;
}

/* Takes no memory and is never skipped, so that all ranks keep the same boundaries whatever goes wrong. */
static void sum_bounds(struct sar_request *request)
{
    struct sar_map map = sar_contiguous_map(request->agreed);
    uint64_t *bounds = request->keep->bounds;
    sar_owner_open(request, &map);
    request->notes.partition = "recomputed";
    if (request->keep->age % request->recompute != 0)
        return;
    set_own_bounds(request, bounds);
    struct sar_dense_call call = { MPI_IN_PLACE, bounds, map.parts + 1, MPI_UINT64_T, MPI_SUM };
    sar_exchange_fail(&request->exchange,
                      sar_dense_start(request->net, &call, request->blocking, &request->dense));
}

static void settle_bounds(struct sar_request *request)
{
    struct sar_keep *keep = request->keep;
    uint64_t ranks = (uint64_t)request->net->ranks;
    for (uint64_t r = 0; r <= ranks && keep->age % request->recompute == 0; r++)
        keep->bounds[r] /= ranks;
    keep->age++;
    ((struct sar_owner *)request->state)->bounds = keep->bounds;
}

static const struct sar_stage stages[] = { { .post = sum_bounds },
                                           { .post = settle_bounds },
                                           SAR_OWNER_STAGES };

const struct sar_scheme sar_scheme_oktopk = {
    .name = "oktopk",
    .summary = "contiguous parts with boundaries recomputed from the data every so many calls (Ok-Topk)",
    .obstacle = obstacle,
    .seconds = seconds,
    .state_size = sizeof(struct sar_owner),
    .stages = stages,
};
