/* SPDX-License-Identifier: BSD-3-Clause */
#include "tensor/tile.h"

#include <string.h>

#include "tensor/bits.h"

enum { CHUNK = 1024 /* slots listed at a time */ };

enum sar_status sar_tile_open(uint32_t slots, struct sar_arena *arena, struct sar_tile *tile)
{
    void *bits, *before, *summary;
    SAR_TRY(sar_arena_take_zeroed(arena, slots / 64, sizeof *tile->bits, &bits));
    SAR_TRY(sar_arena_take(arena, slots / 64, sizeof *tile->before, &before));
    SAR_TRY(sar_arena_take_zeroed(arena, (slots + 4095) / 4096, sizeof *tile->summary, &summary));
    *tile = (struct sar_tile){ .slots = slots, .bits = bits, .before = before, .summary = summary };
    return SAR_OK;
}

SAR_INLINE void mark(const struct sar_tile *tile, const void *index, unsigned size, size_t from, size_t end,
                     bool thin)
{
    uint64_t *restrict bits = tile->bits, *restrict summary = tile->summary, start = tile->start;
    for (size_t i = from; i < end; i++) {
        uint32_t slot = (uint32_t)(sar_index_get(index, size, i) - start);
        bits[slot / 64] |= (uint64_t)1 << slot % 64;
        if (thin)
            summary[slot / 4096] |= (uint64_t)1 << slot / 64 % 64;
    }
}

SAR_CLONES void sar_tile_mark(const struct sar_tile *tile, const void *index, unsigned size, size_t from,
                              size_t end)
{
    if (tile->thin)
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

SAR_CLONES size_t sar_tile_rank(const struct sar_tile *tile)
{
    const uint64_t *restrict bits = tile->bits;
    uint32_t *restrict before = tile->before, count = 0;
    for (uint32_t word = 0; word < tile->slots / 64; word++) {
        before[word] = count;
        count += (uint32_t)__builtin_popcountll(bits[word]);
    }
    return count;
}

/* Slots that are to become indices. */
struct list {
    size_t listed; /* of those before */
    size_t n;
    uint32_t slot[CHUNK + 64 + SAR_BITS_SLACK];
};

SAR_INLINE void list_word(const struct sar_tile *tile, uint32_t word, struct list *list)
{
    tile->before[word] = (uint32_t)(list->listed + list->n);
    list->n += sar_bits_list(tile->bits[word], word * 64, list->slot, 4, list->n);
}

SAR_INLINE void move_indices(const struct list *list, uint64_t start, void *out, unsigned size, size_t at)
{
    for (size_t i = 0; i < list->n; i++)
        sar_index_set(out, size, at + i, start + list->slot[i]);
}

SAR_INLINE void flush(const struct sar_tile *tile, struct list *list, void *out, unsigned size, size_t at)
{
    SAR_FOR_INDEX_SIZE(size, move_indices(list, tile->start, out, INDEX_SIZE, at + list->listed));
    list->listed += list->n;
    list->n = 0;
}

/* The same of a word that holds one most likely, seldom more than two. */
SAR_INLINE void list_thin_word(const struct sar_tile *tile, uint32_t word, struct list *list)
{
    uint64_t bits = tile->bits[word];
    size_t n = (size_t)__builtin_popcountll(bits);
    uint32_t *slot = list->slot + list->n;
    tile->before[word] = (uint32_t)(list->listed + list->n);
    slot[0] = word * 64 + (uint32_t)__builtin_ctzll(bits);
    bits &= bits - 1;
    slot[1] = word * 64 + (uint32_t)__builtin_ctzll(bits | (uint64_t)1 << 63);
    for (size_t i = 2; __builtin_expect(i < n, 0); i++) {
        bits &= bits - 1;
        slot[i] = word * 64 + (uint32_t)__builtin_ctzll(bits);
    }
    list->n += n;
}

SAR_INLINE void list_thin(const struct sar_tile *tile, struct list *list, void *out, unsigned size, size_t at)
{
    for (uint32_t group = 0; group < (tile->slots + 4095) / 4096; group++) {
        for (uint64_t words = tile->summary[group]; words != 0; words &= words - 1) {
            list_thin_word(tile, group * 64 + (uint32_t)__builtin_ctzll(words), list);
            if (list->n > CHUNK)
                flush(tile, list, out, size, at);
        }
    }
}

SAR_CLONES static void list_any(const struct sar_tile *tile, struct list *list, void *out, unsigned size,
                                size_t at)
{
    if (tile->thin)
        list_thin(tile, list, out, size, at);
    for (uint32_t word = 0; !tile->thin && word < tile->slots / 64; word++) {
        list_word(tile, word, list);
        if (list->n > CHUNK)
            flush(tile, list, out, size, at);
    }
    flush(tile, list, out, size, at);
}

#if defined(SAR_WIDE)
SAR_WIDE static void list_wide(const struct sar_tile *tile, struct list *list, void *out, unsigned size,
                               size_t at)
{
    for (uint32_t word = 0; word < tile->slots / 64; word++) {
        tile->before[word] = (uint32_t)(list->listed + list->n);
        list->n += sar_bits_list_wide(tile->bits[word], word * 64, list->slot + list->n);
        if (list->n > CHUNK)
            flush(tile, list, out, size, at);
    }
    flush(tile, list, out, size, at);
}
#else
#define list_wide list_any
#endif

size_t sar_tile_list(const struct sar_tile *tile, void *out, unsigned size, size_t at)
{
    struct list list;
    list.listed = list.n = 0;
    if (!tile->thin && sar_is_wide())
        list_wide(tile, &list, out, size, at);
    else
        list_any(tile, &list, out, size, at);
    return list.listed;
}

SAR_INLINE void places_of(const struct sar_tile *tile, const void *index, unsigned size, size_t from,
                          size_t n, uint32_t *restrict places)
{
    const uint64_t *restrict bits = tile->bits, start = tile->start;
    const uint32_t *restrict before = tile->before;
    for (size_t i = 0; i < n; i++) {
        uint32_t slot = (uint32_t)(sar_index_get(index, size, from + i) - start);
        places[i] = sar_tile_place(bits, before, slot);
    }
}

SAR_CLONES void sar_tile_places(const struct sar_tile *tile, const void *index, unsigned size, size_t from,
                                size_t n, uint32_t *places)
{
    SAR_FOR_INDEX_SIZE(size, places_of(tile, index, INDEX_SIZE, from, n, places));
}

void sar_tile_clear(const struct sar_tile *tile)
{
    if (!tile->thin) {
        memset(tile->bits, 0, tile->slots / 8);
        return;
    }
    for (uint32_t group = 0; group < (tile->slots + 4095) / 4096; group++) {
        for (uint64_t words = tile->summary[group]; words != 0; words &= words - 1)
            tile->bits[group * 64 + (uint32_t)__builtin_ctzll(words)] = 0;
        tile->summary[group] = 0;
    }
}
