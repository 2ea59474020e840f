/* SPDX-License-Identifier: BSD-3-Clause */
/* Typed arithmetic: one set of loops for each pair of basic type and op.
 *
 * The identity of a float sum is -0.0: it leaves the bits of everything else alone, +0.0 would turn -0.0
 * into +0.0. Integers wrap around as unsigned ones do.
 *
 * Numbers of 16 bits are added and multiplied as floats, and each outcome is rounded. A float has more than
 * twice their significant bits, so that a sum comes out as if only the exact one had been rounded. */

#include <float.h>
#include <math.h>

#include "tensor/arithmetic.h"

/* `wide` is the type to compute in: unsigned for integers, so that overflow is defined. */
#define DEFINE_KERNELS(name, type, wide, apply, identity)                                         \
    static void name##_fill(void *out, size_t n)                                                  \
    {                                                                                             \
        type *o = out;                                                                            \
        for (size_t i = 0; i < n; i++)                                                            \
            o[i] = (type)(identity);                                                              \
    }                                                                                             \
    SAR_CLONES static void name##_fold(void *out, const void *in, size_t n)                       \
    {                                                                                             \
        type *restrict o = out;                                                                   \
        const type *restrict v = in;                                                              \
        for (size_t i = 0; i < n; i++)                                                            \
            o[i] = (type)apply(wide, o[i], v[i]);                                                 \
    }                                                                                             \
    static void name##_zero(void *out, size_t n)                                                  \
    {                                                                                             \
        const type zero = 0;                                                                      \
        for (type *o = out, *end = o + n; o < end; o++)                                           \
            *o = (type)apply(wide, *o, zero);                                                     \
    }                                                                                             \
    static void name##_rows(void *out, const uint32_t *at, const void *in, size_t n, size_t row)  \
    {                                                                                             \
        type *restrict o = out;                                                                   \
        const type *restrict v = in;                                                              \
        if (row != 1) {                                                                           \
            for (size_t i = 0; i < n; i++)                                                        \
                name##_fold(o + at[i] * row, v + i * row, row);                                   \
            return;                                                                               \
        }                                                                                         \
        for (size_t i = 0; i < n; i++)                                                            \
            o[at[i]] = (type)apply(wide, o[at[i]], v[i]);                                         \
    }                                                                                             \
    static const struct sar_kernels name = { sizeof(type), name##_fill, name##_fold, name##_zero, \
                                             name##_rows };

#define DEFINE_TYPE(name, type, wide, zero, lowest, highest)      \
    DEFINE_KERNELS(name##_sum, type, wide, SAR_FOLD_SUM, zero)    \
    DEFINE_KERNELS(name##_max, type, wide, SAR_FOLD_MAX, lowest)  \
    DEFINE_KERNELS(name##_min, type, wide, SAR_FOLD_MIN, highest) \
    DEFINE_KERNELS(name##_prod, type, wide, SAR_FOLD_PROD, 1)

DEFINE_TYPE(float32, float, float, -0.0f, -INFINITY, INFINITY)
DEFINE_TYPE(float64, double, double, -0.0, -INFINITY, INFINITY)
DEFINE_TYPE(int32, int32_t, uint32_t, 0, INT32_MIN, INT32_MAX)
DEFINE_TYPE(int64, int64_t, uint64_t, 0, INT64_MIN, INT64_MAX)
DEFINE_TYPE(uint32, uint32_t, uint32_t, 0, 0, UINT32_MAX)
DEFINE_TYPE(uint64, uint64_t, uint64_t, 0, 0, UINT64_MAX)

/* Identities: -0.0, the two infinities and 1. */
DEFINE_KERNELS(bf16_sum, uint16_t, bf16, SAR_FOLD_HALF_SUM, 0x8000)
DEFINE_KERNELS(bf16_max, uint16_t, bf16, SAR_FOLD_HALF_MAX, 0xff80)
DEFINE_KERNELS(bf16_min, uint16_t, bf16, SAR_FOLD_HALF_MIN, 0x7f80)
DEFINE_KERNELS(bf16_prod, uint16_t, bf16, SAR_FOLD_HALF_PROD, 0x3f80)
DEFINE_KERNELS(fp16_sum, uint16_t, fp16, SAR_FOLD_HALF_SUM, 0x8000)
DEFINE_KERNELS(fp16_max, uint16_t, fp16, SAR_FOLD_HALF_MAX, 0xfc00)
DEFINE_KERNELS(fp16_min, uint16_t, fp16, SAR_FOLD_HALF_MIN, 0x7c00)
DEFINE_KERNELS(fp16_prod, uint16_t, fp16, SAR_FOLD_HALF_PROD, 0x3c00)

#define OPS_OF(name)                                        \
    {                                                       \
        &name##_sum, &name##_max, &name##_min, &name##_prod \
    }

const struct sar_kernels *sar_kernels_of(enum sar_base base, enum sar_op op)
{
    static const struct sar_kernels *const table[SAR_BASES][SAR_OPS] = {
        OPS_OF(float32), OPS_OF(float64), OPS_OF(int32), OPS_OF(int64),
        OPS_OF(uint32),  OPS_OF(uint64),  OPS_OF(bf16),  OPS_OF(fp16),
    };
    return table[base][op];
}
