/* SPDX-License-Identifier: BSD-3-Clause */
/* Typed arithmetic: one set of loops for each pair of basic type and op.
 *
 * The identity of a float sum is -0.0: it leaves the bits of everything else alone, +0.0 would turn -0.0
 * into +0.0. Integers wrap around as unsigned ones do.
 *
 * Numbers of 16 bits are added and multiplied as floats. Kernels whose outcomes have 16 bits round each of
 * them; a float has more than twice their significant bits, so that a sum of two comes out as if only the
 * exact one had been rounded. Who folds more does so into floats (`wide`) and rounds once. */

#include <float.h>
#include <math.h>

#include "tensor/arithmetic.h"

/* `clones` is SAR_CLONES or nothing. `wide` is the type to compute in: for integers unsigned, so that
 * overflow is defined, and no narrower than int, which shorter ones would become. */
#define DEFINE_LOOPS(name, clones, type, wide, apply, identity)                                  \
    static void name##_fill(void *out, size_t n)                                                 \
    {                                                                                            \
        type *o = out;                                                                           \
        for (size_t i = 0; i < n; i++)                                                           \
            o[i] = (type)(identity);                                                             \
    }                                                                                            \
    clones static void name##_fold(void *out, const void *in, size_t n)                          \
    {                                                                                            \
        type *restrict o = out;                                                                  \
        const type *restrict v = in;                                                             \
        for (size_t i = 0; i < n; i++)                                                           \
            o[i] = (type)apply(wide, o[i], v[i]);                                                \
    }                                                                                            \
    static void name##_zero(void *out, size_t n)                                                 \
    {                                                                                            \
        const type zero = 0;                                                                     \
        for (type *o = out, *end = o + n; o < end; o++)                                          \
            *o = (type)apply(wide, *o, zero);                                                    \
    }                                                                                            \
    static void name##_rows(void *out, const uint32_t *at, const void *in, size_t n, size_t row) \
    {                                                                                            \
        type *restrict o = out;                                                                  \
        const type *restrict v = in;                                                             \
        if (row != 1) {                                                                          \
            for (size_t i = 0; i < n; i++)                                                       \
                name##_fold(o + at[i] * row, v + i * row, row);                                  \
            return;                                                                              \
        }                                                                                        \
        for (size_t i = 0; i < n; i++)                                                           \
            o[at[i]] = (type)apply(wide, o[at[i]], v[i]);                                        \
    }

