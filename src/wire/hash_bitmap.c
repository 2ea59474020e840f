/* SPDX-License-Identifier: BSD-3-Clause */
/* Hash bitmap (Zen, Algorithm 2): the values in order, then one bit for each slot of the part. Since the bits
 * number slots of one part and not elements of the vector, all parts together take count / 8 bytes however
 * many ranks there are. Over a whole vector it is a plain bitmap.
 *
 *     bytes = nnz s + ceil(span / 8) */

#include "tensor/bits.h"
#include "wire/indices.h"

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

/* List the set bits of `words` words; SIZE_MAX when there are more than nnz of them, for which there is
 * room. */
SAR_INLINE size_t list_words(const unsigned char *bitmap, uint64_t words, size_t nnz, void *index,
                             unsigned size, bool wide)
{
    size_t k = 0;
    uint64_t word = 0;
    for (; word < words && nnz - k >= 64 + SAR_BITS_SLACK; word++) {
        uint64_t bits = sar_load_word(bitmap + word * 8);
        k += wide ? sar_bits_list_wide(bits, (uint32_t)word * 64, (uint32_t *)index + k)
                  : sar_bits_list(bits, word * 64, index, size, k);
    }
    for (; word < words; word++) {
        for (uint64_t bits = sar_load_word(bitmap + word * 8); bits != 0; bits &= bits - 1) {
            if (k == nnz)
                return SIZE_MAX;
            sar_index_set(index, size, k++, word * 64 + (unsigned)__builtin_ctzll(bits));
        }
    }
    return k;
}

SAR_CLONES static size_t list_narrow(const unsigned char *bitmap, uint64_t words, size_t nnz, void *index)
{
    return list_words(bitmap, words, nnz, index, 4, false);
}

#if defined(SAR_WIDE)
SAR_WIDE static size_t list_wide(const unsigned char *bitmap, uint64_t words, size_t nnz, void *index)
{
    return list_words(bitmap, words, nnz, index, 4, true);
}
#else
#define list_wide list_narrow
#endif

static size_t list(const unsigned char *bitmap, uint64_t words, size_t nnz, void *index, unsigned size)
{
    if (size != 4)
        return list_words(bitmap, words, nnz, index, 8, false);
    return sar_is_wide() ? list_wide(bitmap, words, nnz, index) : list_narrow(bitmap, words, nnz, index);
}

enum sar_status sar_bitmap_decode(const struct sar_layout *layout, const unsigned char *bitmap, size_t nnz,
                                  void *index)
{
    uint64_t bytes = sar_bitmap_bytes(layout->span), words = bytes / 8;
    unsigned size = layout->index_size;
    size_t k = list(bitmap, words, nnz, index, size);
    if (k > nnz)
        return SAR_CORRUPT;
    for (uint64_t bit = words * 64; bit < bytes * 8; bit++) {
        if ((bitmap[bit / 8] >> (bit % 8) & 1) == 0)
            continue;
        if (k == nnz || bit >= layout->span)
            return SAR_CORRUPT;
        sar_index_set(index, size, k++, bit);
    }
    return k == nnz && (k == 0 || sar_index_get(index, size, k - 1) < layout->span) ? SAR_OK : SAR_CORRUPT;
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
    return 0.4 * nnz + 0.01 * (double)layout->span;
}

const struct sar_wire sar_wire_hash_bitmap = {
    .name = "hash_bitmap",
    .summary = "the values, and a bit for each slot of the part (Zen, Algorithm 2)",
    .packing = SAR_PACKING_HASH_BITMAP,
    .least = bytes_of,
    .work = work,
    .encode = encode,
    .decode = decode,
};
