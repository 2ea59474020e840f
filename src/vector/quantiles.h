/* SPDX-License-Identifier: BSD-3-Clause */
/* Quantiles of the indices of a vector: how its elements spread over its length. */

#ifndef SAR_VECTOR_QUANTILES_H
#define SAR_VECTOR_QUANTILES_H

#include <stdint.h>

#include "vector/spvec.h"

enum { SAR_QUANTILE_BINS = 16 };

/** sar_quantiles_of computes no quantiles of fewer elements: 256. Tests lower it, to SAR_QUANTILE_BINS at
 * the least. */
extern size_t sar_quantile_min_nnz;

/** About (k + 1) / SAR_QUANTILE_BINS of the elements lie below index[k] 2^-16 of the vector's length. The
 * entries ascend; all 0: unknown. */
struct sar_quantiles {
    uint16_t index[SAR_QUANTILE_BINS - 1];
};

/** Returns the quantiles of a vector in host memory. Reads SAR_QUANTILE_BINS - 1 indices. */
struct sar_quantiles sar_quantiles_of(const struct sar_vec_desc *desc, const struct sar_spvec *vec);

/** Returns the quantiles of a vector from the elements counted in samples of n equal ranges; unknown if
 * these are fewer than 64. Pure. */
struct sar_quantiles sar_quantiles_of_counts(const uint16_t counts[], size_t n);

#endif
