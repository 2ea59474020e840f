/* SPDX-License-Identifier: BSD-3-Clause */
/* Selection of the elements with the largest magnitudes. */

#ifndef SAR_VECTOR_TOPK_H
#define SAR_VECTOR_TOPK_H

#include "vector/dgc.h"

struct sar_topk_piece;

/** A selection of non-zero elements with a magnitude of at least `threshold`. If there are more than
 * `capacity`, it holds the largest, and of equal ones those with lower indices. sar_topk_select writes vec
 * and threshold. */
struct sar_topk {
    struct sar_spvec vec; /**< selected elements */
    uint64_t threshold;   /**< least magnitude of the next candidate */
    size_t capacity;      /**< most elements */
    struct sar_vec_desc desc;
    size_t prune_limit;           /**< candidates above which the smaller ones are removed */
    uint64_t *magnitudes;         /**< scratch memory for the magnitudes of all candidates */
    size_t pieces;                /**< most pieces to scan at once; 1 for a single thread */
    struct sar_topk_piece *piece; /**< pieces, with their scratch memory */
};

/** Allocates a selection: about 2 * capacity elements and their magnitudes from the arena, and scratch memory
 * for the threads that the caller has: a quarter of the values, at most 64 KB a piece. */
enum sar_status sar_topk_open(const struct sar_vec_desc *desc, size_t capacity, struct sar_arena *arena,
                              struct sar_topk *topk);

/** Updates all values (see dgc.h) and selects elements, in one pass over the values.
 * @param threshold  least magnitude, see magnitude.h */
void sar_topk_select(struct sar_topk *topk, const struct sar_dgc *dgc, uint64_t threshold);

#endif
