/* SPDX-License-Identifier: BSD-3-Clause */
/* Coordinates: all indices, then all values. The format of the paper's push, and the cheapest below one
 * element in 32 (4-byte indices). Nothing is copied on arrival: the run points into the message.
 *
 *     bytes = nnz (s + 4), with 8-byte indices padded so that values stay aligned */

#include <string.h>

#include "wire/wire.h"

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

/* Whether indices ascend below span. */
SAR_INLINE bool valid(const void *index, unsigned size, size_t n, uint64_t span)
{
    bool wrong = sar_index_get(index, size, n - 1) >= span;
    for (size_t i = 1; i < n; i++)
        wrong |= sar_index_get(index, size, i) <= sar_index_get(index, size, i - 1);
    return !wrong;
}

SAR_CLONES static bool valid_narrow(const uint32_t *index, size_t n, uint64_t span)
{
    return valid(index, 4, n, span);
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
    if (run->nnz == 0)
        return SAR_OK;
    bool good = layout->index_size == 4 ? valid_narrow(run->index, run->nnz, layout->span)
                                        : valid(run->index, 8, run->nnz, layout->span);
    return good ? SAR_OK : SAR_CORRUPT;
}

static double work(const struct sar_layout *layout, double nnz)
{
    (void)layout;
    return 0.2 * nnz;
}

const struct sar_wire sar_wire_coo = {
    .name = "coo",
    .summary = "an index and a value for each element",
    .least = bytes_of,
    .work = work,
    .encode = encode,
    .decode = decode,
};
