/* SPDX-License-Identifier: BSD-3-Clause */
/* Values come before indices, so that each value is at or before its position in the dense vector. An
 * expansion moves them in place, from the last to the first.
 *
 *     time of an expansion = bytes of the dense vector / memory bandwidth */

#include "vector/packed_vec.h"

#include <string.h>

/* Returns the bytes of n values, rounded up to the alignment of an index. */
static size_t value_bytes(const struct sar_vec_desc *desc, size_t n)
{
    size_t bytes = n * desc->element_size, part = bytes % desc->index_size;
    return part == 0 ? bytes : bytes - part + desc->index_size;
}

/* One element less frees more bytes than the alignment of the indices needs. */
struct sar_packed_vec sar_packed_vec_layout(const struct sar_vec_desc *desc, void *memory, uint64_t *nnz)
{
    size_t bytes = (size_t)desc->count * desc->element_size;
    size_t capacity = bytes / (desc->element_size + desc->index_size);
    if (value_bytes(desc, capacity) + capacity * desc->index_size > bytes)
        capacity--;
    *nnz = SAR_PACKED_VEC_DENSE;
    return (struct sar_packed_vec){ nnz, memory, (char *)memory + value_bytes(desc, capacity), capacity };
}

bool sar_packed_vec_fill(const struct sar_vec_desc *desc, const struct sar_spvec vecs[], size_t n,
                         struct sar_packed_vec *packed)
{
    size_t nnz = 0;
    for (size_t i = 0; i < n; i++)
        nnz += vecs[i].nnz;
    if (nnz > packed->capacity)
        return false;
    *packed->nnz = nnz;
    nnz = 0;
    for (size_t i = 0; i < n; i++) {
        if (vecs[i].nnz == 0)
            continue;
        memmove((char *)packed->value + nnz * desc->element_size, vecs[i].value,
                vecs[i].nnz * desc->element_size);
        memmove((char *)packed->index + nnz * desc->index_size, vecs[i].index,
                vecs[i].nnz * desc->index_size);
        nnz += vecs[i].nnz;
    }
    return true;
}

void sar_packed_vec_expand(const struct sar_vec_desc *desc, struct sar_packed_vec *packed, void *scratch)
{
    size_t size = desc->element_size, nnz = (size_t)*packed->nnz, end = (size_t)desc->count;
    char *value = packed->value;
    if (nnz != 0)
        memcpy(scratch, packed->index, nnz * desc->index_size);
    for (size_t k = nnz; k-- > 0;) {
        size_t at = (size_t)sar_index_get(scratch, desc->index_size, k);
        memmove(value + at * size, value + k * size, size);
        memset(value + (at + 1) * size, 0, (end - at - 1) * size);
        end = at;
    }
    memset(value, 0, end * size);
    *packed->nnz = SAR_PACKED_VEC_DENSE;
}
