/* SPDX-License-Identifier: BSD-3-Clause */
/* One set of loops for each pair of basic type and op. Every reduction on the host ends here.
 *
 * The identity of a float sum is -0.0, since +0.0 would turn -0.0 into +0.0. Integers wrap around like
 * unsigned ones.
 *
 * Values of 16 bits are added and multiplied as floats. Kernels with results of 16 bits round each result. A
 * float has more than twice the significant bits, so the rounded sum of two values equals the rounded exact
 * sum. A caller that adds more values uses `wide` kernels and rounds once.
 *
 *     time = values * bytes / bandwidth of the cache or memory */

#include "vector/op_kernels.h"

#include <float.h>
#include <math.h>

#include "vector/op_macros.h"

/* `clones` is SAR_CLONES or empty. `wide` is the type of the computation. For integers it is unsigned, so
 * that overflow is defined, and position least as wide as int, since C promotes shorter types. */
#define DEFINE_LOOPS(name, clones, type, wide, apply, identity)                                            \
    static void name##_fill(void *out, size_t n)                                                           \
    {                                                                                                      \
        type *o = out;                                                                                     \
        for (size_t i = 0; i < n; i++)                                                                     \
            o[i] = (type)(identity);                                                                       \
    }                                                                                                      \
    clones static void name##_apply(void *out, const void *in, size_t n)                                   \
    {                                                                                                      \
        type *restrict o = out;                                                                            \
        const type *restrict v = in;                                                                       \
        for (size_t i = 0; i < n; i++)                                                                     \
            o[i] = (type)apply(wide, o[i], v[i]);                                                          \
    }                                                                                                      \
    static void name##_zero(void *out, size_t n)                                                           \
    {                                                                                                      \
        const type zero = 0;                                                                               \
        for (type *o = out, *end = o + n; o < end; o++)                                                    \
            *o = (type)apply(wide, *o, zero);                                                              \
    }                                                                                                      \
    static void name##_rows(void *out, const uint32_t *position, const void *in, size_t n, size_t row_len) \
    {                                                                                                      \
        type *restrict o = out;                                                                            \
        const type *restrict v = in;                                                                       \
        if (row_len != 1) {                                                                                \
            for (size_t i = 0; i < n; i++)                                                                 \
                name##_apply(o + position[i] * row_len, v + i * row_len, row_len);                         \
            return;                                                                                        \
        }                                                                                                  \
        for (size_t i = 0; i < n; i++)                                                                     \
            o[position[i]] = (type)apply(wide, o[position[i]], v[i]);                                      \
    }

