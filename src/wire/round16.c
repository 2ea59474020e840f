/* SPDX-License-Identifier: BSD-3-Clause */
/* Conversion loops; vector/half.h converts one value. Costs at most 1 ns a value. */

#include "wire/round16.h"

#include <string.h>

#include "base/parallel.h"
#include "vector/dense.h"
#include "vector/half.h"

enum { CHUNK = 2048 /* values that stay in the level-1 cache between two passes */ };

/* Loops of one 16-bit type. */
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

static const struct kind *kind_of(enum sar_wire_precision precision)
{
    return precision == SAR_PRECISION_BF16 ? &bf16 : &fp16;
}

/* A conversion whose ranges run in parallel. */
struct conversion {
    const struct kind *kind;
    const void *in;
    void *out;
};

static void narrow_range(void *conversion, size_t from, size_t to)
{
    const struct conversion *c = conversion;
    c->kind->narrow((const uint32_t *)c->in + from, (uint16_t *)c->out + from, to - from);
}

static void widen_range(void *conversion, size_t from, size_t to)
{
    const struct conversion *c = conversion;
    c->kind->widen((const uint16_t *)c->in + from, (uint32_t *)c->out + from, to - from);
}

/* Copies and rounds, in chunks. */
static void round_range(void *conversion, size_t from, size_t to)
{
    const struct conversion *c = conversion;
    for (size_t i = from; i < to; i += CHUNK) {
        uint32_t *out = (uint32_t *)c->out + i;
        size_t chunk = to - i < CHUNK ? to - i : CHUNK;
        memcpy(out, (const uint32_t *)c->in + i, chunk * sizeof *out);
        c->kind->round(out, chunk);
    }
}

static void convert(struct conversion c, size_t n, size_t bytes_each,
                    void (*range)(void *conversion, size_t from, size_t to))
{
    sar_ranges_run((struct sar_ranges){ n, CHUNK, sar_parallel_pieces(n * bytes_each), range, &c });
}

/* Returns the number of floats in vec; the layout's elements are 16-bit values. */
static size_t values_in(const struct sar_wire_layout *layout, const struct sar_spvec *vec)
{
    return vec->nnz * (layout->element_size / sizeof(uint16_t));
}

void sar_round16_values(enum sar_wire_precision precision, void *value, size_t n)
{
    if (precision != SAR_PRECISION_FULL)
        kind_of(precision)->round(value, n);
}

enum sar_status sar_round16_spvec(const struct sar_wire_layout *layout, struct sar_arena *arena,
                                  struct sar_spvec *vec)
{
    size_t n = values_in(layout, vec);
    struct sar_vec_desc desc = { .element_size = 2 * layout->element_size, .index_size = layout->index_size };
    void *rounded;
    if (layout->precision == SAR_PRECISION_FULL || n == 0)
        return SAR_OK;
    SAR_TRY(sar_arena_alloc(arena, n, sizeof(uint32_t), &rounded));
    convert((struct conversion){ kind_of(layout->precision), vec->value, rounded }, n, 2 * sizeof(uint32_t),
            round_range);
    vec->value = rounded;
    return layout->zero_is_absent ? sar_spvec_drop_zeros(&desc, arena, vec) : SAR_OK;
}

enum sar_status sar_round16_encode(const struct sar_wire_layout *layout, struct sar_arena *arena,
                                   struct sar_spvec *vec)
{
    const void *wide = vec->value;
    if (layout->precision == SAR_PRECISION_FULL || vec->nnz == 0)
        return SAR_OK;
    SAR_TRY(sar_arena_alloc(arena, values_in(layout, vec), sizeof(uint16_t), &vec->value));
    convert((struct conversion){ kind_of(layout->precision), wide, vec->value }, values_in(layout, vec),
            sizeof(uint32_t) + sizeof(uint16_t), narrow_range);
    return SAR_OK;
}

enum sar_status sar_round16_decode(const struct sar_wire_layout *layout, struct sar_arena *arena,
                                   struct sar_spvec *vec)
{
    const void *narrow = vec->value;
    if (layout->precision == SAR_PRECISION_FULL || vec->nnz == 0)
        return SAR_OK;
    SAR_TRY(sar_arena_alloc(arena, values_in(layout, vec), sizeof(uint32_t), &vec->value));
    convert((struct conversion){ kind_of(layout->precision), narrow, vec->value }, values_in(layout, vec),
            sizeof(uint32_t) + sizeof(uint16_t), widen_range);
    return SAR_OK;
}
