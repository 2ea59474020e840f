/* SPDX-License-Identifier: BSD-3-Clause */
/* Hash bitmap (Zen, Algorithm 2): the values in order, then one bit for each slot of the part. The bits stand
 * for slots of one part, not for elements of the vector, so all parts together take count / 8 bytes for any
 * number of ranks. Over a whole vector the format is a plain bitmap.
 *
 *     bytes = nnz s + ceil(slots / 8) */

#include "vector/bit_list.h"
#include "wire/index_util.h"

static uint64_t bytes_of(const struct sar_wire_layout *layout, uint64_t nnz)
{
    return sar_add_saturate(sar_mul_saturate(nnz, layout->element_size), sar_bitmap_bytes(layout->slots));
}

SAR_INLINE void set_bits(const struct sar_spvec *vec, unsigned size, unsigned char *bitmap)
{
    for (size_t i = 0; i < vec->nnz; i++) {
        uint64_t index = sar_index_get(vec->index, size, i);
        bitmap[index / 8] |= (unsigned char)(1u << (index % 8));
    }
}

void sar_bitmap_encode(const struct sar_wire_layout *layout, const struct sar_spvec *vec,
                       unsigned char *bitmap)
{
    memset(bitmap, 0, sar_bitmap_bytes(layout->slots));
    SAR_FOR_INDEX_SIZE(layout->index_size, set_bits(vec, INDEX_SIZE, bitmap));
}

/* Lists the set bits of `words` words in `index`, which has room for nnz. Returns their number, or SIZE_MAX
 * if there are more than nnz. */
SAR_INLINE size_t list_words(const unsigned char *bitmap, uint64_t words, size_t nnz, void *index,
                             unsigned size, bool wide)
{
    size_t k = 0;
    uint64_t word = 0;
    for (; word < words && nnz - k >= 64 + SAR_BIT_LIST_SLACK; word++) {
        uint64_t bits = sar_load_word(bitmap + word * 8);
        k += wide ? sar_bit_list_avx512(bits, (uint32_t)word * 64, (uint32_t *)index + k)
                  : sar_bit_list(bits, word * 64, index, size, k);
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

SAR_CLONES static size_t list_scalar(const unsigned char *bitmap, uint64_t words, size_t nnz, void *index)
{
    return list_words(bitmap, words, nnz, index, 4, false);
}

#if defined(SAR_AVX512)
SAR_AVX512 static size_t list_simd(const unsigned char *bitmap, uint64_t words, size_t nnz, void *index)
{
    return list_words(bitmap, words, nnz, index, 4, true);
}
#else
#define list_simd list_scalar
#endif

enum sar_status sar_bitmap_decode(const struct sar_wire_layout *layout, const unsigned char *bitmap,
                                  size_t nnz, void *index)
{
    uint64_t bytes = sar_bitmap_bytes(layout->slots), words = bytes / 8;
    unsigned size = layout->index_size;
    size_t k;
    if (size != 4)
        k = list_words(bitmap, words, nnz, index, 8, false);
    else
        k = (sar_has_avx512() ? list_simd : list_scalar)(bitmap, words, nnz, index);
    if (k > nnz)
        return SAR_CORRUPT;
    for (uint64_t bit = words * 64; bit < bytes * 8; bit++) {
        if ((bitmap[bit / 8] >> (bit % 8) & 1) == 0)
            continue;
        if (k == nnz || bit >= layout->slots)
            return SAR_CORRUPT;
        sar_index_set(index, size, k++, bit);
    }
    return k == nnz && (k == 0 || sar_index_get(index, size, k - 1) < layout->slots) ? SAR_OK : SAR_CORRUPT;
}

static void encode(const struct sar_wire_layout *layout, const struct sar_spvec *vec, void *payload)
{
    size_t values = vec->nnz * layout->element_size;
    if (values != 0)
        memcpy(payload, vec->value, values);
    sar_bitmap_encode(layout, vec, (unsigned char *)payload + values);
}

static enum sar_status decode(const struct sar_wire_layout *layout, void *payload, uint64_t bytes,
                              struct sar_arena *arena, struct sar_spvec *vec)
{
    if (vec->nnz > layout->slots || bytes != bytes_of(layout, vec->nnz))
        return SAR_CORRUPT;
    vec->value = payload;
    SAR_TRY(sar_arena_alloc(arena, vec->nnz, layout->index_size, &vec->index));
    return sar_bitmap_decode(layout, (unsigned char *)payload + vec->nnz * layout->element_size, vec->nnz,
                             vec->index);
}

const struct sar_wire sar_wire_hash_bitmap = {
    .name = "hash_bitmap",
    .summary = "the values, and a bit for each slot of the part (Zen, Algorithm 2)",
    .codec_id = SAR_CODEC_HASH_BITMAP,
    .min_bytes = bytes_of,
    .nnz_cost = 0.4,
    .slot_cost = 0.01,
    .encode = encode,
    .decode = decode,
};
