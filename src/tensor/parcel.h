/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_TENSOR_PARCEL_H
#define SAR_TENSOR_PARCEL_H

#include "tensor/shape.h"

/** What stands for the number of elements where all of a vector is there. */
#define SAR_PARCEL_WHOLE UINT64_MAX

/** A vector in as much memory as it has bytes: its elements if they have room there, else all of it. What
 * comes to be in it may be known only later. Points into memory that others own. */
struct sar_parcel {
    uint64_t *nnz; /**< elements; more than there is room for where all of the vector is there */
    void *value;   /**< elements, or the vector */
    void *index;   /**< of shape.index_size bytes each, behind the room for elements */
    size_t room;   /**< elements */
};

/** How a parcel lies in memory of a vector's size, aligned as indices are. *nnz is set to
 * SAR_PARCEL_WHOLE. */
struct sar_parcel sar_parcel_make(const struct sar_shape *shape, void *memory, uint64_t *nnz);

/** Whether it holds elements. */
static inline bool sar_parcel_is_sparse(const struct sar_parcel *parcel)
{
    return *parcel->nnz <= parcel->room;
}

/** The elements that it holds, where they lie. */
static inline struct sar_run sar_parcel_run(const struct sar_parcel *parcel)
{
    return (struct sar_run){ parcel->index, parcel->value, (size_t)*parcel->nnz };
}

/** Put n runs that have no index in common into it, unless there are more elements than room. One run may lie
 * there already. */
bool sar_parcel_fill(const struct sar_shape *shape, const struct sar_run runs[], size_t n,
                     struct sar_parcel *parcel);

/** Let the vector take the place of its elements.
 * @param spare  room for their indices */
void sar_parcel_expand(const struct sar_shape *shape, struct sar_parcel *parcel, void *spare);

#endif
