/* SPDX-License-Identifier: BSD-3-Clause */
/* Sort of coordinates, with a reduction of equal indices. */

#ifndef SAR_VECTOR_SORT_H
#define SAR_VECTOR_SORT_H

#include "vector/spvec.h"

/** Elements in any order; the caller owns the arrays. */
struct sar_sort_input {
    const void *index; /**< nnz indices of index_size bytes */
    const void *value; /**< nnz elements */
    size_t nnz;
    unsigned index_size; /**< 4 or 8 */
    uint64_t max_index;  /**< the largest index */
};

/** Sorts elements by index, and reduces elements of equal index in their order, with one rounding. The arena
 * owns the result. Temporary memory goes back to the arena: half of the result's size, or up to 256 KB; with
 * several threads, up to 256 KB for each. */
enum sar_status sar_sort(const struct sar_vec_desc *desc, const struct sar_sort_input *from,
                         struct sar_arena *arena, struct sar_spvec *vec);

#endif
