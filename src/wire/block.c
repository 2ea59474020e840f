/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocks (OmniReduce): of every 256 slots those that hold anything are sent whole, zero bits where there
 * is no element, then their numbers. Where an element of zero bits must not be lost, 256 bits for each
 * block follow, which tell the elements that are present.
 *
 *     bytes = b (256 s + i), or b (256 s + i + 32),   b blocks in use, i bytes of a block's number, 4 or 8 */

#include <math.h>

#include "wire/indices.h"

enum { BLOCK_SHIFT = 8, BLOCK = 1 << BLOCK_SHIFT, PRESENCE = BLOCK / 8 };

static uint64_t bytes_each(const struct sar_layout *layout)
{
    uint64_t rest = layout->index_size + (layout->zero_is_absent ? 0u : PRESENCE);
    return sar_plus(sar_times(BLOCK, layout->element_size), rest);
}

static uint64_t least(const struct sar_layout *layout, uint64_t nnz)
{
    return sar_times(nnz / BLOCK + (nnz % BLOCK != 0), bytes_each(layout));
}

static uint64_t bytes_of(const struct sar_layout *layout, const struct sar_run *run)
{
    return sar_times(sar_indices_stretches(layout, run, BLOCK_SHIFT), bytes_each(layout));
}

static double expected(const struct sar_layout *layout, double nnz)
{
    double density = layout->span == 0 ? 0 : fmin(nnz / (double)layout->span, 1);
    double whole = floor((double)layout->span / BLOCK), rest = (double)layout->span - whole * BLOCK;
    double none = log1p(-density), last = rest > 0 ? -expm1(rest * none) : 0;
    return (whole * -expm1(BLOCK * none) + last) * (double)bytes_each(layout);
}

/* The payload: elements, numbers, presence. */
struct blocks {
    unsigned char *values, *presence;
    void *numbers;
    uint64_t n;
};

static struct blocks blocks_at(const struct sar_layout *layout, void *payload, uint64_t n)
{
    struct blocks b = { .values = payload, .n = n };
    b.numbers = b.values + n * BLOCK * layout->element_size;
    b.presence = (unsigned char *)b.numbers + n * layout->index_size;
    return b;
}

static void encode(const struct sar_layout *layout, const struct sar_run *run, void *payload)
{
    struct blocks b = blocks_at(layout, payload, sar_indices_stretches(layout, run, BLOCK_SHIFT));
    size_t size = layout->element_size;
    uint64_t block = 0, next = 0, number = 0;
    memset(payload, 0, b.n * bytes_each(layout));
    for (size_t i = 0; i < run->nnz; i++) {
        uint64_t slot = sar_index_get(run->index, layout->index_size, i);
        if (next == 0 || slot / BLOCK != number) {
            number = slot / BLOCK;
            block = next++;
            sar_index_set(b.numbers, layout->index_size, block, number);
        }
        uint64_t at = block * BLOCK + slot % BLOCK;
        memcpy(b.values + at * size, (const unsigned char *)run->value + i * size, size);
        if (!layout->zero_is_absent)
            b.presence[at / 8] |= (unsigned char)(1u << (at % 8));
    }
}

/* Turn places in the blocks into slots. False when one lies behind the span. */
SAR_INLINE bool place(const struct sar_layout *layout, const struct blocks *b, const struct sar_run *run,
                      unsigned size)
{
    uint64_t last = 0;
    for (size_t i = 0; i < run->nnz; i++) {
        uint64_t at = sar_index_get(run->index, size, i);
        last = sar_index_get(b->numbers, size, at / BLOCK) * BLOCK + at % BLOCK;
        sar_index_set(run->index, size, i, last);
    }
    return run->nnz == 0 || last < layout->span;
}

static enum sar_status decode(const struct sar_layout *layout, void *payload, uint64_t bytes,
                              struct sar_arena *arena, struct sar_run *run)
{
    uint64_t n = bytes / bytes_each(layout), all = layout->span / BLOCK + (layout->span % BLOCK != 0);
    if (bytes % bytes_each(layout) != 0 || run->nnz > layout->span || run->nnz > sar_times(n, BLOCK))
        return SAR_CORRUPT;
    struct blocks b = blocks_at(layout, payload, n);
    struct sar_layout numbers = { .span = all, .index_size = layout->index_size };
    if (!sar_indices_ascend(&numbers, b.numbers, (size_t)n))
        return SAR_CORRUPT;
    SAR_TRY(sar_pick(layout, b.values, layout->zero_is_absent ? NULL : b.presence, n * BLOCK, arena, run));
    bool inside = layout->index_size == 4 ? place(layout, &b, run, 4) : place(layout, &b, run, 8);
    return inside ? SAR_OK : SAR_CORRUPT;
}

static double work(const struct sar_layout *layout, double nnz)
{
    double density = layout->span == 0 ? 0 : fmin(nnz / (double)layout->span, 1);
    return 1.8 * nnz + 0.06 * (double)layout->span * -expm1(BLOCK * log1p(-density));
}

const struct sar_wire sar_wire_block = {
    .name = "block",
    .summary = "blocks of 256 slots, whole, where anything is in them (OmniReduce)",
    .least = least,
    .bytes = bytes_of,
    .expected = expected,
    .work = work,
    .encode = encode,
    .decode = decode,
};
