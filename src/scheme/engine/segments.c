/* SPDX-License-Identifier: BSD-3-Clause */
/* Bounds of segments. No function of the math library is called but fabs, fmax and sqrt, which are exact: the
 * last bits of others may differ between machines. */

#include "scheme/engine/segments.h"

#include <math.h>

/* Share of the length by which a quantile may differ from an even vector's: at least this, and three standard
 * deviations of a few elements. */
static const double EVEN = 1. / 64;

struct sar_segments sar_segments_equal(uint64_t slots, uint64_t equal, uint64_t unit)
{
    uint64_t n = slots == 0 ? 1 : (slots + equal - 1) / equal;
    return (struct sar_segments){ .slots = slots, .equal = equal, .unit = unit, .n = (uint32_t)n };
}

static bool is_even(const struct sar_quantiles *q, double elements)
{
    double slack = fmax(EVEN, 3 * 0.5 / sqrt(fmax(elements, 1)));
    for (int k = 1; k < SAR_QUANTILE_BINS; k++)
        if (fabs(q->index[k - 1] / 65536. - (double)k / SAR_QUANTILE_BINS) > slack)
            return false;
    return true;
}

void sar_segments_weigh(const struct sar_agreed *a, struct sar_segments *s)
{
    double elements = a->data.nnz_mean, all = sar_agreed_union_nnz(a, a->machine.ranks);
    if (s->n <= 1 || !sar_spread_is_known(a) || is_even(&a->data.quantiles, a->data.nnz_max))
        return;
    s->weighted = true;
    s->spread = sar_spread_make(a, a->machine.ranks);
    for (int k = 1; k <= SAR_QUANTILE_BINS; k++) {
        double one = (double)k / SAR_QUANTILE_BINS;
        s->spread.weight[k] = (elements * one + all * s->spread.weight[k]) / (elements + all);
    }
}

/* Returns the share of the slots below which segments [0, i) have their share of the elements. */
static double position_of(const struct sar_segments *s, uint32_t i)
{
    const double *position = s->spread.position, *sum = s->spread.weight;
    double weight = (double)i / s->n;
    int k = 0;
    while (k < SAR_QUANTILE_BINS - 1 && sum[k + 1] <= weight)
        k++;
    return position[k] + (weight - sum[k]) / (sum[k + 1] - sum[k]) * (position[k + 1] - position[k]);
}

/* Each segment has one unit, and a share of the units that remain. */
uint64_t sar_segments_begin(const struct sar_segments *s, uint32_t i)
{
    if (i >= s->n)
        return s->slots;
    if (!s->weighted)
        return i * s->equal;
    uint64_t units = (s->slots + s->unit - 1) / s->unit;
    return (i + (uint64_t)(position_of(s, i) * (double)(units - s->n))) * s->unit;
}
