/* SPDX-License-Identifier: BSD-3-Clause */
/* Ok-Topk's split: contiguous parts with bounds that are computed from the data, so that all parts have
 * about equally many elements, and kept for R calls. Each rank cuts its own elements into p equal shares;
 * the bounds are the means over all ranks. R = MPIX_SPARSE_RECOMPUTE; with R = 1000 this is the
 * data-dependent scheme that the Zen paper compares with. Bounds lie between rows, and a row is sent with one
 * index, where Ok-Topk sends one for every value.
 *
 * The parts are as balanced as those of a hash in the call that computes the bounds, and as unbalanced as
 * contiguous ranges when the data have changed: the report has the imbalance.
 *
 *     time = alpha log2 p / R + that of owner.h with shares f / p of the push and s of the pull
 *
 * p ranks, z elements of the rank with most, Z of the result, f the largest part over the mean one by
 * chance (sar_agreed_max_load) in the calls after the one that computed the bounds. Bounds follow the
 * inputs and not the result: s is the share of the fullest part in the union, by quantiles. Where these are
 * unknown, a share r of the elements pushed to the sparsest part remains after the reduction, so that s is
 * r z / Z, but at most skewness / p, as without bounds. Let y be the share of indices there that a quarter
 * of the ranks leave out. Then
 *
 *     y (1 + y) = (gamma^p - gamma^(p/2)) / (gamma^(p/2) - gamma^(p/4))     r^2 = (1 - y^4) / (-4 ln y)
 *
 * because the elements that half of the ranks add to a union are in its sparsest part. The square root was
 * chosen to fit the simulated times of 4 to 128 ranks. */

#include <math.h>

#include "scheme/engine/owner.h"
#include "scheme/engine/spread.h"
#include "scheme/scheme.h"

/* The sum of all ranks' bounds must fit 64 bits. */
static const char *unsupported_reason(const struct sar_agreed *a)
{
    const char *reason = sar_agreed_sparse_unsupported(a);
    if (reason != NULL)
        return reason;
    return sar_mul_saturate(a->desc.count, (uint64_t)a->machine.ranks) == UINT64_MAX ? "too many elements"
                                                                                     : NULL;
}

/* Returns r: the share of the elements pushed to the sparsest part that remains after the reduction; 1 for
 * less than 4 ranks. The square root is halfway to 1, because the elements that few ranks add come from
 * denser parts, too. */
static double remainder_of(const struct sar_agreed *a)
{
    double ranks = a->machine.ranks, half = sar_densification_at(&a->data.densification, ranks / 2);
    double late = sar_densification_at(&a->data.densification, ranks) - half,
           early = half - sar_densification_at(&a->data.densification, ranks / 4);
    double ratio = early > 0 ? fmax(late, 0) / early : 0, left = (sqrt(1 + 4 * ratio) - 1) / 2;
    if (ranks < 4 || left >= 1)
        return 1;
    return left > 0 ? sqrt((1 - pow(left, 4)) / (-4 * log(left))) : 0;
}

/* Returns the share of the result that the largest part has, but for the variation by chance. */
static double max_union_share(const struct sar_agreed *a)
{
    double ranks = a->machine.ranks;
    if (sar_spread_is_known(a)) {
        struct sar_spread rank = sar_spread_make(a, 1), all = sar_spread_make(a, ranks);
        return sar_spread_max_share_of_even(&rank, &all, a->machine.ranks);
    }
    double left = remainder_of(a) / fmax(sar_densification_at(&a->data.densification, ranks), 1);
    return fmin(left, a->data.skewness / ranks);
}

static double seconds(const struct sar_agreed *a)
{
    double ranks = a->machine.ranks, share = max_union_share(a);
    struct sar_owner_cost_terms terms = sar_owner_cost_terms(a, sar_range_parts_map(a));
    terms.push_share = sar_agreed_max_push_load(a, ranks) / ranks;
    terms.pull_share = fmax(share, sar_agreed_max_load(a, ranks, ranks, 1) / ranks);
    terms.max_slots = fmax(terms.max_slots, ceil((double)a->desc.count * share));
    return sar_owner_seconds(a, &terms);
}

/* Sets the bounds of equal shares of this rank's elements; equal ranges for a rank without elements. */
static void set_own_bounds(const struct sar_task *task, uint64_t *bounds)
{
    const struct sar_spvec *vec = &task->input.vec;
    const struct sar_vec_desc *desc = &task->agreed->desc;
    uint64_t ranks = (uint64_t)task->comm->ranks;
    for (uint64_t r = 0; r <= ranks; r++) {
        size_t at = (size_t)((double)vec->nnz * (double)r / (double)ranks);
        bool inside = r > 0 && at < vec->nnz;
        bounds[r] = inside ? sar_index_get(vec->index, desc->index_size, at) : desc->count / ranks * r;
    }
    bounds[ranks] = desc->count;
}

/* Allocates nothing and is never skipped, so that all ranks keep equal bounds, whatever fails. */
static void sum_bounds(struct sar_task *task)
{
    uint64_t *bounds = task->args.oktopk->begin;
    sar_owner_open(task, sar_range_parts_map(task->agreed), NULL);
    task->report.partition = "recomputed";
    if (task->args.oktopk->calls % task->args.oktopk_interval != 0)
        return;
    set_own_bounds(task, bounds);
    struct sar_dense_args call = { MPI_IN_PLACE, bounds,  (uint64_t)task->comm->ranks + 1,
                                   MPI_UINT64_T, MPI_SUM, 0 };
    sar_exchange_fail(&task->exchange,
                      sar_dense_allreduce_start(task->comm, &call, task->args.may_block, &task->allreduce));
}

static void average_bounds(struct sar_task *task)
{
    struct sar_oktopk_bounds *oktopk = task->args.oktopk;
    uint64_t ranks = (uint64_t)task->comm->ranks;
    for (uint64_t r = 0; r <= ranks && oktopk->calls % task->args.oktopk_interval == 0; r++)
        oktopk->begin[r] /= ranks;
    oktopk->calls++;
    ((struct sar_owner *)task->state)->parts.bounds = oktopk->begin;
}

static const struct sar_stage stages[] = { { .post = sum_bounds },
                                           { .post = average_bounds },
                                           SAR_OWNER_STAGES };

const struct sar_scheme sar_scheme_oktopk = {
    .name = "oktopk",
    .summary = "contiguous parts with boundaries recomputed from the data every so many calls (Ok-Topk)",
    .unsupported_reason = unsupported_reason,
    .seconds = seconds,
    .state_size = sizeof(struct sar_owner),
    .stages = stages,
};
