/* SPDX-License-Identifier: BSD-3-Clause */
/* Values that top-k selects from, with the momentum correction of Deep Gradient Compression. */

#ifndef SAR_VECTOR_DGC_H
#define SAR_VECTOR_DGC_H

#include "vector/spvec.h"

/** Plain values, or values that a gradient updates. With a gradient,
 *
 *     velocity = momentum * velocity + scale * gradient,    values = values + velocity
 *
 * Floats of 32 and 64 bits are rounded after each multiplication and addition. Floats of 16 bits are computed
 * as floats of 32 bits, and velocity and values are rounded once. The caller owns the arrays. */
struct sar_dgc {
    enum sar_dtype dtype;
    uint64_t count;       /**< values */
    void *values;         /**< read only without a gradient */
    const void *gradient; /**< or NULL */
    void *velocity;
    double momentum, scale;
    bool
        masking; /**< sar_dgc_clear zeros the velocity of all selected values, else of non-finite ones only */
};

/** Updates velocity and values [from, from + n); does nothing without a gradient. */
void sar_dgc_update(const struct sar_dgc *dgc, size_t from, size_t n);

/** Computes the magnitudes that n <= dgc->count of the values will have after the update. Each is a random
 * value of one of n intervals of equal length; so with n == count they are those of all values. */
void sar_dgc_sample(const struct sar_dgc *dgc, size_t n, uint32_t seed, uint64_t *magnitudes);

/** Returns the magnitude from which on a selected value loses its velocity. */
uint64_t sar_dgc_mask_threshold(const struct sar_dgc *dgc);

/** Zero the values at the indices of a vec, and the velocities of those that reach the mask threshold. */
void sar_dgc_clear(const struct sar_dgc *dgc, const struct sar_vec_desc *desc, const struct sar_spvec *vec);

#endif
