/* SPDX-License-Identifier: BSD-3-Clause */
/* Magnitudes of floats as integers: their bits without the sign, which have the order of the absolute values.
 * A NaN is above infinity, and zeros are 0. Top-k selection compares magnitudes. */

#ifndef SAR_VECTOR_MAGNITUDE_H
#define SAR_VECTOR_MAGNITUDE_H

#include "base/compiler.h"
#include "vector/op_kernels.h"

/** True if a type has magnitudes: floats of 16, 32 and 64 bits. */
bool sar_magnitude_defined(enum sar_dtype dtype);

/** Returns the magnitude of infinity. */
uint64_t sar_magnitude_infinite(enum sar_dtype dtype);

/** Returns the largest magnitude, that of a NaN. */
uint64_t sar_magnitude_max(enum sar_dtype dtype);

/** Returns the magnitude of values[i]. */
SAR_INLINE uint64_t sar_magnitude(enum sar_dtype dtype, const void *values, size_t i)
{
    if (dtype == SAR_FLOAT)
        return ((const uint32_t *)values)[i] & (uint32_t)INT32_MAX;
    if (dtype == SAR_DOUBLE)
        return ((const uint64_t *)values)[i] & (uint64_t)INT64_MAX;
    return ((const uint16_t *)values)[i] & (uint16_t)INT16_MAX;
}

/** Returns the least magnitude of a number >= `number`, which is not negative and not a NaN. */
uint64_t sar_magnitude_ceil(enum sar_dtype dtype, double number);

/** Returns the number with a magnitude; infinity for the magnitude of a NaN. */
double sar_magnitude_to_double(enum sar_dtype dtype, uint64_t magnitude);

/** Returns the k-th largest of n magnitudes, 0 < k <= n, in linear time. Overwrites the array. */
uint64_t sar_magnitude_select(enum sar_dtype dtype, uint64_t *magnitudes, size_t n, size_t k);

#endif