#define DEFINE_VARIANTS(name, clones, type, wide, apply, identity)                                \
    DEFINE_LOOPS(name, clones, type, wide, apply, identity)                                       \
    static const struct sar_kernels name = { sizeof(type), name##_fill, name##_fold, name##_zero, \
                                             name##_rows,  NULL,        NULL };

#define DEFINE_KERNELS(name, type, wide, apply, identity) \
    DEFINE_VARIANTS(name, SAR_CLONES, type, wide, apply, identity)

/* Ops on bits are done in the least time that loading and storing takes whatever the processor. */
#define DEFINE_BITWISE(name, type, wide, apply, identity) DEFINE_VARIANTS(name, , type, wide, apply, identity)

#define DEFINE_FLOAT(name, type)                                    \
    DEFINE_KERNELS(name##_sum, type, type, SAR_FOLD_SUM, -0.0f)     \
    DEFINE_KERNELS(name##_max, type, type, SAR_FOLD_MAX, -INFINITY) \
    DEFINE_KERNELS(name##_min, type, type, SAR_FOLD_MIN, INFINITY)  \
    DEFINE_KERNELS(name##_prod, type, type, SAR_FOLD_PROD, 1)

DEFINE_FLOAT(float32, float)
DEFINE_FLOAT(float64, double)

/* Signed and unsigned numbers differ in their order, and in nothing else. */
#define DEFINE_ORDER(name, type, wide, lowest, highest)          \
    DEFINE_KERNELS(name##_max, type, wide, SAR_FOLD_MAX, lowest) \
    DEFINE_KERNELS(name##_min, type, wide, SAR_FOLD_MIN, highest)

#define DEFINE_INTEGERS(bits, wide)                                                   \
    DEFINE_ORDER(int##bits, int##bits##_t, wide, INT##bits##_MIN, INT##bits##_MAX)    \
    DEFINE_ORDER(uint##bits, uint##bits##_t, wide, 0, UINT##bits##_MAX)               \
    DEFINE_KERNELS(whole##bits##_sum, uint##bits##_t, wide, SAR_FOLD_SUM, 0)          \
    DEFINE_KERNELS(whole##bits##_prod, uint##bits##_t, wide, SAR_FOLD_PROD, 1)        \
    DEFINE_BITWISE(whole##bits##_land, uint##bits##_t, wide, SAR_FOLD_LAND, 1)        \
    DEFINE_BITWISE(whole##bits##_band, uint##bits##_t, wide, SAR_FOLD_BAND, ~(wide)0) \
    DEFINE_BITWISE(whole##bits##_lor, uint##bits##_t, wide, SAR_FOLD_LOR, 0)          \
    DEFINE_BITWISE(whole##bits##_bor, uint##bits##_t, wide, SAR_FOLD_BOR, 0)          \
    DEFINE_BITWISE(whole##bits##_lxor, uint##bits##_t, wide, SAR_FOLD_LXOR, 0)        \
    DEFINE_BITWISE(whole##bits##_bxor, uint##bits##_t, wide, SAR_FOLD_BXOR, 0)

DEFINE_INTEGERS(8, uint32_t)
DEFINE_INTEGERS(16, uint32_t)
DEFINE_INTEGERS(32, uint32_t)
DEFINE_INTEGERS(64, uint64_t)

enum { SOME = 256 /* values converted at a time */ };

/* Values to floats and back. */
#define DEFINE_CONVERSIONS(kind)                                              \
    SAR_CLONES static void kind##_widen(float *out, const void *in, size_t n) \
    {                                                                         \
        const uint16_t *restrict v = in;                                      \
        float *restrict o = out;                                              \
        for (size_t i = 0; i < n; i++)                                        \
            o[i] = SAR_HALF_WIDE(kind, v[i]);                                 \
    }                                                                         \
    SAR_CLONES static void kind##_round(void *out, const void *in, size_t n)  \
    {                                                                         \
        const float *restrict v = in;                                         \
        uint16_t *restrict o = out;                                           \
        for (size_t i = 0; i < n; i++)                                        \
            o[i] = sar_to_##kind(sar_float_bits(v[i]));                       \
    }

/* Values of 16 bits into floats: converted some at a time, for what is scattered is no vector. */
#define DEFINE_WIDE(kind, op, apply)                                                                         \
    SAR_CLONES static void kind##_##op##_wide_fold(void *out, const void *in, size_t n)                      \
    {                                                                                                        \
        float *restrict o = out;                                                                             \
        const uint16_t *restrict v = in;                                                                     \
        for (size_t i = 0; i < n; i++)                                                                       \
            o[i] = apply(float, o[i], SAR_HALF_WIDE(kind, v[i]));                                            \
    }                                                                                                        \
    static void kind##_##op##_wide_rows(void *out, const uint32_t *at, const void *in, size_t n, size_t row) \
    {                                                                                                        \
        const uint16_t *v = in;                                                                              \
        float some[SOME];                                                                                    \
        for (size_t i = 0; row != 1 && i < n; i++)                                                           \
            kind##_##op##_wide_fold((float *)out + at[i] * row, v + i * row, row);                           \
        for (size_t m, i = 0; row == 1 && i < n; i += m) {                                                   \
            m = n - i < SOME ? n - i : SOME;                                                                 \
            kind##_widen(some, v + i, m);                                                                    \
            float32_##op##_rows(out, at + i, some, m, 1);                                                    \
        }                                                                                                    \
    }                                                                                                        \
    static const struct sar_kernels kind##_##op##_wide = { sizeof(float),                                    \
                                                           float32_##op##_fill,                              \
                                                           kind##_##op##_wide_fold,                          \
                                                           float32_##op##_zero,                              \
                                                           kind##_##op##_wide_rows,                          \
                                                           NULL,                                             \
                                                           NULL };

/* Those, and the ones whose outcomes have 16 bits. */
#define DEFINE_ROUNDED(kind, op, half_apply, apply, identity)                                \
    DEFINE_LOOPS(kind##_##op, SAR_CLONES, uint16_t, kind, half_apply, identity)              \
    DEFINE_WIDE(kind, op, apply)                                                             \
    static const struct sar_kernels kind##_##op = { sizeof(uint16_t),   kind##_##op##_fill,  \
                                                    kind##_##op##_fold, kind##_##op##_zero,  \
                                                    kind##_##op##_rows, &kind##_##op##_wide, \
                                                    kind##_round };

DEFINE_CONVERSIONS(bf16)
DEFINE_CONVERSIONS(fp16)

/* Identities: -0.0, the two infinities and 1. */
DEFINE_ROUNDED(bf16, sum, SAR_FOLD_HALF_SUM, SAR_FOLD_SUM, 0x8000)
DEFINE_KERNELS(bf16_max, uint16_t, bf16, SAR_FOLD_HALF_MAX, 0xff80)
DEFINE_KERNELS(bf16_min, uint16_t, bf16, SAR_FOLD_HALF_MIN, 0x7f80)
DEFINE_ROUNDED(bf16, prod, SAR_FOLD_HALF_PROD, SAR_FOLD_PROD, 0x3f80)
DEFINE_ROUNDED(fp16, sum, SAR_FOLD_HALF_SUM, SAR_FOLD_SUM, 0x8000)
DEFINE_KERNELS(fp16_max, uint16_t, fp16, SAR_FOLD_HALF_MAX, 0xfc00)
DEFINE_KERNELS(fp16_min, uint16_t, fp16, SAR_FOLD_HALF_MIN, 0x7c00)
DEFINE_ROUNDED(fp16, prod, SAR_FOLD_HALF_PROD, SAR_FOLD_PROD, 0x3c00)

#define FLOAT_OPS(name)                                     \
    {                                                       \
        &name##_sum, &name##_max, &name##_min, &name##_prod \
    }

#define INTEGER_OPS(name, bits)                                                                             \
    {                                                                                                       \
        &whole##bits##_sum, &name##bits##_max, &name##bits##_min, &whole##bits##_prod, &whole##bits##_land, \
            &whole##bits##_band, &whole##bits##_lor, &whole##bits##_bor, &whole##bits##_lxor,               \
            &whole##bits##_bxor                                                                             \
    }

const struct sar_kernels *sar_kernels_of(enum sar_base base, enum sar_op op)
{
    static const struct sar_kernels *const table[SAR_BASES][SAR_OPS] = {
        FLOAT_OPS(float32),    FLOAT_OPS(float64),    INTEGER_OPS(int, 8),  INTEGER_OPS(int, 16),
        INTEGER_OPS(int, 32),  INTEGER_OPS(int, 64),  INTEGER_OPS(uint, 8), INTEGER_OPS(uint, 16),
        INTEGER_OPS(uint, 32), INTEGER_OPS(uint, 64), FLOAT_OPS(bf16),      FLOAT_OPS(fp16),
    };
    return table[base][op];
}
