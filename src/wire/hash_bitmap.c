/* SPDX-License-Identifier: BSD-3-Clause */
/* Hash bitmap (Zen, Algorithm 2): the values in order, then one bit for each slot of the part. The bits stand
 * for slots of one part, not for elements of the vector, so all parts together take count / 8 bytes for any
 * number of ranks. Over a whole vector the format is a plain bitmap.
 *
 *     bytes = nnz s + ceil(slots / 8) */

#include "base/parallel.h"
#include "vector/bit_list.h"
#include "vector/bit_set.h"
#include "vector/merge_bitmaps.h"
#include "wire/index_util.h"

static uint64_t bytes_of(const struct sar_wire_layout *layout, uint64_t nnz)
{
    return sar_add_saturate(sar_mul_saturate(nnz, layout->element_size), sar_bitmap_bytes(layout->slots));
}

SAR_INLINE void set_bits(const void *list, unsigned size, size_t from, size_t end, unsigned char *bitmap)
{
    for (size_t i = from; i < end; i++) {
        uint64_t index = sar_index_get(list, size, i);
        bitmap[index / 8] |= (unsigned char)(1u << (index % 8));
    }
}

#if defined(SAR_AVX512)
/* As set_bits; bits from `slots` on may share a word of 32 bits with memory behind the bitmap. */
SAR_AVX512 static void set_bits_wide(const uint32_t *index, size_t from, size_t end, uint64_t slots,
                                     unsigned char *bitmap)
{
    size_t whole = end;
    while (whole > from && index[whole - 1] / 32 >= slots / 32)
        whole--;
    from += sar_bit_set_avx512(index + from, whole - from, bitmap);
    set_bits(index, 4, from, end, bitmap);
}
#else
#define set_bits_wide(index, from, end, slots, bitmap) set_bits(index, 4, from, end, bitmap)
#endif

enum { PIECE_SLOTS = 4096 /* pieces begin at multiples of as many slots */ };

/* A bitmap whose ranges of slots are written, or read, in parallel. */
struct bitmap {
    const struct sar_wire_layout *layout;
    const struct sar_spvec *vec;
    unsigned char *bits;
    size_t pieces;
    size_t *before; /* decode: bits set before each piece; pieces + 1 */
};

static uint64_t first_slot(const struct bitmap *b, size_t i)
{
    return sar_parallel_bound((size_t)b->layout->slots, PIECE_SLOTS, b->pieces, i);
}

static enum sar_status write_range(void *arg, size_t i)
{
    const struct bitmap *b = arg;
    const struct sar_spvec *vec = b->vec;
    unsigned size = b->layout->index_size;
    uint64_t begin = first_slot(b, i), end = first_slot(b, i + 1);
    size_t from = i == 0 ? 0 : sar_index_lower_bound(vec->index, size, 0, vec->nnz, begin);
    size_t to = i + 1 == b->pieces ? vec->nnz : sar_index_lower_bound(vec->index, size, from, vec->nnz, end);
    memset(b->bits + begin / 8, 0, sar_bitmap_bytes(end) - begin / 8);
    if (size == 4 && sar_has_avx512())
        set_bits_wide(vec->index, from, to, b->layout->slots, b->bits);
    else
        SAR_FOR_INDEX_SIZE(size, set_bits(vec->index, INDEX_SIZE, from, to, b->bits));
    return SAR_OK;
}

void sar_bitmap_encode(const struct sar_wire_layout *layout, const struct sar_spvec *vec,
                       unsigned char *bitmap)
{
    size_t bytes = sar_bitmap_bytes(layout->slots) + vec->nnz * layout->index_size;
    struct bitmap b = { layout, vec, bitmap, sar_parallel_pieces(bytes), NULL };
    (void)sar_parallel_for(b.pieces, write_range, &b);
}

/* Lists the set bits of words [word, words) in `index`, which has room for nnz. Returns their number, or
 * SIZE_MAX if there are more than nnz. */
