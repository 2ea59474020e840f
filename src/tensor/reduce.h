/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_TENSOR_REDUCE_H
#define SAR_TENSOR_REDUCE_H

#include "base/arena.h"
#include "tensor/shape.h"

/** Reduce several runs into one.
 *
 * For each index the contributions are folded in the order of the runs, and within a run in the order in
 * which equal indices stand there. Runs ascend and may hold equal indices; the outcome has none. Where
 * shape->absent_is_zero, an element that a run lacks is folded with a zero once. Sums and products of 16 bits
 * are made of floats and rounded once.
 *
 * @param out  its arrays have room for min(sum of nnz, shape->count) elements; nnz is set */
enum sar_status sar_reduce(const struct sar_shape *shape, const struct sar_run runs[], size_t n,
                           struct sar_arena *arena, struct sar_run *out);

/** A reduction that tells how many elements it will have before there is memory for them. */
struct sar_reduction {
    size_t nnz; /**< of the outcome */
    struct sar_sweep *sweep;
    bool summed; /**< the sums are made, and only to be copied */
};

/** Begin one. Runs and shape must stay as they are until it is written.
 * @param index_size  of the outcome's indices */
enum sar_status sar_reduce_count(const struct sar_shape *shape, const struct sar_run runs[], size_t n,
                                 unsigned index_size, struct sar_arena *arena,
                                 struct sar_reduction *reduction);

/** Write the outcome, once. */
void sar_reduce_write(const struct sar_reduction *reduction, const struct sar_run *out);

/** Room that sar_reduce needs in its outcome. */
size_t sar_reduce_bound(const struct sar_shape *shape, const struct sar_run runs[], size_t n);

/** sar_reduce into memory from the arena. */
enum sar_status sar_reduce_taken(const struct sar_shape *shape, const struct sar_run runs[], size_t n,
                                 struct sar_arena *arena, struct sar_run *out);

/** Copy a run's elements to the beginning of another's memory. */
void sar_run_copy(const struct sar_shape *shape, const struct sar_run *from, struct sar_run *to);

/** The same past the caches, for ranks to read that are far. */
void sar_run_stream(const struct sar_shape *shape, const struct sar_run *from, struct sar_run *to);

/** Take memory for a run of nnz elements. */
enum sar_status sar_run_take(const struct sar_shape *shape, size_t nnz, struct sar_arena *arena,
                             struct sar_run *run);

#endif
