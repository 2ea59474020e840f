/* SPDX-License-Identifier: BSD-3-Clause */
/* Coordinates: all indices, then all values. The format of the paper's push, and the cheapest below one
 * element in 32 (4-byte indices). Nothing is copied on arrival: the run points into the message.
 *
 *     bytes = nnz (s + 4), with 8-byte indices padded so that values stay aligned */

#include "wire/indices.h"

/* 4-byte indices would leave 8-byte values unaligned when nnz is odd: values come first. */
static uint64_t bytes_of(const struct sar_layout *layout, uint64_t nnz)
{
    return sar_times(nnz, layout->element_size + layout->index_size);
}

static bool values_first(const struct sar_layout *layout)
{
    return layout->element_size % layout->index_size == 0;
}

static void encode(const struct sar_layout *layout, const struct sar_run *run, void *payload)
{
    size_t values = run->nnz * layout->element_size, indices = run->nnz * layout->index_size;
    unsigned char *out = payload;
    if (run->nnz == 0)
        return;
    memcpy(values_first(layout) ? out : out + indices, run->value, values);
    memcpy(values_first(layout) ? out + values : out, run->index, indices);
}

static enum sar_status decode(const struct sar_layout *layout, void *payload, uint64_t bytes,
                              struct sar_arena *arena, struct sar_run *run)
{
    (void)arena;
    unsigned char *in = payload;
    if (run->nnz > layout->span || bytes != bytes_of(layout, run->nnz))
        return SAR_CORRUPT;
    bool first = values_first(layout);
    run->value = first ? in : in + run->nnz * layout->index_size;
    run->index = first ? in + run->nnz * layout->element_size : in;
    return sar_indices_ascend(layout, run->index, run->nnz) ? SAR_OK : SAR_CORRUPT;
}

static double work(const struct sar_layout *layout, double nnz)
{
    (void)layout;
    return 0.1 * nnz;
}

const struct sar_wire sar_wire_coo = {
    .name = "coo",
    .summary = "an index and a value for each element",
    .packing = SAR_PACKING_COO,
    .least = bytes_of,
    .work = work,
    .encode = encode,
    .decode = decode,
};
