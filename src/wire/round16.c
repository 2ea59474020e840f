/* SPDX-License-Identifier: BSD-3-Clause */
/* Loops over the conversions of vector/half.h. A conversion takes at most 1 ns for each value. */

#include "wire/round16.h"

#include "vector/dense.h"
#include "vector/half.h"

enum { CHUNK = 2048 /* values that are narrowed and then widened while they are in the level-1 cache */ };

/* Conversion loops of a 16-bit type: from floats, given by their bits, and to them. */
struct kind {
    void (*narrow)(const uint32_t *restrict in, uint16_t *restrict out, size_t n);
    void (*widen)(const uint16_t *restrict in, uint32_t *restrict out, size_t n);
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
    static const struct kind name = { name##_narrow, name##_widen };

DEFINE_KIND(bf16)
DEFINE_KIND(fp16)

static const struct kind *kind_of(enum sar_wire_precision precision)
{
    return precision == SAR_PRECISION_BF16 ? &bf16 : &fp16;
}

/* Returns the number of floats in vec. An element of the layout has element_size / 2 values of 16 bits. */
static size_t values_in(const struct sar_wire_layout *layout, const struct sar_spvec *vec)
{
    return vec->nnz * (layout->element_size / sizeof(uint16_t));
}

/* Rounds n floats; in and out may be equal. */
static void round_values(const struct kind *kind, const uint32_t *in, uint32_t *out, size_t n)
{
    uint16_t narrow[CHUNK];
    for (size_t i = 0; i < n; i += CHUNK) {
        size_t some = n - i < CHUNK ? n - i : CHUNK;
        kind->narrow(in + i, narrow, some);
        kind->widen(narrow, out + i, some);
    }
}

void sar_round16_values(enum sar_wire_precision precision, void *value, size_t n)
{
    if (precision != SAR_PRECISION_FULL)
        round_values(kind_of(precision), value, value, n);
}

enum sar_status sar_round16_spvec(const struct sar_wire_layout *layout, struct sar_arena *arena,
                                  struct sar_spvec *vec)
{
    const uint32_t *in = vec->value;
    size_t n = values_in(layout, vec);
    struct sar_vec_desc desc = { .element_size = 2 * layout->element_size, .index_size = layout->index_size };
    void *rounded;
    if (layout->precision == SAR_PRECISION_FULL || n == 0)
        return SAR_OK;
    SAR_TRY(sar_arena_alloc(arena, n, sizeof *in, &rounded));
    round_values(kind_of(layout->precision), in, rounded, n);
    vec->value = rounded;
    return layout->zero_is_absent ? sar_spvec_drop_zeros(&desc, arena, vec) : SAR_OK;
}

enum sar_status sar_round16_encode(const struct sar_wire_layout *layout, struct sar_arena *arena,
                                   struct sar_spvec *vec)
{
    const uint32_t *wide = vec->value;
    if (layout->precision == SAR_PRECISION_FULL || vec->nnz == 0)
        return SAR_OK;
    SAR_TRY(sar_arena_alloc(arena, values_in(layout, vec), sizeof(uint16_t), &vec->value));
    kind_of(layout->precision)->narrow(wide, vec->value, values_in(layout, vec));
    return SAR_OK;
}

enum sar_status sar_round16_decode(const struct sar_wire_layout *layout, struct sar_arena *arena,
                                   struct sar_spvec *vec)
{
    const uint16_t *narrow = vec->value;
    if (layout->precision == SAR_PRECISION_FULL || vec->nnz == 0)
        return SAR_OK;
    SAR_TRY(sar_arena_alloc(arena, values_in(layout, vec), sizeof(uint32_t), &vec->value));
    kind_of(layout->precision)->widen(narrow, vec->value, values_in(layout, vec));
    return SAR_OK;
}
