/* SPDX-License-Identifier: BSD-3-Clause */
/* Merge of few sorted vecs: computes the position of each element in the result. */

#ifndef SAR_VECTOR_MERGE_H
#define SAR_VECTOR_MERGE_H

#include "vector/spvec.h"

enum { SAR_MERGE_MAX = 4 /**< most vecs */ };

/** Vecs and the positions of their elements in the result. sar_merge writes all fields; the arena owns the
 * arrays. */
struct sar_merge {
    const struct sar_spvec *vecs;
    uint32_t *positions[SAR_MERGE_MAX]; /**< of each vec's elements, ascending */
    uint32_t *indices;                  /**< the result's indices less `base` */
    uint64_t base;
    size_t nnz; /**< elements of the result */
};

/** True if n vecs with nnz elements in all, whose indices lie in a range of `span` indices, can be merged and
 * a merge is faster than tiles (see reduce.c). */
bool sar_merge_is_faster(size_t n, uint64_t nnz, uint64_t span);

/** Merges n vecs, which must outlive the merge. Equal indices, also those of one vec, have the same
 * position. */
enum sar_status sar_merge(const struct sar_vec_desc *desc, const struct sar_spvec vecs[], size_t n,
                          struct sar_arena *arena, struct sar_merge *merge);

/** Writes the result's indices [at, at + n) to out[at, at + n), in out_size bytes each. */
void sar_merge_write_indices(const struct sar_merge *merge, size_t at, size_t n, void *out,
                             unsigned out_size);

#endif
