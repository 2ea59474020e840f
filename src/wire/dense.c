/* SPDX-License-Identifier: BSD-3-Clause */
/* Dense: one value for each slot, zero bits for absent elements. Unless zeros may be dropped, a bitmap of the
 * elements present follows, since the COO interface keeps explicit zeros.
 *
 *     bytes = slots s, plus ceil(slots / 8) unless zeros may be dropped */

#include "base/parallel.h"
#include "wire/index_util.h"

static uint64_t bytes_of(const struct sar_wire_layout *layout, uint64_t nnz)
{
    (void)nnz;
    uint64_t presence = layout->zero_is_absent ? 0 : sar_bitmap_bytes(layout->slots);
    return sar_add_saturate(sar_mul_saturate(layout->slots, layout->element_size), presence);
}

struct copy {
    const struct sar_wire_layout *layout;
    const struct sar_spvec *vec;
    unsigned char *out;
};

/* Pointers are copied to locals: a compiler must assume that stored values overwrite the structs. */
SAR_INLINE void scatter(const struct copy *c, size_t size, size_t from, size_t to)
{
    const void *index = c->vec->index;
    const unsigned char *value = c->vec->value;
    unsigned char *out = c->out;
    unsigned index_size = c->layout->index_size;
    for (size_t i = from; i < to; i++)
        memcpy(out + sar_index_get(index, index_size, i) * size, value + i * size, size);
}

/* Writes the slots [from, to). */
static void write_slots(void *copy, size_t from, size_t to)
{
    const struct copy *c = copy;
    size_t size = c->layout->element_size, nnz = c->vec->nnz;
    unsigned index_size = c->layout->index_size;
    size_t first = from == 0 ? 0 : sar_index_lower_bound(c->vec->index, index_size, 0, nnz, from);
    size_t last =
        to == c->layout->slots ? nnz : sar_index_lower_bound(c->vec->index, index_size, first, nnz, to);
    memset(c->out + from * size, 0, (to - from) * size);
    if (size == 4)
        scatter(c, 4, first, last);
    else
        scatter(c, size, first, last);
}

static void encode(const struct sar_wire_layout *layout, const struct sar_spvec *vec, void *payload)
{
    struct copy copy = { layout, vec, payload };
    size_t bytes = layout->slots * layout->element_size;
    sar_ranges_run((struct sar_ranges){ layout->slots, 1, sar_parallel_pieces(bytes), write_slots, &copy });
    if (!layout->zero_is_absent)
        sar_bitmap_encode(layout, vec, copy.out + bytes);
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
