/* SPDX-License-Identifier: BSD-3-Clause */
/* Conversion of magnitudes and selection by radix.
 *
 *     time of a selection = bits / 8 passes over fewer and fewer magnitudes */

#include "vector/magnitude.h"

#include <math.h>

#include "vector/half.h"

enum { DIGIT_BITS = 8, DIGITS = 1 << DIGIT_BITS };

static const struct {
    uint64_t infinite;
    int bits;
} float_formats[SAR_DTYPES] = {
    [SAR_FLOAT] = { SAR_FLOAT_INFINITY_BITS, 32 },
    [SAR_DOUBLE] = { (uint64_t)0x7ff << 52, 64 },
    [SAR_BF16] = { 0x7f80, 16 },
    [SAR_FP16] = { 0x7c00, 16 },
};

bool sar_magnitude_defined(enum sar_dtype dtype)
{
    return float_formats[dtype].bits != 0;
}

uint64_t sar_magnitude_infinite(enum sar_dtype dtype)
{
    return float_formats[dtype].infinite;
}

uint64_t sar_magnitude_max(enum sar_dtype dtype)
{
    return UINT64_MAX >> (65 - float_formats[dtype].bits);
}

static double number_of(enum sar_dtype dtype, uint64_t magnitude)
{
    double number;
    if (dtype == SAR_FLOAT)
        return (double)sar_float_from_bits((uint32_t)magnitude);
    if (dtype == SAR_BF16)
        return (double)sar_float_from_bits(sar_from_bf16((uint16_t)magnitude));
    if (dtype == SAR_FP16)
        return (double)sar_float_from_bits(sar_from_fp16((uint16_t)magnitude));
    memcpy(&number, &magnitude, sizeof number);
    return number;
}

double sar_magnitude_to_double(enum sar_dtype dtype, uint64_t magnitude)
{
    return magnitude >= float_formats[dtype].infinite ? INFINITY : number_of(dtype, magnitude);
}

static uint64_t nearest(enum sar_dtype dtype, double number)
{
    uint64_t bits;
    uint32_t single = sar_float_bits((float)number);
    if (dtype == SAR_FLOAT)
        return single;
    if (dtype == SAR_BF16)
        return sar_to_bf16(single);
    if (dtype == SAR_FP16)
        return sar_to_fp16(single);
    memcpy(&bits, &number, sizeof bits);
    return bits;
}

/* The conversion to 16 bits rounds twice, which is off by one magnitude at most. */
uint64_t sar_magnitude_ceil(enum sar_dtype dtype, double number)
{
    uint64_t magnitude = nearest(dtype, number);
    if (magnitude > 0 && number_of(dtype, magnitude - 1) >= number)
        return magnitude - 1;
    return number_of(dtype, magnitude) < number ? magnitude + 1 : magnitude;
}

/* Determine the result digit by digit, the highest first; keep only magnitudes with the digits so far. */
uint64_t sar_magnitude_select(enum sar_dtype dtype, uint64_t *magnitudes, size_t n, size_t k)
{
    for (int shift = float_formats[dtype].bits - DIGIT_BITS; shift >= 0 && n > 1; shift -= DIGIT_BITS) {
        size_t counts[DIGITS] = { 0 }, kept = 0;
        unsigned digit = DIGITS - 1;
        for (size_t i = 0; i < n; i++)
            counts[magnitudes[i] >> shift & (DIGITS - 1)]++;
        for (; counts[digit] < k; digit--)
            k -= counts[digit];
        for (size_t i = 0; i < n; i++) {
            uint64_t magnitude = magnitudes[i];
            magnitudes[kept] = magnitude;
            kept += (magnitude >> shift & (DIGITS - 1)) == digit;
        }
        n = kept;
    }
    return magnitudes[0];
}
