/* SPDX-License-Identifier: BSD-3-Clause */
/* Momentum correction of one value, and positions of samples; shared by the host (dgc.c) and CUDA kernels. */

#ifndef SAR_VECTOR_MOMENTUM_H
#define SAR_VECTOR_MOMENTUM_H

#include "hash/murmur3.h"
#include "vector/half.h"

/** Returns a * b, rounded. nvcc would fuse a plain product with the addition that follows. */
SAR_INLINE float sar_mul_rounded32(float a, float b)
{
#ifdef __CUDA_ARCH__
    return __fmul_rn(a, b);
#else
    return a * b;
#endif
}

/** As sar_mul_rounded32, for floats of 64 bits. */
SAR_INLINE double sar_mul_rounded64(double a, double b)
{
#ifdef __CUDA_ARCH__
    return __dmul_rn(a, b);
#else
    return a * b;
#endif
}

#define SAR_IDENTITY(a) (a)
#define SAR_FROM_BF16(a) sar_float_from_bits(sar_from_bf16(a))
#define SAR_TO_BF16(a) sar_to_bf16(sar_float_bits(a))
#define SAR_FROM_FP16(a) sar_float_from_bits(sar_from_fp16(a))
#define SAR_TO_FP16(a) sar_to_fp16(sar_float_bits(a))

/** sar_velocity_NAME and sar_value_NAME compute the next velocity and value, by the formula in dgc.h. `type`
 * is the type in memory, `wide` the type of the computation. */
#define SAR_DEFINE_MOMENTUM(name, type, wide, product, from_type, to_type)                                  \
    SAR_INLINE type sar_velocity_##name(type velocity, type gradient, wide momentum, wide scale)            \
    {                                                                                                       \
        wide decayed = product(momentum, from_type(velocity)), added = product(scale, from_type(gradient)); \
        return to_type(decayed + added);                                                                    \
    }                                                                                                       \
    SAR_INLINE type sar_value_##name(type value, type velocity)                                             \
    {                                                                                                       \
        return to_type(from_type(value) + from_type(velocity));                                             \
    }

SAR_DEFINE_MOMENTUM(float, float, float, sar_mul_rounded32, SAR_IDENTITY, SAR_IDENTITY)
SAR_DEFINE_MOMENTUM(double, double, double, sar_mul_rounded64, SAR_IDENTITY, SAR_IDENTITY)
SAR_DEFINE_MOMENTUM(bf16, uint16_t, float, sar_mul_rounded32, SAR_FROM_BF16, SAR_TO_BF16)
SAR_DEFINE_MOMENTUM(fp16, uint16_t, float, sar_mul_rounded32, SAR_FROM_FP16, SAR_TO_FP16)

/** Intervals of `length` values; the first `remainder` intervals have one value more. */
struct sar_strata {
    size_t length, remainder;
    uint32_t seed;
};

/** Returns n > 0 intervals that cover count values. */
SAR_INLINE struct sar_strata sar_strata_make(uint64_t count, size_t n, uint32_t seed)
{
    struct sar_strata s = { (size_t)(count / n), (size_t)(count % n), seed };
    return s;
}

/** Returns a random position in interval i; equal seeds give equal positions. */
SAR_INLINE size_t sar_strata_sample(const struct sar_strata *s, size_t i)
{
    size_t begin = i * s->length + (i < s->remainder ? i : s->remainder),
           length = s->length + (i < s->remainder);
    uint32_t range = length < UINT32_MAX ? (uint32_t)length : UINT32_MAX;
    return begin + sar_hash_range(sar_murmur3((uint32_t)i, s->seed), range);
}

#endif
