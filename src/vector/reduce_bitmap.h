/* SPDX-License-Identifier: BSD-3-Clause */
/* Reduction of several vecs to a bitmap and the values of its bits, the payload of the format hash_bitmap.
 * No index of the result is listed. */

#ifndef SAR_VECTOR_REDUCE_BITMAP_H
#define SAR_VECTOR_REDUCE_BITMAP_H

#include "vector/spvec.h"

/** A reduction in two phases, as struct sar_reduction. */
struct sar_bitmap_reduction {
    size_t nnz;                    /**< elements of the result */
    bool clustered;                /**< most words of the bitmap are zero: other formats are smaller */
    struct sar_bitmap_sums *state; /**< of the second phase */
};

/** True if the reduction works, and is faster than sar_reduce and the encoding of its result: sums of scalars
 * that have a sum kernel (4 or 8 bytes), with one element for at most eight slots. Not of two vecs that
 * vector/pair_sum.h merges. */
bool sar_reduces_to_bitmap(const struct sar_vec_desc *desc, const struct sar_spvec vecs[], size_t n);

/** Counts the result. The vecs and desc must not change before sar_reduce_bitmap_write. */
enum sar_status sar_reduce_bitmap_count(const struct sar_vec_desc *desc, const struct sar_spvec vecs[],
                                        size_t n, struct sar_arena *arena,
                                        struct sar_bitmap_reduction *reduction);

/** Writes the values of the result in order, with the bits of sar_reduce, and desc->count bits. */
void sar_reduce_bitmap_write(const struct sar_bitmap_reduction *reduction, void *value,
                             unsigned char *bitmap);

#endif
