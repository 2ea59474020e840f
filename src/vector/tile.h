/* SPDX-License-Identifier: BSD-3-Clause */
/* A range of the index space with a bit for each present element. sar_reduce uses tiles. */

#ifndef SAR_VECTOR_TILE_H
#define SAR_VECTOR_TILE_H

#include "vector/spvec.h"

/** Slot = index less `start`. The arena of sar_tile_open owns the arrays. */
struct sar_tile {
    uint64_t start;        /**< first index */
    uint32_t slots;        /**< a power of two, at least 64 */
    uint64_t *bits;        /**< a bit for each slot */
    uint32_t *rank_prefix; /**< bits set before each word; undefined for words without a bit */
    uint64_t *summary;     /**< a bit for each word with a bit; kept only while sparse */
    bool sparse;           /**< few bits, far apart; the caller sets it before it marks elements */
};

/** Allocates a tile of `slots` slots without a bit set. */
enum sar_status sar_tile_open(uint32_t slots, struct sar_arena *arena, struct sar_tile *tile);

/** Sets the bits of elements [from, end) of a vec with these indices. */
void sar_tile_mark(const struct sar_tile *tile, const void *index, unsigned size, size_t from, size_t end);

/** Returns the number of bits set in n words. */
size_t sar_tile_count(const uint64_t *bits, size_t n);

/** Writes the indices whose bits are set to out[at], out[at + 1] …, and computes tile->rank_prefix; returns
 * their number. `size` is the bytes of an index. */
size_t sar_tile_list_indices(const struct sar_tile *tile, void *out, unsigned size, size_t at);

/** Returns the position of a slot: the bits set before its own bit. */
SAR_INLINE uint32_t sar_tile_position(const uint64_t *bits, const uint32_t *rank_prefix, uint32_t slot)
{
    uint64_t lower = bits[slot / 64] & (((uint64_t)1 << slot % 64) - 1);
    return rank_prefix[slot / 64] + (uint32_t)__builtin_popcountll(lower);
}

/** Computes the positions of elements [from, from + n) of a vec, all of them marked. The prefix is
 * computed. */
void sar_tile_positions(const struct sar_tile *tile, const void *index, unsigned size, size_t from, size_t n,
                        uint32_t *positions);

/** Clears all bits. */
void sar_tile_clear(const struct sar_tile *tile);

#endif
