/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocks (OmniReduce): every block of 256 slots that holds elements is sent whole, with zero bits for absent
 * elements; then the numbers of the blocks. Unless zeros may be dropped, 256 presence bits for each block
 * follow.
 *
 *     bytes = b (256 s + i), or b (256 s + i + 32),   b blocks in use, i bytes of a block's number, 4 or 8 */

#include <math.h>

#include "wire/index_util.h"

enum { BLOCK_SHIFT = 8, BLOCK = 1 << BLOCK_SHIFT, PRESENCE = BLOCK / 8 };

static uint64_t bytes_each(const struct sar_wire_layout *layout)
{
    uint64_t rest = layout->index_size + (layout->zero_is_absent ? 0u : PRESENCE);
    return sar_add_saturate(sar_mul_saturate(BLOCK, layout->element_size), rest);
}

static uint64_t min_bytes(const struct sar_wire_layout *layout, uint64_t nnz)
{
    return sar_mul_saturate(nnz / BLOCK + (nnz % BLOCK != 0), bytes_each(layout));
}

static uint64_t bytes_of(const struct sar_wire_layout *layout, const struct sar_spvec *vec)
{
    return sar_mul_saturate(sar_indices_count_blocks(layout, vec, BLOCK_SHIFT), bytes_each(layout));
}

static double expected(const struct sar_wire_layout *layout, double nnz)
{
    double density = layout->slots == 0 ? 0 : fmin(nnz / (double)layout->slots, 1);
    double whole = floor((double)layout->slots / BLOCK), rest = (double)layout->slots - whole * BLOCK;
    double none = log1p(-density), last = rest > 0 ? -expm1(rest * none) : 0;
    return (whole * -expm1(BLOCK * none) + last) * (double)bytes_each(layout);
}

/* Sections of the payload. */
struct blocks {
    unsigned char *values, *presence;
    void *numbers;
    uint64_t n;
};

static struct blocks blocks_at(const struct sar_wire_layout *layout, void *payload, uint64_t n)
{
    struct blocks b = { .values = payload, .n = n };
    b.numbers = b.values + n * BLOCK * layout->element_size;
    b.presence = (unsigned char *)b.numbers + n * layout->index_size;
    return b;
}

static void encode(const struct sar_wire_layout *layout, const struct sar_spvec *vec, void *payload)
{
    struct blocks b = blocks_at(layout, payload, sar_indices_count_blocks(layout, vec, BLOCK_SHIFT));
    size_t size = layout->element_size;
    uint64_t block = 0, next = 0, number = 0;
    memset(payload, 0, b.n * bytes_each(layout));
    for (size_t i = 0; i < vec->nnz; i++) {
        uint64_t slot = sar_index_get(vec->index, layout->index_size, i);
        if (next == 0 || slot / BLOCK != number) {
            number = slot / BLOCK;
            block = next++;
            sar_index_set(b.numbers, layout->index_size, block, number);
        }
        uint64_t at = block * BLOCK + slot % BLOCK;
        memcpy(b.values + at * size, (const unsigned char *)vec->value + i * size, size);
        if (!layout->zero_is_absent)
            b.presence[at / 8] |= (unsigned char)(1u << (at % 8));
    }
}

/* Converts positions in the blocks to slots. Returns false if a slot is out of range. */
SAR_INLINE bool slots_of(const struct sar_wire_layout *layout, const struct blocks *b,
                         const struct sar_spvec *vec, unsigned size)
{
    uint64_t last = 0;
    for (size_t i = 0; i < vec->nnz; i++) {
        uint64_t at = sar_index_get(vec->index, size, i);
        last = sar_index_get(b->numbers, size, at / BLOCK) * BLOCK + at % BLOCK;
        sar_index_set(vec->index, size, i, last);
    }
    return vec->nnz == 0 || last < layout->slots;
}

static enum sar_status decode(const struct sar_wire_layout *layout, void *payload, uint64_t bytes,
                              struct sar_arena *arena, struct sar_spvec *vec)
{
    uint64_t n = bytes / bytes_each(layout), all = layout->slots / BLOCK + (layout->slots % BLOCK != 0);
    if (bytes % bytes_each(layout) != 0 || vec->nnz > layout->slots || vec->nnz > sar_mul_saturate(n, BLOCK))
        return SAR_CORRUPT;
    struct blocks b = blocks_at(layout, payload, n);
    struct sar_wire_layout numbers = { .slots = all, .index_size = layout->index_size };
    if (!sar_indices_are_sorted(&numbers, b.numbers, (size_t)n))
        return SAR_CORRUPT;
    SAR_TRY(sar_indices_extract(layout, b.values, layout->zero_is_absent ? NULL : b.presence, n * BLOCK,
                                arena, vec));
    bool inside = layout->index_size == 4 ? slots_of(layout, &b, vec, 4) : slots_of(layout, &b, vec, 8);
    return inside ? SAR_OK : SAR_CORRUPT;
}

/* Returns the expected share of blocks that are in use. */
static double share_in_use(const struct sar_wire_layout *layout, double nnz)
{
    double density = layout->slots == 0 ? 0 : fmin(nnz / (double)layout->slots, 1);
    return -expm1(BLOCK * log1p(-density));
}

const struct sar_wire sar_wire_block = {
    .name = "block",
    .summary = "blocks of 256 slots, whole, where anything is in them (OmniReduce)",
    .min_bytes = min_bytes,
    .exact_bytes = bytes_of,
    .expected_bytes = expected,
    .nnz_cost = 1.8,
    .slot_cost = 0.06,
    .scanned_share = share_in_use,
    .encode = encode,
    .decode = decode,
};
