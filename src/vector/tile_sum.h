/* SPDX-License-Identifier: BSD-3-Clause */
/* Sum of sorted vecs, tile by tile. */

#ifndef SAR_VECTOR_TILE_SUM_H
#define SAR_VECTOR_TILE_SUM_H

#include "vector/spvec.h"

enum {
    SAR_TILE_SUM_SLOTS_MAX = 128, /**< most slots for an element: else lists of words with bits are faster */
    SAR_TILE_SUM_SLOTS_COUNTED = 64 /**< most for one that is counted: the bits take 8 bytes for an element */
};

/** Vecs whose indices lie in a range. The caller sets it, and may find the range by sar_vecs_range. */
struct sar_tile_sum_args {
    const struct sar_vec_desc *desc;
    const struct sar_spvec *vecs;
    size_t n;
    uint64_t first, span; /**< first index of the range, and its length */
    uint64_t nnz;         /**< elements of all vecs */
};

/** Tiles, and how far their sums are. sar_tile_sum_count sets all fields; the arena owns the arrays. */
struct sar_tile_sum {
    struct sar_tile_sum_args args;
    uint64_t start; /**< first index of the first tile */
    uint32_t slots; /**< indices of a tile; a power of two, 64 or more */
    size_t tiles;
    uint64_t *bits;         /**< a bit for each index of a tile, or of all tiles, that some vec has */
    uint8_t *flags;         /**< a byte for each index of a tile, zero between tiles; or NULL */
    uint16_t *position;     /**< position in its tile of each index that has a bit; or NULL */
    uint32_t *rank_prefix;  /**< bits before each word of a tile; NULL if there are positions */
    size_t *marked, *added; /**< elements of each vec that have bits, and that are in sums */
    size_t nnz;             /**< elements of the sum */
};

/** True if such a sum works, and there is at least one element for `slots` indices. */
bool sar_tile_sum_works(const struct sar_tile_sum_args *args, unsigned index_size, unsigned slots);

/** Sums vecs.
 * @param out  arrays with capacity for out->nnz elements, as sar_reduce needs; nnz is set */
enum sar_status sar_tile_sum(const struct sar_tile_sum_args *args, struct sar_arena *arena,
                             struct sar_spvec *out);

/** Counts the elements of a sum, s->nnz, and keeps their bits. */
enum sar_status sar_tile_sum_count(const struct sar_tile_sum_args *args, struct sar_arena *arena,
                                   struct sar_tile_sum *s);

/** Writes a counted sum, once. */
void sar_tile_sum_write(struct sar_tile_sum *s, const struct sar_spvec *out);

#endif
