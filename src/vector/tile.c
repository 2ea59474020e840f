/* SPDX-License-Identifier: BSD-3-Clause */
/* Bitmap of a range of the index space. Marks and positions cost about 1 ns for an element; lists and counts
 * cost a pass over the words of the bitmap, or of the summary if the tile is sparse. */

#include "vector/tile.h"

#include <string.h>

#include "vector/bit_list.h"

enum { CHUNK = 1024 /* slots listed before they are converted to indices */ };

enum sar_status sar_tile_open(uint32_t slots, struct sar_arena *arena, struct sar_tile *tile)
{
    void *bits, *rank_prefix, *summary;
    SAR_TRY(sar_arena_alloc_zeroed(arena, slots / 64, sizeof *tile->bits, &bits));
    SAR_TRY(sar_arena_alloc(arena, slots / 64, sizeof *tile->rank_prefix, &rank_prefix));
    SAR_TRY(sar_arena_alloc_zeroed(arena, (slots + 4095) / 4096, sizeof *tile->summary, &summary));
    *tile = (struct sar_tile){ .slots = slots, .bits = bits, .rank_prefix = rank_prefix, .summary = summary };
    return SAR_OK;
}

SAR_INLINE void mark(const struct sar_tile *tile, const void *index, unsigned size, size_t from, size_t end,
                     bool sparse)
{
    uint64_t *restrict bits = tile->bits, *restrict summary = tile->summary, start = tile->start;
    for (size_t i = from; i < end; i++) {
        uint32_t slot = (uint32_t)(sar_index_get(index, size, i) - start);
        bits[slot / 64] |= (uint64_t)1 << slot % 64;
        if (sparse)
            summary[slot / 4096] |= (uint64_t)1 << slot / 64 % 64;
    }
}

SAR_CLONES void sar_tile_mark(const struct sar_tile *tile, const void *index, unsigned size, size_t from,
                              size_t end)
{
    if (tile->sparse)
        SAR_FOR_INDEX_SIZE(size, mark(tile, index, INDEX_SIZE, from, end, true));
    else
        SAR_FOR_INDEX_SIZE(size, mark(tile, index, INDEX_SIZE, from, end, false));
}

SAR_CLONES size_t sar_tile_count(const uint64_t *bits, size_t n)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        count += (size_t)__builtin_popcountll(bits[i]);
    return count;
}

/* Slots that are not converted to indices yet. */
struct list {
    size_t listed; /* slots converted already */
    size_t n;      /* slots in slot[] */
    uint32_t slot[CHUNK + 64 + SAR_BIT_LIST_SLACK];
};

SAR_INLINE void list_word(const struct sar_tile *tile, uint32_t word, struct list *list)
{
    tile->rank_prefix[word] = (uint32_t)(list->listed + list->n);
    list->n += sar_bit_list(tile->bits[word], word * 64, list->slot, 4, list->n);
}

SAR_INLINE void write_indices(const struct list *list, uint64_t start, void *out, unsigned size, size_t at)
{
    for (size_t i = 0; i < list->n; i++)
        sar_index_set(out, size, at + i, start + list->slot[i]);
}

SAR_INLINE void flush(const struct sar_tile *tile, struct list *list, void *out, unsigned size, size_t at)
{
    SAR_FOR_INDEX_SIZE(size, write_indices(list, tile->start, out, INDEX_SIZE, at + list->listed));
    list->listed += list->n;
    list->n = 0;
}

/* As list_word, for a word that usually has one bit and seldom more than two. */
SAR_INLINE void list_sparse_word(const struct sar_tile *tile, uint32_t word, struct list *list)
{
    uint64_t bits = tile->bits[word];
    size_t n = (size_t)__builtin_popcountll(bits);
    uint32_t *slot = list->slot + list->n;
    tile->rank_prefix[word] = (uint32_t)(list->listed + list->n);
    slot[0] = word * 64 + (uint32_t)__builtin_ctzll(bits);
    bits &= bits - 1;
    slot[1] = word * 64 + (uint32_t)__builtin_ctzll(bits | (uint64_t)1 << 63);
    for (size_t i = 2; __builtin_expect(i < n, 0); i++) {
        bits &= bits - 1;
        slot[i] = word * 64 + (uint32_t)__builtin_ctzll(bits);
    }
    list->n += n;
}

SAR_INLINE void list_sparse(const struct sar_tile *tile, struct list *list, void *out, unsigned size,
                            size_t at)
{
    for (uint32_t group = 0; group < (tile->slots + 4095) / 4096; group++) {
        for (uint64_t words = tile->summary[group]; words != 0; words &= words - 1) {
            list_sparse_word(tile, group * 64 + (uint32_t)__builtin_ctzll(words), list);
            if (list->n > CHUNK)
                flush(tile, list, out, size, at);
        }
    }
}

SAR_CLONES static void list_any(const struct sar_tile *tile, struct list *list, void *out, unsigned size,
                                size_t at)
{
    if (tile->sparse)
        list_sparse(tile, list, out, size, at);
    for (uint32_t word = 0; !tile->sparse && word < tile->slots / 64; word++) {
        list_word(tile, word, list);
        if (list->n > CHUNK)
            flush(tile, list, out, size, at);
    }
    flush(tile, list, out, size, at);
}

#if defined(SAR_AVX512)
SAR_AVX512 static void list_wide(const struct sar_tile *tile, struct list *list, void *out, unsigned size,
                                 size_t at)
{
    for (uint32_t word = 0; word < tile->slots / 64; word++) {
        tile->rank_prefix[word] = (uint32_t)(list->listed + list->n);
        list->n += sar_bit_list_avx512(tile->bits[word], word * 64, list->slot + list->n);
        if (list->n > CHUNK)
            flush(tile, list, out, size, at);
    }
    flush(tile, list, out, size, at);
}
#else
#define list_wide list_any
#endif

size_t sar_tile_list_indices(const struct sar_tile *tile, void *out, unsigned size, size_t at)
{
    struct list list;
    list.listed = list.n = 0;
    if (!tile->sparse && sar_has_avx512())
        list_wide(tile, &list, out, size, at);
    else
        list_any(tile, &list, out, size, at);
    return list.listed;
}

SAR_INLINE void find_positions(const struct sar_tile *tile, const void *index, unsigned size, size_t from,
                               size_t n, uint32_t *restrict positions)
{
    const uint64_t *restrict bits = tile->bits, start = tile->start;
    const uint32_t *restrict rank_prefix = tile->rank_prefix;
    for (size_t i = 0; i < n; i++) {
        uint32_t slot = (uint32_t)(sar_index_get(index, size, from + i) - start);
        positions[i] = sar_tile_position(bits, rank_prefix, slot);
    }
}

SAR_CLONES void sar_tile_positions(const struct sar_tile *tile, const void *index, unsigned size, size_t from,
                                   size_t n, uint32_t *positions)
{
    SAR_FOR_INDEX_SIZE(size, find_positions(tile, index, INDEX_SIZE, from, n, positions));
}

void sar_tile_clear(const struct sar_tile *tile)
{
    if (!tile->sparse) {
        memset(tile->bits, 0, tile->slots / 8);
        return;
    }
    for (uint32_t group = 0; group < (tile->slots + 4095) / 4096; group++) {
        for (uint64_t words = tile->summary[group]; words != 0; words &= words - 1)
            tile->bits[group * 64 + (uint32_t)__builtin_ctzll(words)] = 0;
        tile->summary[group] = 0;
    }
}