SAR_INLINE size_t list_words(const unsigned char *bitmap, uint64_t word, uint64_t words, size_t nnz,
                             void *index, unsigned size, bool wide)
{
    size_t k = 0;
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

SAR_CLONES static size_t list_scalar(const unsigned char *bitmap, uint64_t word, uint64_t words, size_t nnz,
                                     void *index)
{
    return list_words(bitmap, word, words, nnz, index, 4, false);
}

#if defined(SAR_AVX512)
SAR_AVX512 static size_t list_simd(const unsigned char *bitmap, uint64_t word, uint64_t words, size_t nnz,
                                   void *index)
{
    return list_words(bitmap, word, words, nnz, index, 4, true);
}
#else
#define list_simd list_scalar
#endif

static size_t list(const struct sar_wire_layout *layout, const unsigned char *bitmap, uint64_t word,
                   uint64_t words, size_t nnz, void *index)
{
    if (layout->index_size != 4)
        return list_words(bitmap, word, words, nnz, index, 8, false);
    return (sar_has_avx512() ? list_simd : list_scalar)(bitmap, word, words, nnz, index);
}

/* Lists the bits after the last whole word. Returns the number of bits in all, or SIZE_MAX. */
static size_t list_rest(const struct sar_wire_layout *layout, const unsigned char *bitmap, size_t k,
                        size_t nnz, void *index)
{
    uint64_t bytes = sar_bitmap_bytes(layout->slots);
    for (uint64_t bit = bytes / 8 * 64; bit < bytes * 8; bit++) {
        if ((bitmap[bit / 8] >> (bit % 8) & 1) == 0)
            continue;
        if (k == nnz || bit >= layout->slots)
            return SIZE_MAX;
        sar_index_set(index, layout->index_size, k++, bit);
    }
    return k;
}

static uint64_t first_word(const struct bitmap *b, size_t i)
{
    return i == b->pieces ? sar_bitmap_bytes(b->layout->slots) / 8 : first_slot(b, i) / 64;
}

static enum sar_status count_range(void *arg, size_t i)
{
    const struct bitmap *b = arg;
    b->before[i + 1] =
        sar_bitmap_count(b->bits, sar_bitmap_bytes(b->layout->slots), first_word(b, i), first_word(b, i + 1));
    return SAR_OK;
}

static enum sar_status list_range(void *arg, size_t i)
{
    const struct bitmap *b = arg;
    unsigned char *index = (unsigned char *)b->vec->index + b->before[i] * b->layout->index_size;
    list(b->layout, b->bits, first_word(b, i), first_word(b, i + 1), b->before[i + 1] - b->before[i], index);
    return SAR_OK;
}

/* As `list` for all whole words, in parallel. */
static size_t list_ranges(struct bitmap *b)
{
    size_t before[SAR_PIECES_MAX + 1];
    before[0] = 0;
    b->before = before;
    (void)sar_parallel_for(b->pieces, count_range, b);
    for (size_t i = 0; i < b->pieces; i++)
        before[i + 1] += before[i];
    if (before[b->pieces] > b->vec->nnz)
        return SIZE_MAX;
    (void)sar_parallel_for(b->pieces, list_range, b);
    return before[b->pieces];
}

enum sar_status sar_bitmap_decode(const struct sar_wire_layout *layout, const unsigned char *bitmap,
                                  size_t nnz, void *index)
{
    struct sar_spvec vec = { index, NULL, nnz };
    uint64_t bytes = sar_bitmap_bytes(layout->slots);
    struct bitmap b = { layout, &vec, (unsigned char *)bitmap,
                        sar_parallel_pieces((size_t)bytes + nnz * layout->index_size), NULL };
    size_t k = b.pieces > 1 ? list_ranges(&b) : list(layout, bitmap, 0, bytes / 8, nnz, index);
    k = k > nnz ? k : list_rest(layout, bitmap, k, nnz, index);
    return k == nnz && (k == 0 || sar_index_get(index, layout->index_size, k - 1) < layout->slots)
               ? SAR_OK
               : SAR_CORRUPT;
}

static void encode(const struct sar_wire_layout *layout, const struct sar_spvec *vec, void *payload)
{
    size_t values = vec->nnz * layout->element_size;
    sar_parallel_copy(payload, vec->value, values);
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

enum sar_status sar_hash_bitmap_open(const struct sar_wire_layout *layout, const void *payload,
                                     uint64_t bytes, size_t nnz, struct sar_part_bitmap *part)
{
    uint64_t bitmap = sar_bitmap_bytes(layout->slots);
    if (nnz > layout->slots || bytes != bytes_of(layout, nnz))
        return SAR_CORRUPT;
    const unsigned char *bits = (const unsigned char *)payload + (bytes - bitmap);
    if (layout->slots % 8 != 0 && bits[bitmap - 1] >> layout->slots % 8 != 0)
        return SAR_CORRUPT;
    *part = (struct sar_part_bitmap){ bits, bitmap, payload, nnz };
    return SAR_OK;
}

const struct sar_wire sar_wire_hash_bitmap = {
    .name = "hash_bitmap",
    .summary = "the values, and a bit for each slot of the part (Zen, Algorithm 2)",
    .codec_id = SAR_CODEC_HASH_BITMAP,
    .min_bytes = bytes_of,
    .nnz_cost = 0.4,
    .slot_cost = 0.013,
    .pull_nnz_cost = 0.1,
    .pull_slot_cost = 0.028,
    .pulls_bits = true,
    .encode = encode,
    .decode = decode,
};
