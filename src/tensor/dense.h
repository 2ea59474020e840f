/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_TENSOR_DENSE_H
#define SAR_TENSOR_DENSE_H

#include "base/arena.h"
#include "tensor/shape.h"

/** Elements of buf[0, n) that have a bit set; scanned at memory speed where they are few. */
size_t sar_dense_count(const struct sar_shape *shape, const void *buf, size_t n);

/** Estimate the same from about `sample` elements, which lie in groups here and there; exact where that is
 * all of them or less than a group. */
size_t sar_dense_estimate(const struct sar_shape *shape, const void *buf, size_t sample);

/** Whether an element of a run is a floating-point -0.0, or a row that holds one. */
bool sar_has_negative_zero(enum sar_base base, const void *values, size_t n);

/** Memory for a run that grows. */
struct sar_space {
    /** Make room for nnz elements, set space->nnz, and keep those that the run has. */
    enum sar_status (*make)(struct sar_space *space, size_t nnz, struct sar_run *run);
    size_t nnz; /**< elements that there is room for; 0 at first */
};

/** Make a run of the elements of buf that have a bit set, decided by bits, never by arithmetic.
 * @param expected  guess of their number; room for more is made as needed */
enum sar_status sar_dense_compact_into(const struct sar_shape *shape, const void *buf, size_t expected,
                                       struct sar_space *space, struct sar_run *run);

/** The same in memory from the arena. */
enum sar_status sar_dense_compact(const struct sar_shape *shape, const void *buf, size_t expected,
                                  struct sar_arena *arena, struct sar_run *run);

/** Let elements without a bit set leave a run. Its old arrays are only read. */
enum sar_status sar_drop_zeros(const struct sar_shape *shape, struct sar_arena *arena, struct sar_run *run);

/** Write a run's elements to their places in buf; the rest of buf is left alone. */
void sar_dense_scatter(const struct sar_shape *shape, const struct sar_run *run, void *buf);

/** Zero a run's elements in buf. */
void sar_dense_clear(const struct sar_shape *shape, const struct sar_run *run, void *buf);

#endif
