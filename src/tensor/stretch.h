/* SPDX-License-Identifier: BSD-3-Clause */
/* Stretches of the index space, and what a run has there. */

#ifndef SAR_TENSOR_STRETCH_H
#define SAR_TENSOR_STRETCH_H

#include "base/arena.h"
#include "tensor/shape.h"

/** First element of a run at or behind `from` whose index is not below limit. */
size_t sar_run_find(const struct sar_shape *shape, const struct sar_run *run, size_t from, uint64_t limit);

/** The elements of a run from one place to another, where they stand. */
struct sar_run sar_run_slice(const struct sar_shape *shape, const struct sar_run *run, size_t from,
                             size_t to);

/** Make a run count its indices, of shape->index_size bytes, from `base` on, in index_size bytes. The values
 * stay where they are. */
enum sar_status sar_run_rebase(const struct sar_shape *shape, uint64_t base, unsigned index_size,
                               struct sar_arena *arena, struct sar_run *run);

/** Copy a run whose indices have index_size bytes and count from `base` on behind what `out` has, which has
 * room for it. */
void sar_run_append(const struct sar_shape *shape, const struct sar_run *run, unsigned index_size,
                    uint64_t base, struct sar_run *out);

#endif
