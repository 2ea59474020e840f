/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_TENSOR_SORT_H
#define SAR_TENSOR_SORT_H

#include "base/arena.h"
#include "tensor/shape.h"

/** Elements in any order. */
struct sar_unsorted {
    const void *index; /**< of index_size bytes each */
    const void *value;
    size_t nnz;
    unsigned index_size; /**< 4 or 8 */
    uint64_t most;       /**< the largest index */
};

/** Sort elements by index, and fold those of equal index into one in the order in which they stand, rounded
 * once. Of the arena the outcome is kept; what was needed besides is given back: half as much, or up to
 * 256 KB. */
enum sar_status sar_sort(const struct sar_shape *shape, const struct sar_unsorted *from,
                         struct sar_arena *arena, struct sar_run *run);

#endif
