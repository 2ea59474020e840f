/* SPDX-License-Identifier: BSD-3-Clause */
/* Coordinates: all indices and all values. The format of the paper's push step, and the smallest below a
 * density of 1/32 (4-byte indices). Decoding copies nothing: vec points into the message.
 *
 *     bytes = nnz (s + i),   i bytes of an index, 4 or 8 */

#include "base/parallel.h"
#include "wire/index_util.h"

static uint64_t bytes_of(const struct sar_wire_layout *layout, uint64_t nnz)
{
    return sar_mul_saturate(nnz, layout->element_size + layout->index_size);
}

/* Values come first if indices before them could leave them unaligned: 4-byte indices, 8-byte values, odd
 * nnz. */
static bool values_first(const struct sar_wire_layout *layout)
{
    return layout->element_size % layout->index_size == 0;
}

static void encode(const struct sar_wire_layout *layout, const struct sar_spvec *vec, void *payload)
{
    size_t values = vec->nnz * layout->element_size, indices = vec->nnz * layout->index_size;
    unsigned char *out = payload;
    if (vec->nnz == 0)
        return;
    sar_parallel_copy(values_first(layout) ? out : out + indices, vec->value, values);
    sar_parallel_copy(values_first(layout) ? out + values : out, vec->index, indices);
}

static enum sar_status decode(const struct sar_wire_layout *layout, void *payload, uint64_t bytes,
                              struct sar_arena *arena, struct sar_spvec *vec)
{
    (void)arena;
    unsigned char *in = payload;
    if (vec->nnz > layout->slots || bytes != bytes_of(layout, vec->nnz))
        return SAR_CORRUPT;
    bool first = values_first(layout);
    vec->value = first ? in : in + vec->nnz * layout->index_size;
    vec->index = first ? in + vec->nnz * layout->element_size : in;
    return sar_indices_are_sorted(layout, vec->index, vec->nnz) ? SAR_OK : SAR_CORRUPT;
}

const struct sar_wire sar_wire_coo = {
    .name = "coo",
    .summary = "an index and a value for each element",
    .codec_id = SAR_CODEC_COO,
    .min_bytes = bytes_of,
    .nnz_cost = 0.28,
    .pull_nnz_cost = 0.14,
    .encode = encode,
    .decode = decode,
};
