/* SPDX-License-Identifier: BSD-3-Clause */
/* Dense: one value for each slot, zero bits for absent elements. Unless zeros may be dropped, a bitmap of the
 * elements present follows, since the COO interface keeps explicit zeros.
 *
 *     bytes = slots s, plus ceil(slots / 8) unless zeros may be dropped */

#include "wire/index_util.h"

static uint64_t bytes_of(const struct sar_wire_layout *layout, uint64_t nnz)
{
    (void)nnz;
    uint64_t presence = layout->zero_is_absent ? 0 : sar_bitmap_bytes(layout->slots);
    return sar_add_saturate(sar_mul_saturate(layout->slots, layout->element_size), presence);
}

SAR_INLINE void scatter(const struct sar_wire_layout *layout, const struct sar_spvec *vec, size_t size,
                        unsigned char *out)
{
    for (size_t i = 0; i < vec->nnz; i++)
        memcpy(out + sar_index_get(vec->index, layout->index_size, i) * size,
               (const unsigned char *)vec->value + i * size, size);
}

static void encode(const struct sar_wire_layout *layout, const struct sar_spvec *vec, void *payload)
{
    unsigned char *out = payload;
    size_t size = layout->element_size;
    memset(out, 0, layout->slots * size);
    if (size == 4)
        scatter(layout, vec, 4, out);
    else
        scatter(layout, vec, size, out);
    if (!layout->zero_is_absent)
        sar_bitmap_encode(layout, vec, out + layout->slots * size);
}

static enum sar_status decode(const struct sar_wire_layout *layout, void *payload, uint64_t bytes,
                              struct sar_arena *arena, struct sar_spvec *vec)
{
    unsigned char *in = payload;
    if (vec->nnz > layout->slots || bytes != bytes_of(layout, vec->nnz))
        return SAR_CORRUPT;
    const unsigned char *presence = layout->zero_is_absent ? NULL : in + layout->slots * layout->element_size;
    return sar_indices_extract(layout, in, presence, layout->slots, arena, vec);
}

const struct sar_wire sar_wire_dense = {
    .name = "dense",
    .summary = "a value for each slot, present or not",
    .min_bytes = bytes_of,
    .nnz_cost = 2.9,
    .slot_cost = 0.055,
    .pull_nnz_cost = 2.0,
    .pull_slot_cost = 0.0074,
    .encode = encode,
    .decode = decode,
};
