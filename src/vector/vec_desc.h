/* SPDX-License-Identifier: BSD-3-Clause */
/* Description of a distributed vector. */

#ifndef SAR_VECTOR_VEC_DESC_H
#define SAR_VECTOR_VEC_DESC_H

#include "vector/op_kernels.h"

/** Length, element type and op of a vector; equal on all ranks. */
struct sar_vec_desc {
    uint64_t count;       /**< elements */
    size_t row_len;       /**< basic values in an element */
    size_t element_size;  /**< bytes of an element */
    unsigned index_size;  /**< bytes of an index inside the library, 4 or 8 */
    enum sar_dtype dtype; /**< basic type */
    enum sar_op op;
    bool absent_is_zero; /**< an absent element takes part in the reduction as a zero (dense interface) */
    const struct sar_op_kernels *kernels;
};

/** Returns the bytes of an index below count: 4 or 8. */
static inline unsigned sar_index_size(uint64_t count)
{
    return count <= (uint64_t)UINT32_MAX + 1 ? 4 : 8;
}

#endif