#define DEFINE_VARIANTS(name, clones, type, wide, apply, identity)                                    \
    DEFINE_LOOPS(name, clones, type, wide, apply, identity)                                           \
    static const struct sar_op_kernels name = { sizeof(type), name##_fill, name##_apply, name##_zero, \
                                                name##_rows,  NULL,        NULL };

#define DEFINE_KERNELS(name, type, wide, apply, identity) \
    DEFINE_VARIANTS(name, SAR_CLONES, type, wide, apply, identity)

/* Ops on bits need no clones: loads and stores bound their time on every processor. */
#define DEFINE_BITWISE(name, type, wide, apply, identity) DEFINE_VARIANTS(name, , type, wide, apply, identity)

#define DEFINE_FLOAT(name, type)                                     \
    DEFINE_KERNELS(name##_sum, type, type, SAR_APPLY_SUM, -0.0f)     \
    DEFINE_KERNELS(name##_max, type, type, SAR_APPLY_MAX, -INFINITY) \
    DEFINE_KERNELS(name##_min, type, type, SAR_APPLY_MIN, INFINITY)  \
    DEFINE_KERNELS(name##_prod, type, type, SAR_APPLY_PROD, 1)

DEFINE_FLOAT(float32, float)
DEFINE_FLOAT(float64, double)

/* Signed and unsigned integers differ in their order only, so uintN kernels serve intN for the other ops. */
#define DEFINE_ORDER(name, type, wide, lowest, highest)           \
    DEFINE_KERNELS(name##_max, type, wide, SAR_APPLY_MAX, lowest) \
    DEFINE_KERNELS(name##_min, type, wide, SAR_APPLY_MIN, highest)

#define DEFINE_INTEGERS(bits, wide)                                                   \
    DEFINE_ORDER(int##bits, int##bits##_t, wide, INT##bits##_MIN, INT##bits##_MAX)    \
    DEFINE_ORDER(uint##bits, uint##bits##_t, wide, 0, UINT##bits##_MAX)               \
    DEFINE_KERNELS(uint##bits##_sum, uint##bits##_t, wide, SAR_APPLY_SUM, 0)          \
    DEFINE_KERNELS(uint##bits##_prod, uint##bits##_t, wide, SAR_APPLY_PROD, 1)        \
    DEFINE_BITWISE(uint##bits##_land, uint##bits##_t, wide, SAR_APPLY_LAND, 1)        \
    DEFINE_BITWISE(uint##bits##_band, uint##bits##_t, wide, SAR_APPLY_BAND, ~(wide)0) \
    DEFINE_BITWISE(uint##bits##_lor, uint##bits##_t, wide, SAR_APPLY_LOR, 0)          \
    DEFINE_BITWISE(uint##bits##_bor, uint##bits##_t, wide, SAR_APPLY_BOR, 0)          \
    DEFINE_BITWISE(uint##bits##_lxor, uint##bits##_t, wide, SAR_APPLY_LXOR, 0)        \
    DEFINE_BITWISE(uint##bits##_bxor, uint##bits##_t, wide, SAR_APPLY_BXOR, 0)

DEFINE_INTEGERS(8, uint32_t)
DEFINE_INTEGERS(16, uint32_t)
DEFINE_INTEGERS(32, uint32_t)
DEFINE_INTEGERS(64, uint64_t)

enum { CONVERT_BATCH = 256 /* values converted to floats position a time */ };

/* Conversion of values of 16 bits to floats and back. */
#define DEFINE_CONVERSIONS(kind)                                              \
    SAR_CLONES static void kind##_widen(float *out, const void *in, size_t n) \
    {                                                                         \
        const uint16_t *restrict v = in;                                      \
        float *restrict o = out;                                              \
        for (size_t i = 0; i < n; i++)                                        \
            o[i] = SAR_HALF_TO_FLOAT(kind, v[i]);                             \
    }                                                                         \
    SAR_CLONES static void kind##_round(void *out, const void *in, size_t n)  \
    {                                                                         \
        const float *restrict v = in;                                         \
        uint16_t *restrict o = out;                                           \
        for (size_t i = 0; i < n; i++)                                        \
            o[i] = sar_to_##kind(sar_float_bits(v[i]));                       \
    }

/* Accumulate values of 16 bits into floats. Scattered values are converted in batches, since the conversion
 * vectorizes and the scatter does not. */
#define DEFINE_WIDE(kind, op, apply)                                                                   \
    SAR_CLONES static void kind##_##op##_wide_apply(void *out, const void *in, size_t n)               \
    {                                                                                                  \
        float *restrict o = out;                                                                       \
        const uint16_t *restrict v = in;                                                               \
        for (size_t i = 0; i < n; i++)                                                                 \
            o[i] = apply(float, o[i], SAR_HALF_TO_FLOAT(kind, v[i]));                                  \
    }                                                                                                  \
    static void kind##_##op##_wide_rows(void *out, const uint32_t *position, const void *in, size_t n, \
                                        size_t row_len)                                                \
    {                                                                                                  \
        const uint16_t *v = in;                                                                        \
        float batch[CONVERT_BATCH];                                                                    \
        for (size_t i = 0; row_len != 1 && i < n; i++)                                                 \
            kind##_##op##_wide_apply((float *)out + position[i] * row_len, v + i * row_len, row_len);  \
        for (size_t m, i = 0; row_len == 1 && i < n; i += m) {                                         \
            m = n - i < CONVERT_BATCH ? n - i : CONVERT_BATCH;                                         \
            kind##_widen(batch, v + i, m);                                                             \
            float32_##op##_rows(out, position + i, batch, m, 1);                                       \
        }                                                                                              \
    }                                                                                                  \
    static const struct sar_op_kernels kind##_##op##_wide = { sizeof(float),                           \
                                                              float32_##op##_fill,                     \
                                                              kind##_##op##_wide_apply,                \
                                                              float32_##op##_zero,                     \
                                                              kind##_##op##_wide_rows,                 \
                                                              NULL,                                    \
                                                              NULL };

/* Wide kernels, and kernels with results of 16 bits. */
#define DEFINE_ROUNDED(kind, op, half_apply, apply, identity)                                    \
    DEFINE_LOOPS(kind##_##op, SAR_CLONES, uint16_t, kind, half_apply, identity)                  \
    DEFINE_WIDE(kind, op, apply)                                                                 \
    static const struct sar_op_kernels kind##_##op = { sizeof(uint16_t),    kind##_##op##_fill,  \
                                                       kind##_##op##_apply, kind##_##op##_zero,  \
                                                       kind##_##op##_rows,  &kind##_##op##_wide, \
                                                       kind##_round };

DEFINE_CONVERSIONS(bf16)
DEFINE_CONVERSIONS(fp16)

/* Identities: -0.0, the two infinities and 1. */
DEFINE_ROUNDED(bf16, sum, SAR_APPLY_HALF_SUM, SAR_APPLY_SUM, 0x8000)
DEFINE_KERNELS(bf16_max, uint16_t, bf16, SAR_APPLY_HALF_MAX, 0xff80)
DEFINE_KERNELS(bf16_min, uint16_t, bf16, SAR_APPLY_HALF_MIN, 0x7f80)
DEFINE_ROUNDED(bf16, prod, SAR_APPLY_HALF_PROD, SAR_APPLY_PROD, 0x3f80)
DEFINE_ROUNDED(fp16, sum, SAR_APPLY_HALF_SUM, SAR_APPLY_SUM, 0x8000)
DEFINE_KERNELS(fp16_max, uint16_t, fp16, SAR_APPLY_HALF_MAX, 0xfc00)
DEFINE_KERNELS(fp16_min, uint16_t, fp16, SAR_APPLY_HALF_MIN, 0x7c00)
DEFINE_ROUNDED(fp16, prod, SAR_APPLY_HALF_PROD, SAR_APPLY_PROD, 0x3c00)

#define FLOAT_OPS(name)                                     \
    {                                                       \
        &name##_sum, &name##_max, &name##_min, &name##_prod \
    }

#define INTEGER_OPS(name, bits)                                                                              \
    {                                                                                                        \
        &uint##bits##_sum, &name##bits##_max, &name##bits##_min, &uint##bits##_prod, &uint##bits##_land,     \
            &uint##bits##_band, &uint##bits##_lor, &uint##bits##_bor, &uint##bits##_lxor, &uint##bits##_bxor \
    }

const struct sar_op_kernels *sar_op_kernels_of(enum sar_dtype dtype, enum sar_op op)
{
    static const struct sar_op_kernels *const table[SAR_DTYPES][SAR_OPS] = {
        FLOAT_OPS(float32),    FLOAT_OPS(float64),    INTEGER_OPS(int, 8),  INTEGER_OPS(int, 16),
        INTEGER_OPS(int, 32),  INTEGER_OPS(int, 64),  INTEGER_OPS(uint, 8), INTEGER_OPS(uint, 16),
        INTEGER_OPS(uint, 32), INTEGER_OPS(uint, 64), FLOAT_OPS(bf16),      FLOAT_OPS(fp16),
    };
    return table[dtype][op];
}
