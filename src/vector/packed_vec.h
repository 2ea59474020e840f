/* SPDX-License-Identifier: BSD-3-Clause */
/* A vector in a buffer of its dense size: sparse if its elements fit, else dense. A device writes it to
 * pinned memory of the host. */

#ifndef SAR_VECTOR_PACKED_VEC_H
#define SAR_VECTOR_PACKED_VEC_H

#include "vector/spvec.h"

/** Value of *nnz for a dense vector. */
#define SAR_PACKED_VEC_DENSE UINT64_MAX

/** Layout of the buffer, which the caller owns. The content may become known later. */
struct sar_packed_vec {
    uint64_t *nnz;   /**< elements; more than capacity if the vector is dense */
    void *value;     /**< elements, or the dense vector */
    void *index;     /**< indices of desc.index_size bytes, after the capacity for elements */
    size_t capacity; /**< most elements of a sparse vector */
};

/** Returns the layout in memory of the vector's dense size, aligned as an index; sets *nnz to
 * SAR_PACKED_VEC_DENSE. */
struct sar_packed_vec sar_packed_vec_layout(const struct sar_vec_desc *desc, void *memory, uint64_t *nnz);

/** True if the vector is sparse. */
static inline bool sar_packed_vec_is_sparse(const struct sar_packed_vec *packed)
{
    return *packed->nnz <= packed->capacity;
}

/** Returns the elements of a sparse vector, which share the buffer. */
static inline struct sar_spvec sar_packed_vec_spvec(const struct sar_packed_vec *packed)
{
    return (struct sar_spvec){ packed->index, packed->value, (size_t)*packed->nnz };
}

/** Copies n vecs without common indices, in ascending order, to the buffer as one sparse vector. One of the
 * vecs may be in the buffer already. Returns false, with nothing written, if the elements exceed the
 * capacity. */
bool sar_packed_vec_fill(const struct sar_vec_desc *desc, const struct sar_spvec vecs[], size_t n,
                         struct sar_packed_vec *packed);

/** Converts a sparse vector to a dense one in place.
 * @param scratch  memory for the indices of all elements */
void sar_packed_vec_expand(const struct sar_vec_desc *desc, struct sar_packed_vec *packed, void *scratch);

#endif
