/* SPDX-License-Identifier: BSD-3-Clause */
/* Floats as 16 bits: bfloat16 has the float's exponents and 8 significant bits, binary16 (IEEE 754) has 11
 * and reaches from 2^-24 to 65504. Rounding is to the nearest, ties to even. Everything is done on bits,
 * without a branch, so that compilers make vectors of it.
 *
 * A small number becomes a multiple of 2^-24, the least binary16 there is, by adding 0.5: floats around it
 * lie 2^-24 apart, so that the addition itself rounds, and the low bits of the sum count the multiples. */

#ifndef SAR_TENSOR_HALF_H
#define SAR_TENSOR_HALF_H

#include <string.h>

#include "tensor/shape.h"

enum {
    SAR_FLOAT_INFINITE = 0x7f800000,
    SAR_FLOAT_HALF = 0x3f000000,        /* 0.5 */
    SAR_FP16_SHIFT = 23 - 10,           /* between the significands */
    SAR_FP16_BIAS = (127 - 15) << 23,   /* between the exponents, where a float has them */
    SAR_FP16_NORMAL = (127 - 14) << 23, /* 2^-14, as a float */
    SAR_FP16_BEYOND = (127 + 16) << 23  /* 2^16 */
};

SAR_INLINE uint32_t sar_float_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

SAR_INLINE float sar_float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* One of two. What only a branch needs, and is computed with floats, compilers put there; so they make no
 * vectors of it, since it might trap. */
SAR_INLINE uint32_t sar_choose(bool first, uint32_t a, uint32_t b)
{
    uint32_t mask = 0 - (uint32_t)first;
    return (a & mask) | (b & ~mask);
}

SAR_INLINE uint16_t sar_to_bf16(uint32_t bits)
{
    uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16, nan = bits >> 16 | 0x40;
    return (uint16_t)((bits & 0x7fffffff) > SAR_FLOAT_INFINITE ? nan : rounded);
}

SAR_INLINE uint32_t sar_from_bf16(uint16_t narrow)
{
    return (uint32_t)narrow << 16;
}

SAR_INLINE uint16_t sar_to_fp16(uint32_t bits)
{
    uint32_t sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;
    uint32_t even = size + 0xfff + (size >> SAR_FP16_SHIFT & 1);
    uint32_t normal = (even - SAR_FP16_BIAS) >> SAR_FP16_SHIFT;
    uint32_t small =
        sar_float_bits(sar_float_of(size < SAR_FP16_NORMAL ? size : (uint32_t)SAR_FP16_NORMAL) + 0.5f) -
        SAR_FLOAT_HALF;
    uint32_t special = 0x7c00 | (size > SAR_FLOAT_INFINITE ? 0x200 | (size >> SAR_FP16_SHIFT & 0x3ff) : 0);
    uint32_t narrow = sar_choose(size < SAR_FP16_NORMAL, small, normal);
    return (uint16_t)(sign | sar_choose(even >= SAR_FP16_BEYOND, special, narrow));
}

SAR_INLINE uint32_t sar_from_fp16(uint16_t narrow)
{
    uint32_t sign = (uint32_t)(narrow & 0x8000) << 16, size = narrow & 0x7fff;
    uint32_t normal = (size << SAR_FP16_SHIFT) + SAR_FP16_BIAS;
    uint32_t small = sar_float_bits(sar_float_of(SAR_FLOAT_HALF + (size & 0x3ff)) - 0.5f);
    uint32_t special = SAR_FLOAT_INFINITE | size << SAR_FP16_SHIFT;
    uint32_t wide = sar_choose(size < 0x400, small, normal);
    return sign | sar_choose(size >= 0x7c00, special, wide);
}

#endif
