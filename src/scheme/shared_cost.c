/* SPDX-License-Identifier: BSD-3-Clause */
/* The price of `shared`, and the decision to replicate the reduction: each rank reduces all elements
 * instead of its part. This pays if it costs less than a barrier, or if ranks accumulate directly into
 * their dense buffers, since then no rank writes a result that all have to read. */

#include <math.h>

#include "scheme/shared_internal.h"
#include "vector/dense.h"

enum {
    REPLICATED_MAX_VALUES = 150, /* values of a rank up to which to replicate */
    REPLICATED_MAX_OTHERS = 1024 /* values of all other ranks up to which to replicate */
};

/* Measured on four ranks, 6.4e7 floats, 1 %, in units of the time of plain sums. */
static const double BARRIER_SECONDS = 0.5, /* of alpha */
    ACCUMULATE_WORK = 0.55,                /* of gamma: to accumulate an element into a dense buffer */
    OUTPUT_WORK = 0.7; /* of gamma: to write an element of the result there, as other schemes do */

static bool is_small(const struct sar_agreed *a, double nnz)
{
    double values = nnz * (double)a->desc.row_len, others = a->machine.ranks - 1;
    return others < 1 || (values <= REPLICATED_MAX_VALUES && values * others <= REPLICATED_MAX_OTHERS);
}

static double seconds_of_parts(const struct sar_agreed *a)
{
    double barrier = BARRIER_SECONDS * a->machine.alpha, ranks = a->machine.ranks;
    double element = (double)(a->desc.element_size + a->desc.index_size);
    double result = sar_agreed_union_nnz(a, ranks);
    double moved = result / ranks + a->data.nnz_mean + (a->call.dense_face ? result : a->data.nnz_mean);
    return (a->call.dense_face ? 2 : 3) * barrier + a->data.nnz_mean * a->machine.gamma +
           element * moved * a->machine.memory;
}

/* Seconds beyond those of writing a result to a dense buffer; INFINITY if ranks cannot accumulate. */
static double seconds_of_accumulation(const struct sar_agreed *a, const struct sar_vec_desc *desc)
{
    double ranks = a->machine.ranks, result = sar_agreed_union_nnz(a, ranks);
    double extra = ACCUMULATE_WORK * ranks * a->data.nnz_mean - OUTPUT_WORK * result;
    if (!a->call.dense_face || a->data.disjoint ||
        !sar_dense_can_accumulate(desc, NULL, (size_t)a->machine.ranks))
        return INFINITY;
    return BARRIER_SECONDS * a->machine.alpha + fmax(extra, 0) * a->machine.gamma;
}

bool sar_shared_prefers_replicated(const struct sar_agreed *agreed, const struct sar_vec_desc *desc,
                                   double nnz)
{
    bool small = is_small(agreed, nnz);
    if (small || !agreed->call.dense_face)
        return small;
    struct sar_agreed actual = *agreed;
    actual.data.nnz_mean = nnz;
    return seconds_of_accumulation(&actual, desc) < seconds_of_parts(&actual);
}

double sar_shared_seconds(const struct sar_agreed *a)
{
    double element = (double)(a->desc.element_size + a->desc.index_size), ranks = a->machine.ranks;
    if (a->machine.ranks == 1)
        return element * a->data.nnz_mean * a->machine.memory;
    double other = is_small(a, a->data.nnz_mean)
                       ? BARRIER_SECONDS * a->machine.alpha + ranks * a->data.nnz_mean * a->machine.gamma
                       : seconds_of_parts(a);
    return fmin(seconds_of_accumulation(a, &a->desc), other);
}
