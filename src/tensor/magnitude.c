/* SPDX-License-Identifier: BSD-3-Clause */
#include "tensor/magnitude.h"

#include <math.h>

#include "tensor/half.h"

enum { DIGIT_BITS = 8, DIGITS = 1 << DIGIT_BITS };

static const struct {
    uint64_t infinite;
    int bits;
} kinds[SAR_BASES] = {
    [SAR_FLOAT] = { SAR_FLOAT_INFINITE, 32 },
    [SAR_DOUBLE] = { (uint64_t)0x7ff << 52, 64 },
    [SAR_BF16] = { 0x7f80, 16 },
    [SAR_FP16] = { 0x7c00, 16 },
};

bool sar_magnitude_defined(enum sar_base base)
{
    return kinds[base].bits != 0;
}

uint64_t sar_magnitude_infinite(enum sar_base base)
{
    return kinds[base].infinite;
}

uint64_t sar_magnitude_last(enum sar_base base)
{
    return UINT64_MAX >> (65 - kinds[base].bits);
}

static double number_of(enum sar_base base, uint64_t magnitude)
{
    double number;
    if (base == SAR_FLOAT)
        return (double)sar_float_of((uint32_t)magnitude);
    if (base == SAR_BF16)
        return (double)sar_float_of(sar_from_bf16((uint16_t)magnitude));
    if (base == SAR_FP16)
        return (double)sar_float_of(sar_from_fp16((uint16_t)magnitude));
    memcpy(&number, &magnitude, sizeof number);
    return number;
}

double sar_magnitude_number(enum sar_base base, uint64_t magnitude)
{
    return magnitude >= kinds[base].infinite ? INFINITY : number_of(base, magnitude);
}

static uint64_t nearest(enum sar_base base, double number)
{
    uint64_t bits;
    uint32_t single = sar_float_bits((float)number);
    if (base == SAR_FLOAT)
        return single;
    if (base == SAR_BF16)
        return sar_to_bf16(single);
    if (base == SAR_FP16)
        return sar_to_fp16(single);
    memcpy(&bits, &number, sizeof bits);
    return bits;
}

/* Numbers of 16 bits are rounded twice on their way, which takes them no farther than to a neighbour. */
uint64_t sar_magnitude_from(enum sar_base base, double number)
{
    uint64_t magnitude = nearest(base, number);
    if (magnitude > 0 && number_of(base, magnitude - 1) >= number)
        return magnitude - 1;
    return number_of(base, magnitude) < number ? magnitude + 1 : magnitude;
}

/* Digit by digit, the highest first: only those that agree with the outcome so far are looked at again. */
uint64_t sar_magnitude_select(enum sar_base base, uint64_t *magnitudes, size_t n, size_t k)
{
    for (int shift = kinds[base].bits - DIGIT_BITS; shift >= 0 && n > 1; shift -= DIGIT_BITS) {
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
