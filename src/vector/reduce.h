/* SPDX-License-Identifier: BSD-3-Clause */
/* Reduction of several sorted vecs to one. */

#ifndef SAR_VECTOR_REDUCE_H
#define SAR_VECTOR_REDUCE_H

#include "vector/spvec.h"

/** Reduces n vecs to one.
 *
 * For each index the op is applied in the order of the vecs, and within a vec in the order of equal indices.
 * Vecs ascend and may repeat indices; the result does not repeat any. If desc->absent_is_zero, the op is
 * applied once more with a zero if any vec has no element at an index. Sums and products of 16 bits are
 * accumulated in floats and rounded once.
 *
 * @param out  arrays with capacity for sar_reduce_max_nnz elements; nnz is set */
enum sar_status sar_reduce(const struct sar_vec_desc *desc, const struct sar_spvec vecs[], size_t n,
                           struct sar_arena *arena, struct sar_spvec *out);

/** As sar_reduce, for vecs that repeat no index and share none. Returns SAR_CORRUPT if they do. */
enum sar_status sar_reduce_disjoint(const struct sar_vec_desc *desc, const struct sar_spvec vecs[], size_t n,
                                    struct sar_arena *arena, struct sar_spvec *out);

/** A reduction in two phases: the size of the result is known before the result has memory. */
struct sar_reduction {
    size_t nnz; /**< elements of the result */
    struct sar_reduce_ranges *ranges;
    bool computed; /**< the sums of the first range exist, so that sar_reduce_write only copies that */
};

/** Counts the result of a reduction. The vecs and desc must not change before sar_reduce_write.
 * @param index_size  bytes of an index of the result */
enum sar_status sar_reduce_count(const struct sar_vec_desc *desc, const struct sar_spvec vecs[], size_t n,
                                 unsigned index_size, struct sar_arena *arena,
                                 struct sar_reduction *reduction);

/** Writes the result of a counted reduction, once. The arrays of out have capacity for reduction->nnz
 * elements. */
void sar_reduce_write(const struct sar_reduction *reduction, const struct sar_spvec *out);

/** Returns min(sum of nnz, desc->count), the capacity that sar_reduce needs in its result. */
size_t sar_reduce_max_nnz(const struct sar_vec_desc *desc, const struct sar_spvec vecs[], size_t n);

/** As sar_reduce, into memory from the arena. */
enum sar_status sar_reduce_alloc(const struct sar_vec_desc *desc, const struct sar_spvec vecs[], size_t n,
                                 struct sar_arena *arena, struct sar_spvec *out);

#endif
