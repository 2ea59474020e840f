/* SPDX-License-Identifier: BSD-3-Clause */
/* Floats as 16 bits: bfloat16 has the float's exponents and 8 significant bits, binary16 (IEEE 754) has 11
 * and reaches from 2^-24 to 65504. Everything is done on bits, without a branch, so that compilers
 * make vectors of it; 1 ns and less for a value.
 *
 * A small number becomes a multiple of 2^-24, the least binary16 there is, by adding 0.5: floats around it
 * lie 2^-24 apart, so that the addition itself rounds, and the low bits of the sum count the multiples. */

#include "wire/narrow.h"

#include <string.h>

#include "tensor/dense.h"

enum { CHUNK = 2048 /* values that stay in the nearest cache between two passes */ };

static const uint32_t INFINITE = 0x7f800000, HALF = 0x3f000000 /* 0.5 */;

SAR_INLINE uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

SAR_INLINE float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

SAR_INLINE uint16_t to_bf16(uint32_t bits)
{
    uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16, nan = bits >> 16 | 0x40;
    return (uint16_t)((bits & 0x7fffffff) > INFINITE ? nan : rounded);
}

SAR_INLINE uint32_t from_bf16(uint16_t narrow)
{
    return (uint32_t)narrow << 16;
}

enum {
    FP16_SHIFT = 23 - 10,           /* between the significands */
    FP16_BIAS = (127 - 15) << 23,   /* between the exponents, where a float has them */
    FP16_NORMAL = (127 - 14) << 23, /* 2^-14, as a float */
    FP16_BEYOND = (127 + 16) << 23  /* 2^16 */
};

SAR_INLINE uint16_t to_fp16(uint32_t bits)
{
    uint32_t sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;
    uint32_t even = size + 0xfff + (size >> FP16_SHIFT & 1);
    uint32_t normal = (even - FP16_BIAS) >> FP16_SHIFT;
    uint32_t small = bits_of(float_of(size < FP16_NORMAL ? size : FP16_NORMAL) + 0.5f) - HALF;
    uint32_t special = 0x7c00 | (size > INFINITE ? 0x200 | (size >> FP16_SHIFT & 0x3ff) : 0);
    uint32_t narrow = size < FP16_NORMAL ? small : normal;
    return (uint16_t)(sign | (even >= FP16_BEYOND ? special : narrow));
}

SAR_INLINE uint32_t from_fp16(uint16_t narrow)
{
    uint32_t sign = (uint32_t)(narrow & 0x8000) << 16, size = narrow & 0x7fff;
    uint32_t normal = (size << FP16_SHIFT) + FP16_BIAS;
    uint32_t small = bits_of(float_of(HALF + (size & 0x3ff)) - 0.5f);
    uint32_t special = INFINITE | size << FP16_SHIFT;
    uint32_t wide = size < 0x400 ? small : normal;
    return sign | (size >= 0x7c00 ? special : wide);
}

struct kind {
    void (*narrow)(const uint32_t *restrict in, uint16_t *restrict out, size_t n);
    void (*widen)(const uint16_t *restrict in, uint32_t *restrict out, size_t n);
    void (*round)(uint32_t *value, size_t n);
};

#define DEFINE_KIND(name)                                                                               \
    SAR_CLONES static void name##_narrow(const uint32_t *restrict in, uint16_t *restrict out, size_t n) \
    {                                                                                                   \
        for (size_t i = 0; i < n; i++)                                                                  \
            out[i] = to_##name(in[i]);                                                                  \
    }                                                                                                   \
    SAR_CLONES static void name##_widen(const uint16_t *restrict in, uint32_t *restrict out, size_t n)  \
    {                                                                                                   \
        for (size_t i = 0; i < n; i++)                                                                  \
            out[i] = from_##name(in[i]);                                                                \
    }                                                                                                   \
    SAR_CLONES static void name##_round(uint32_t *value, size_t n)                                      \
    {                                                                                                   \
        for (size_t i = 0; i < n; i++)                                                                  \
            value[i] = from_##name(to_##name(value[i]));                                                \
    }                                                                                                   \
    static const struct kind name = { name##_narrow, name##_widen, name##_round };

DEFINE_KIND(bf16)
DEFINE_KIND(fp16)

static const struct kind *kind_of(enum sar_values values)
{
    return values == SAR_VALUES_BF16 ? &bf16 : &fp16;
}

/* Basic values of a run. */
static size_t values_in(const struct sar_layout *layout, const struct sar_run *run)
{
    return run->nnz * (layout->element_size / sizeof(uint16_t));
}

void sar_round_values(enum sar_values values, void *value, size_t n)
{
    if (values != SAR_VALUES_FULL)
        kind_of(values)->round(value, n);
}

enum sar_status sar_round_run(const struct sar_layout *layout, struct sar_arena *arena, struct sar_run *run)
{
    const uint32_t *in = run->value;
    size_t n = values_in(layout, run);
    struct sar_shape shape = { .element_size = 2 * layout->element_size, .index_size = layout->index_size };
    void *rounded;
    if (layout->values == SAR_VALUES_FULL || n == 0)
        return SAR_OK;
    SAR_TRY(sar_arena_take(arena, n, sizeof *in, &rounded));
    for (size_t i = 0; i < n; i += CHUNK) {
        uint32_t *out = (uint32_t *)rounded + i;
        size_t some = n - i < CHUNK ? n - i : CHUNK;
        memcpy(out, in + i, some * sizeof *out);
        sar_round_values(layout->values, out, some);
    }
    run->value = rounded;
    return layout->zero_is_absent ? sar_drop_zeros(&shape, arena, run) : SAR_OK;
}

enum sar_status sar_narrow_run(const struct sar_layout *layout, struct sar_arena *arena, struct sar_run *run)
{
    const uint32_t *wide = run->value;
    if (layout->values == SAR_VALUES_FULL || run->nnz == 0)
        return SAR_OK;
    SAR_TRY(sar_arena_take(arena, values_in(layout, run), sizeof(uint16_t), &run->value));
    kind_of(layout->values)->narrow(wide, run->value, values_in(layout, run));
    return SAR_OK;
}

enum sar_status sar_widen_run(const struct sar_layout *layout, struct sar_arena *arena, struct sar_run *run)
{
    const uint16_t *narrow = run->value;
    if (layout->values == SAR_VALUES_FULL || run->nnz == 0)
        return SAR_OK;
    SAR_TRY(sar_arena_take(arena, values_in(layout, run), sizeof(uint32_t), &run->value));
    kind_of(layout->values)->widen(narrow, run->value, values_in(layout, run));
    return SAR_OK;
}
