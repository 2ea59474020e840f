/* SPDX-License-Identifier: BSD-3-Clause */
/* Dense: a value for each slot, zero bits where there is none. Where an element of zero bits must not be
 * lost (the COO interface keeps explicit zeros), a bitmap of the elements present follows.
 *
 *     bytes = span s, plus ceil(span / 8) unless zeros may be lost */

#include "wire/indices.h"

static uint64_t bytes_of(const struct sar_layout *layout, uint64_t nnz)
{
    (void)nnz;
    uint64_t presence = layout->zero_is_absent ? 0 : sar_bitmap_bytes(layout->span);
    return sar_plus(sar_times(layout->span, layout->element_size), presence);
}

SAR_INLINE void place(const struct sar_layout *layout, const struct sar_run *run, size_t size,
                      unsigned char *out)
{
    for (size_t i = 0; i < run->nnz; i++)
        memcpy(out + sar_index_get(run->index, layout->index_size, i) * size,
               (const unsigned char *)run->value + i * size, size);
}

static void encode(const struct sar_layout *layout, const struct sar_run *run, void *payload)
{
    unsigned char *out = payload;
    size_t size = layout->element_size;
    memset(out, 0, layout->span * size);
    if (size == 4)
        place(layout, run, 4, out);
    else
        place(layout, run, size, out);
    if (!layout->zero_is_absent)
        sar_bitmap_encode(layout, run, out + layout->span * size);
}

static enum sar_status decode(const struct sar_layout *layout, void *payload, uint64_t bytes,
                              struct sar_arena *arena, struct sar_run *run)
{
    const unsigned char *in = payload;
    if (run->nnz > layout->span || bytes != bytes_of(layout, run->nnz))
        return SAR_CORRUPT;
    const unsigned char *presence = layout->zero_is_absent ? NULL : in + layout->span * layout->element_size;
    return sar_pick(layout, in, presence, layout->span, arena, run);
}

static double work(const struct sar_layout *layout, double nnz)
{
    return 0.8 * nnz + 0.05 * (double)layout->span;
}

const struct sar_wire sar_wire_dense = {
    .name = "dense",
    .summary = "a value for each slot, present or not",
    .least = bytes_of,
    .work = work,
    .encode = encode,
    .decode = decode,
};
