/* SPDX-License-Identifier: BSD-3-Clause */
/* A stretch of the index space, and a bit for each element that something has there. */

#ifndef SAR_TENSOR_TILE_H
#define SAR_TENSOR_TILE_H

#include "base/arena.h"
#include "tensor/shape.h"

/** A slot is an index less `start`. */
struct sar_tile {
    uint64_t start;
    uint32_t slots;    /**< a power of two, at least 64 */
    uint64_t *bits;    /**< of slots */
    uint32_t *before;  /**< how many are set before each word, where that is not zero */
    uint64_t *summary; /**< a bit for each word that is not zero; kept only while thin */
    bool thin;         /**< few bits, far apart */
};

/** Take memory for a tile of so many slots, with no bit set. */
enum sar_status sar_tile_open(uint32_t slots, struct sar_arena *arena, struct sar_tile *tile);

/** Set the bits of elements [from, end) of a run. */
void sar_tile_mark(const struct sar_tile *tile, const void *index, unsigned size, size_t from, size_t end);

/** How many bits are set in n words. */
size_t sar_tile_count(const uint64_t *bits, size_t n);

/** Fill in tile->before, for all words; returns how many bits are set. */
size_t sar_tile_rank(const struct sar_tile *tile);

/** The same number, once that is done. */
static inline size_t sar_tile_ranked(const struct sar_tile *tile)
{
    uint32_t last = tile->slots / 64 - 1;
    return tile->before[last] + (size_t)__builtin_popcountll(tile->bits[last]);
}

/** Write the indices whose bits are set to out[at], out[at + 1] …, and fill in tile->before; returns their
 * number. */
size_t sar_tile_list(const struct sar_tile *tile, void *out, unsigned size, size_t at);

/** How many bits are set before a slot's own, where those before its word are counted. */
SAR_INLINE uint32_t sar_tile_place(const uint64_t *bits, const uint32_t *before, uint32_t slot)
{
    uint64_t lower = bits[slot / 64] & (((uint64_t)1 << slot % 64) - 1);
    return before[slot / 64] + (uint32_t)__builtin_popcountll(lower);
}

/** Places of n elements of a run, all of them marked, in that list. */
void sar_tile_places(const struct sar_tile *tile, const void *index, unsigned size, size_t from, size_t n,
                     uint32_t *places);

/** Set no bit any more. */
void sar_tile_clear(const struct sar_tile *tile);

#endif
