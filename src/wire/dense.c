/* SPDX-License-Identifier: BSD-3-Clause */
/* Dense: a value for each slot, zero bits where there is none. Where an element of zero bits must not be
 * lost (the COO interface keeps explicit zeros), a bitmap of the elements present follows.
 *
 *     bytes = span s, plus ceil(span / 8) unless zeros may be lost */

#include <string.h>

#include "wire/wire.h"

static uint64_t bytes_of(const struct sar_layout *layout, uint64_t nnz)
{
    (void)nnz;
    uint64_t presence = layout->zero_is_absent ? 0 : sar_bitmap_bytes(layout->span);
    return sar_plus(sar_times(layout->span, layout->element_size), presence);
}

static void encode(const struct sar_layout *layout, const struct sar_run *run, void *payload)
{
    unsigned char *out = payload;
    size_t size = layout->element_size;
    memset(out, 0, layout->span * size);
    for (size_t i = 0; i < run->nnz; i++)
        memcpy(out + sar_index_get(run->index, layout->index_size, i) * size,
               (const unsigned char *)run->value + i * size, size);
    if (!layout->zero_is_absent)
        sar_bitmap_encode(layout, run, out + layout->span * size);
}

static bool is_zero(const unsigned char *element, size_t size)
{
    unsigned char any = 0;
    for (size_t i = 0; i < size; i++)
        any |= element[i];
    return any == 0;
}

/* List the elements with a bit set; fewer than announced where the sum of some was zero. */
static enum sar_status list_nonzeros(const struct sar_layout *layout, const unsigned char *in,
                                     struct sar_run *run)
{
    size_t k = 0;
    for (uint64_t i = 0; i < layout->span; i++) {
        if (is_zero(in + i * layout->element_size, layout->element_size))
            continue;
        if (k == run->nnz)
            return SAR_CORRUPT;
        sar_index_set(run->index, layout->index_size, k++, i);
    }
    run->nnz = k;
    return SAR_OK;
}

static enum sar_status decode(const struct sar_layout *layout, void *payload, uint64_t bytes,
                              struct sar_arena *arena, struct sar_run *run)
{
    const unsigned char *in = payload;
    size_t size = layout->element_size;
    if (run->nnz > layout->span || bytes != bytes_of(layout, run->nnz))
        return SAR_CORRUPT;
    SAR_TRY(sar_arena_take(arena, run->nnz, layout->index_size, &run->index));
    SAR_TRY(sar_arena_take(arena, run->nnz, size, &run->value));
    if (layout->zero_is_absent)
        SAR_TRY(list_nonzeros(layout, in, run));
    else
        SAR_TRY(sar_bitmap_decode(layout, in + layout->span * size, run->nnz, run->index));
    for (size_t i = 0; i < run->nnz; i++)
        memcpy((unsigned char *)run->value + i * size,
               in + sar_index_get(run->index, layout->index_size, i) * size, size);
    return SAR_OK;
}

static double work(const struct sar_layout *layout, double nnz)
{
    return 0.5 * nnz + 0.3 * (double)layout->span;
}

const struct sar_wire sar_wire_dense = {
    .name = "dense",
    .summary = "a value for each slot, present or not",
    .least = bytes_of,
    .work = work,
    .encode = encode,
    .decode = decode,
};
