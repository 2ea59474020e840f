/* SPDX-License-Identifier: BSD-3-Clause */
/* Momentum correction of single values, and where samples are taken: one text for the host and for CUDA. */

#ifndef SAR_TENSOR_MOMENTUM_H
#define SAR_TENSOR_MOMENTUM_H

#include "hash/murmur3.h"
#include "tensor/half.h"

/* Rounded before anything is added: nvcc would make one operation of the two. */
SAR_INLINE float sar_product32(float a, float b)
{
#ifdef __CUDA_ARCH__
    return __fmul_rn(a, b);
#else
    return a * b;
#endif
}

SAR_INLINE double sar_product64(double a, double b)
{
#ifdef __CUDA_ARCH__
    return __dmul_rn(a, b);
#else
    return a * b;
#endif
}

#define SAR_SAME(a) (a)
#define SAR_FROM_BF16(a) sar_float_of(sar_from_bf16(a))
#define SAR_TO_BF16(a) sar_to_bf16(sar_float_bits(a))
#define SAR_FROM_FP16(a) sar_float_of(sar_from_fp16(a))
#define SAR_TO_FP16(a) sar_to_fp16(sar_float_bits(a))

/** What dgc.h says of a velocity and of a value. `type` is what memory holds, `wide` what is computed
 * with. */
#define SAR_DEFINE_MOMENTUM(name, type, wide, product, from_type, to_type)                               \
    SAR_INLINE type sar_velocity_##name(type velocity, type gradient, wide momentum, wide scale)         \
    {                                                                                                    \
        wide kept = product(momentum, from_type(velocity)), added = product(scale, from_type(gradient)); \
        return to_type(kept + added);                                                                    \
    }                                                                                                    \
    SAR_INLINE type sar_value_##name(type value, type velocity)                                          \
    {                                                                                                    \
        return to_type(from_type(value) + from_type(velocity));                                          \
    }

SAR_DEFINE_MOMENTUM(float, float, float, sar_product32, SAR_SAME, SAR_SAME)
SAR_DEFINE_MOMENTUM(double, double, double, sar_product64, SAR_SAME, SAR_SAME)
SAR_DEFINE_MOMENTUM(bf16, uint16_t, float, sar_product32, SAR_FROM_BF16, SAR_TO_BF16)
SAR_DEFINE_MOMENTUM(fp16, uint16_t, float, sar_product32, SAR_FROM_FP16, SAR_TO_FP16)

/** Stretches of values, of which the first `longer` have one more than the others. */
struct sar_stretches {
    size_t length, longer;
    uint32_t seed;
};

/** n stretches of so many values, n > 0. */
SAR_INLINE struct sar_stretches sar_stretches_of(uint64_t count, size_t n, uint32_t seed)
{
    struct sar_stretches s = { (size_t)(count / n), (size_t)(count % n), seed };
    return s;
}

/** A random place in stretch i. */
SAR_INLINE size_t sar_place_in(const struct sar_stretches *s, size_t i)
{
    size_t begin = i * s->length + (i < s->longer ? i : s->longer), length = s->length + (i < s->longer);
    uint32_t range = length < UINT32_MAX ? (uint32_t)length : UINT32_MAX;
    return begin + sar_hash_range(sar_murmur3((uint32_t)i, s->seed), range);
}

#endif
