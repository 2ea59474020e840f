/* SPDX-License-Identifier: BSD-3-Clause */
/* Magnitudes of floats as whole numbers: their bits without the sign, which order as they do. A NaN is above
 * infinity, and all zeros are 0. */

#ifndef SAR_TENSOR_MAGNITUDE_H
#define SAR_TENSOR_MAGNITUDE_H

#include "tensor/shape.h"

/** Whether a type has magnitudes: floats do. */
bool sar_magnitude_defined(enum sar_base base);

/** The magnitudes of infinity and, above all others, of the last NaN. */
uint64_t sar_magnitude_infinite(enum sar_base base);
uint64_t sar_magnitude_last(enum sar_base base);

/** The magnitude of values[i]. */
SAR_INLINE uint64_t sar_magnitude(enum sar_base base, const void *values, size_t i)
{
    if (base == SAR_FLOAT)
        return ((const uint32_t *)values)[i] & (uint32_t)INT32_MAX;
    if (base == SAR_DOUBLE)
        return ((const uint64_t *)values)[i] & (uint64_t)INT64_MAX;
    return ((const uint16_t *)values)[i] & (uint16_t)INT16_MAX;
}

/** The least magnitude that is not below a number, which is not negative and no NaN. */
uint64_t sar_magnitude_from(enum sar_base base, double number);

/** The number that has a magnitude; infinity for those of NaNs. */
double sar_magnitude_number(enum sar_base base, uint64_t magnitude);

/** The k-th largest of n magnitudes, 0 < k <= n, in linear time. The array is put into disorder. */
uint64_t sar_magnitude_select(enum sar_base base, uint64_t *magnitudes, size_t n, size_t k);

#endif
