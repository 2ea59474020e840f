/* SPDX-License-Identifier: BSD-3-Clause */
/* Few sorted runs, merged: where each element comes to stand in the outcome. */

#ifndef SAR_TENSOR_MERGE_H
#define SAR_TENSOR_MERGE_H

#include "base/arena.h"
#include "tensor/shape.h"

enum { SAR_MERGED = 4 /**< most runs */ };

/** Runs and their places in the outcome. */
struct sar_merge {
    const struct sar_run *runs;
    uint32_t *places[SAR_MERGED]; /**< of each run's elements, ascending */
    uint32_t *list;               /**< the outcome's indices less `base` */
    uint64_t base;
    size_t nnz; /**< of the outcome */
};

/** Whether so many runs with so many elements, whose indices lie in a stretch of `span`, can be merged, and
 * had better be. */
bool sar_merge_pays(size_t n, uint64_t nnz, uint64_t span);

/** Merge n runs, which must stay. Equal indices, also those of one run, have the same place. */
enum sar_status sar_merge(const struct sar_shape *shape, const struct sar_run runs[], size_t n,
                          struct sar_arena *arena, struct sar_merge *merge);

/** Write the outcome's indices, n of them from `at` on, to where they belong in `out`. */
void sar_merge_list(const struct sar_merge *merge, size_t at, size_t n, void *out, unsigned out_size);

#endif
