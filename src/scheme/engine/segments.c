/* SPDX-License-Identifier: BSD-3-Clause */
/* The elements of a rank are known by quantiles: each bin has equally many. Where a rank has a share d of the
 * elements, the union of all ranks has u(d) = c d / (1 + c d): few ranks have the same elements where there
 * are few, and there are no more than all. c makes the sum that of the agreed union. No function of the math
 * library is called, since its last bits may differ between machines. */

#include "scheme/engine/segments.h"

enum {
    STEPS = 40,       /* of the search for c */
    EVEN = 65536 / 64 /* of a quantile, that it may differ by from an even vector's: by chance it does */
};

struct sar_segments sar_segments_equal(uint64_t slots, uint64_t equal, uint64_t unit)
{
    uint64_t n = slots == 0 ? 1 : (slots + equal - 1) / equal;
    return (struct sar_segments){ .slots = slots, .equal = equal, .unit = unit, .n = (uint32_t)n };
}

static double union_share(double c, double share)
{
    return c * share / (1 + c * share);
}

/* Returns the elements of the union over the length of the vector, for a c. */
static double union_of(const struct sar_segments *s, double elements, double c)
{
    double sum = 0;
    for (int k = 0; k < SAR_QUANTILE_BINS; k++) {
        double length = s->position[k + 1] - s->position[k];
        sum += length * union_share(c, elements / length);
    }
    return sum;
}

/* Returns c by bisection. `elements` and `all` are shares of the vector's length. */
static double find_c(const struct sar_segments *s, double elements, double all)
{
    double low = 0, high = 1;
    while (high < 1e9 && union_of(s, elements, high) < all)
        high *= 2;
    for (int i = 0; i < STEPS; i++) {
        double middle = (low + high) / 2;
        *(union_of(s, elements, middle) < all ? &low : &high) = middle;
    }
    return high;
}

/* Sets the positions of the quantiles. Each bin has a length, so that shares are finite. */
static void set_positions(struct sar_segments *s, const struct sar_quantiles *q)
{
    const double least = 1. / (1 << 20), most = 1 - SAR_QUANTILE_BINS * least;
    for (int k = 1; k < SAR_QUANTILE_BINS; k++)
        s->position[k] = q->index[k - 1] / (UINT16_MAX + 1.) * most + k * least;
    s->position[SAR_QUANTILE_BINS] = 1;
}

static bool is_even(const struct sar_quantiles *q)
{
    for (int k = 1; k < SAR_QUANTILE_BINS; k++) {
        int even = 65536 / SAR_QUANTILE_BINS * k;
        if (q->index[k - 1] < even - EVEN || q->index[k - 1] > even + EVEN)
            return false;
    }
    return true;
}

void sar_segments_weigh(const struct sar_agreed *a, struct sar_segments *s)
{
    const struct sar_quantiles *q = &a->data.quantiles;
    double count = (double)a->desc.count, elements = a->data.nnz_mean / count / SAR_QUANTILE_BINS,
           all = sar_agreed_union_nnz(a, a->machine.ranks) / count;
    if (s->n <= 1 || q->index[SAR_QUANTILE_BINS - 2] == 0 || elements <= 0 || is_even(q))
        return;
    s->weighted = true;
    set_positions(s, q);
    double c = find_c(s, elements, all);
    for (int k = 0; k < SAR_QUANTILE_BINS; k++) {
        double length = s->position[k + 1] - s->position[k];
        s->weight[k + 1] = s->weight[k] + elements + length * union_share(c, elements / length);
    }
    for (int k = 1; k <= SAR_QUANTILE_BINS; k++)
        s->weight[k] /= s->weight[SAR_QUANTILE_BINS];
}

/* Returns the share of the slots below which segments [0, i) have their share of the elements. */
static double position_of(const struct sar_segments *s, uint32_t i)
{
    double weight = (double)i / s->n;
    int k = 0;
    while (k < SAR_QUANTILE_BINS - 1 && s->weight[k + 1] <= weight)
        k++;
    double within = (weight - s->weight[k]) / (s->weight[k + 1] - s->weight[k]);
    return s->position[k] + within * (s->position[k + 1] - s->position[k]);
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
