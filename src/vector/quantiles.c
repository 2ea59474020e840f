/* SPDX-License-Identifier: BSD-3-Clause */
#include "vector/quantiles.h"

enum { MIN_COUNTED = 4 * SAR_QUANTILE_BINS }; /* elements that tell quantiles */

size_t sar_quantile_min_nnz = 256;

/* Returns a share of the vector's length as a quantile stores it. A share below 1 may have been rounded to
 * 1. */
static uint16_t stored(double share)
{
    return share < 1 ? (uint16_t)(share * (UINT16_MAX + 1.)) : UINT16_MAX;
}

struct sar_quantiles sar_quantiles_of(const struct sar_vec_desc *desc, const struct sar_spvec *vec)
{
    struct sar_quantiles q = { { 0 } };
    if (vec->nnz < sar_quantile_min_nnz)
        return q;
    for (size_t k = 1; k < SAR_QUANTILE_BINS; k++) {
        uint64_t index = sar_index_get(vec->index, desc->index_size, vec->nnz / SAR_QUANTILE_BINS * k);
        q.index[k - 1] = stored((double)index / (double)desc->count);
    }
    return q;
}

struct sar_quantiles sar_quantiles_of_counts(const uint16_t counts[], size_t n)
{
    struct sar_quantiles q = { { 0 } };
    uint64_t total = 0, below = 0;
    size_t k = 1;
    for (size_t i = 0; i < n; i++)
        total += counts[i];
    for (size_t i = 0; i < n && total >= MIN_COUNTED; i++) {
        for (; k < SAR_QUANTILE_BINS && below + counts[i] > total * k / SAR_QUANTILE_BINS; k++)
            q.index[k - 1] = stored((double)i / (double)n);
        below += counts[i];
    }
    return q;
}
