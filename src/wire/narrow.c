/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs of floats as runs of 16 bits and back; tensor/half.h has the arithmetic. 1 ns and less for a value. */

#include "wire/narrow.h"

#include <string.h>

#include "tensor/dense.h"
#include "tensor/half.h"

enum { CHUNK = 2048 /* values that stay in the nearest cache between two passes */ };

struct kind {
    void (*narrow)(const uint32_t *restrict in, uint16_t *restrict out, size_t n);
    void (*widen)(const uint16_t *restrict in, uint32_t *restrict out, size_t n);
    void (*round)(uint32_t *value, size_t n);
};

#define DEFINE_KIND(name)                                                                               \
    SAR_CLONES static void name##_narrow(const uint32_t *restrict in, uint16_t *restrict out, size_t n) \
    {                                                                                                   \
        for (size_t i = 0; i < n; i++)                                                                  \
            out[i] = sar_to_##name(in[i]);                                                              \
    }                                                                                                   \
    SAR_CLONES static void name##_widen(const uint16_t *restrict in, uint32_t *restrict out, size_t n)  \
    {                                                                                                   \
        for (size_t i = 0; i < n; i++)                                                                  \
            out[i] = sar_from_##name(in[i]);                                                            \
    }                                                                                                   \
    SAR_CLONES static void name##_round(uint32_t *value, size_t n)                                      \
    {                                                                                                   \
        for (size_t i = 0; i < n; i++)                                                                  \
            value[i] = sar_from_##name(sar_to_##name(value[i]));                                        \
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
