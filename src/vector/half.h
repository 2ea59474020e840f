/* SPDX-License-Identifier: BSD-3-Clause */
/* Conversion between floats of 32 and 16 bits. bfloat16 has the float's exponents and 8 significant bits.
 * binary16 (IEEE 754, "fp16") has 11 significant bits and ranges from 2^-24 to 65504. Rounding is to nearest,
 * ties to even. All code works on bits without branches, so that compilers vectorize it.
 *
 * A number below the normal range of binary16 becomes a multiple of 2^-24, its least number, by adding 0.5.
 * Floats near 0.5 are 2^-24 apart, so the addition rounds, and the low bits of the sum are the multiple. */

#ifndef SAR_VECTOR_HALF_H
#define SAR_VECTOR_HALF_H

#include <string.h>

#include "base/compiler.h"

enum {
    SAR_FLOAT_INFINITY_BITS = 0x7f800000,
    SAR_FLOAT_ONE_HALF_BITS = 0x3f000000, /* 0.5 */
    SAR_FP16_SHIFT = 23 - 10,             /* difference of the significands' bits */
    SAR_FP16_BIAS = (127 - 15) << 23,     /* difference of the exponents, shifted to a float's exponent */
    SAR_FP16_NORMAL = (127 - 14) << 23,   /* 2^-14, as a float */
    SAR_FP16_OVERFLOW = (127 + 16) << 23  /* 2^16 */
};

/** Returns the bits of a float. */
SAR_INLINE uint32_t sar_float_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/** Returns the float with these bits. */
SAR_INLINE float sar_float_from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/** Returns first ? a : b. With a branch, compilers would move float operations into it and not vectorize,
 * since they might trap. */
SAR_INLINE uint32_t sar_select_bits(bool first, uint32_t a, uint32_t b)
{
    uint32_t mask = 0 - (uint32_t)first;
    return (a & mask) | (b & ~mask);
}

/** Rounds a float, given as bits, to bfloat16. */
SAR_INLINE uint16_t sar_to_bf16(uint32_t bits)
{
    uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16, nan = bits >> 16 | 0x40;
    return (uint16_t)((bits & 0x7fffffff) > SAR_FLOAT_INFINITY_BITS ? nan : rounded);
}

/** Returns the bits of the float equal to a bfloat16. */
SAR_INLINE uint32_t sar_from_bf16(uint16_t half)
{
    return (uint32_t)half << 16;
}

/** Rounds a float, given as bits, to binary16. */
SAR_INLINE uint16_t sar_to_fp16(uint32_t bits)
{
    uint32_t sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;
    uint32_t even = size + 0xfff + (size >> SAR_FP16_SHIFT & 1);
    uint32_t normal = (even - SAR_FP16_BIAS) >> SAR_FP16_SHIFT;
    uint32_t small =
        sar_float_bits(sar_float_from_bits(size < SAR_FP16_NORMAL ? size : (uint32_t)SAR_FP16_NORMAL) +
                       0.5f) -
        SAR_FLOAT_ONE_HALF_BITS;
    uint32_t special =
        0x7c00 | (size > SAR_FLOAT_INFINITY_BITS ? 0x200 | (size >> SAR_FP16_SHIFT & 0x3ff) : 0);
    uint32_t narrow = sar_select_bits(size < SAR_FP16_NORMAL, small, normal);
    return (uint16_t)(sign | sar_select_bits(even >= SAR_FP16_OVERFLOW, special, narrow));
}

/** Returns the bits of the float equal to a binary16. */
SAR_INLINE uint32_t sar_from_fp16(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, size = half & 0x7fff;
    uint32_t normal = (size << SAR_FP16_SHIFT) + SAR_FP16_BIAS;
    uint32_t small = sar_float_bits(sar_float_from_bits(SAR_FLOAT_ONE_HALF_BITS + (size & 0x3ff)) - 0.5f);
    uint32_t special = SAR_FLOAT_INFINITY_BITS | size << SAR_FP16_SHIFT;
    uint32_t wide = sar_select_bits(size < 0x400, small, normal);
    return sign | sar_select_bits(size >= 0x7c00, special, wide);
}

#endif
