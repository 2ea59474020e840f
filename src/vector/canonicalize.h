/* SPDX-License-Identifier: BSD-3-Clause */
/* Conversion of a caller's coordinates to a sorted sparse vector. */

#ifndef SAR_VECTOR_CANONICALIZE_H
#define SAR_VECTOR_CANONICALIZE_H

#include "vector/spvec.h"

/** Index types of the interface. */
enum sar_index_type { SAR_INDEX_INT32, SAR_INDEX_UINT32, SAR_INDEX_INT64, SAR_INDEX_UINT64, SAR_INDEX_TYPES };

/** Returns the bytes of an index of a type. */
unsigned sar_index_type_size(enum sar_index_type type);

/** Returns the largest count of elements that a type can index. */
uint64_t sar_index_type_limit(enum sar_index_type type);

/** A caller's coordinate buffers. */
struct sar_coo_args {
    const void *indices, *values; /**< nnz each */
    size_t nnz;
    enum sar_index_type type; /**< type of the indices */
};

/** Makes a vec of a caller's elements: checks the range of indices, sorts if needed, and reduces equal
 * indices. If the input is canonical already, the vec shares the caller's arrays; else the arena owns its
 * arrays.
 * @param bad  set to the first index out of range, in the caller's type, for SAR_BAD_INDEX or, with
 *             uint64, SAR_BAD_UNSIGNED_INDEX */
enum sar_status sar_canonicalize(const struct sar_vec_desc *desc, const struct sar_coo_args *coo,
                                 struct sar_arena *arena, struct sar_spvec *vec, long long *bad);

#endif
