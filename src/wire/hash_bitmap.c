/* SPDX-License-Identifier: BSD-3-Clause */
/* Hash bitmap (Zen, Algorithm 2): the values in order, then one bit for each slot of the part. Since the bits
 * number slots of one part and not elements of the vector, all parts together take count / 8 bytes however
 * many ranks there are. Over a whole vector it is a plain bitmap.
 *
 *     bytes = nnz s + ceil(span / 8) */

#include <string.h>

#include "wire/wire.h"

static uint64_t bytes_of(const struct sar_layout *layout, uint64_t nnz)
{
    return sar_plus(sar_times(nnz, layout->element_size), sar_bitmap_bytes(layout->span));
}

SAR_INLINE void set_bits(const struct sar_run *run, unsigned size, unsigned char *bitmap)
{
    for (size_t i = 0; i < run->nnz; i++) {
        uint64_t index = sar_index_get(run->index, size, i);
        bitmap[index / 8] |= (unsigned char)(1u << (index % 8));
    }
}

void sar_bitmap_encode(const struct sar_layout *layout, const struct sar_run *run, unsigned char *bitmap)
{
    memset(bitmap, 0, sar_bitmap_bytes(layout->span));
    SAR_FOR_INDEX_SIZE(layout->index_size, set_bits(run, INDEX_SIZE, bitmap));
}

/* Up to eight bytes of a bitmap as one little-endian word, whatever the machine's order. */
static uint64_t load_word(const unsigned char *bitmap, uint64_t word, uint64_t bytes)
{
    unsigned char part[8] = { 0 };
    uint64_t bits = 0, left = bytes - word * 8;
    memcpy(part, bitmap + word * 8, left < 8 ? left : 8);
    for (unsigned i = 0; i < 8; i++)
        bits |= (uint64_t)part[i] << (8 * i);
    return bits;
}

SAR_INLINE enum sar_status list_bits(const struct sar_layout *layout, const unsigned char *bitmap, size_t nnz,
                                     void *index, unsigned size)
{
    uint64_t bytes = sar_bitmap_bytes(layout->span);
    size_t k = 0;
    for (uint64_t word = 0; word * 8 < bytes; word++) {
        uint64_t bits = load_word(bitmap, word, bytes);
        if (bits == 0)
            continue;
        if ((size_t)__builtin_popcountll(bits) > nnz - k)
            return SAR_CORRUPT;
        for (; bits != 0; bits &= bits - 1)
            sar_index_set(index, size, k++, word * 64 + (unsigned)__builtin_ctzll(bits));
    }
    if (k != nnz || (k != 0 && sar_index_get(index, size, k - 1) >= layout->span))
        return SAR_CORRUPT;
    return SAR_OK;
}

enum sar_status sar_bitmap_decode(const struct sar_layout *layout, const unsigned char *bitmap, size_t nnz,
                                  void *index)
{
    if (layout->index_size == 4)
        return list_bits(layout, bitmap, nnz, index, 4);
    return list_bits(layout, bitmap, nnz, index, 8);
}

static void encode(const struct sar_layout *layout, const struct sar_run *run, void *payload)
{
    size_t values = run->nnz * layout->element_size;
    if (values != 0)
        memcpy(payload, run->value, values);
    sar_bitmap_encode(layout, run, (unsigned char *)payload + values);
}

static enum sar_status decode(const struct sar_layout *layout, void *payload, uint64_t bytes,
                              struct sar_arena *arena, struct sar_run *run)
{
    if (run->nnz > layout->span || bytes != bytes_of(layout, run->nnz))
        return SAR_CORRUPT;
    run->value = payload;
    SAR_TRY(sar_arena_take(arena, run->nnz, layout->index_size, &run->index));
    return sar_bitmap_decode(layout, (unsigned char *)payload + run->nnz * layout->element_size, run->nnz,
                             run->index);
}

static double work(const struct sar_layout *layout, double nnz)
{
    return 0.7 * nnz + 0.005 * (double)layout->span;
}

const struct sar_wire sar_wire_hash_bitmap = {
    .name = "hash_bitmap",
    .summary = "the values, and a bit for each slot of the part (Zen, Algorithm 2)",
    .bytes = bytes_of,
    .work = work,
    .encode = encode,
    .decode = decode,
};
