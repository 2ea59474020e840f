/* SPDX-License-Identifier: BSD-3-Clause */
/* Bounds of segments. No function of the math library is called, since its last bits may differ between
 * machines. */

#include "scheme/engine/segments.h"

struct sar_segments sar_segments_equal(uint64_t slots, uint64_t equal, uint64_t unit)
{
    uint64_t n = slots == 0 ? 1 : (slots + equal - 1) / equal;
    return (struct sar_segments){ .slots = slots, .equal = equal, .unit = unit, .n = (uint32_t)n };
}

void sar_segments_weigh(const struct sar_agreed *a, struct sar_segments *s)
{
    double elements = a->data.nnz_mean, all = sar_agreed_union_nnz(a, a->machine.ranks);
    if (s->n <= 1 || !sar_spread_is_known(a) || sar_spread_is_even(a))
        return;
    s->weighted = true;
    s->spread = sar_spread_make(a, a->machine.ranks);
    for (int k = 1; k <= SAR_QUANTILE_BINS; k++) {
        double one = (double)k / SAR_QUANTILE_BINS;
        s->spread.weight[k] = (elements * one + all * s->spread.weight[k]) / (elements + all);
    }
}

/* Each segment has one unit, and a share of the units that remain. */
uint64_t sar_segments_begin(const struct sar_segments *s, uint32_t i)
{
    if (i >= s->n)
        return s->slots;
    if (!s->weighted)
        return i * s->equal;
    uint64_t units = (s->slots + s->unit - 1) / s->unit;
    return (i + (uint64_t)(sar_spread_position(&s->spread, (double)i / s->n) * (double)(units - s->n))) *
           s->unit;
}
