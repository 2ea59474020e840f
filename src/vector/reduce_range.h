/* SPDX-License-Identifier: BSD-3-Clause */
/* Reductions on one thread, which those of vector/reduce.h consist of: one for each range of indices. */

#ifndef SAR_VECTOR_REDUCE_RANGE_H
#define SAR_VECTOR_REDUCE_RANGE_H

#include "vector/spvec.h"

/** As sar_reduce, on one thread. */
enum sar_status sar_reduce_range(const struct sar_vec_desc *desc, const struct sar_spvec vecs[], size_t n,
                                 struct sar_arena *arena, struct sar_spvec *out);

/** A counted reduction. */
struct sar_range_reduction {
    size_t nnz; /**< elements of the result */
    struct sar_reduce_state *state;
    bool computed; /**< the sums exist; sar_reduce_write_range only copies them */
};

/** As sar_reduce_count and sar_reduce_write, on one thread. */
enum sar_status sar_reduce_count_range(const struct sar_vec_desc *desc, const struct sar_spvec vecs[],
                                       size_t n, unsigned index_size, struct sar_arena *arena,
                                       struct sar_range_reduction *reduction);
void sar_reduce_write_range(const struct sar_range_reduction *reduction, const struct sar_spvec *out);

#endif
