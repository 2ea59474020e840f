/* SPDX-License-Identifier: BSD-3-Clause */
/* Values come first, so that each lies at or before its place in the vector: from the last one on they can be
 * moved there without memory beside. */

#include "tensor/parcel.h"

#include <string.h>

static size_t values_of(const struct sar_shape *shape, size_t n)
{
    size_t bytes = n * shape->element_size, part = bytes % shape->index_size;
    return part == 0 ? bytes : bytes - part + shape->index_size;
}

/* One element less leaves more than what aligning takes. */
struct sar_parcel sar_parcel_make(const struct sar_shape *shape, void *memory, uint64_t *nnz)
{
    size_t bytes = (size_t)shape->count * shape->element_size;
    size_t room = bytes / (shape->element_size + shape->index_size);
    if (values_of(shape, room) + room * shape->index_size > bytes)
        room--;
    *nnz = SAR_PARCEL_WHOLE;
    return (struct sar_parcel){ nnz, memory, (char *)memory + values_of(shape, room), room };
}

bool sar_parcel_fill(const struct sar_shape *shape, const struct sar_run runs[], size_t n,
                     struct sar_parcel *parcel)
{
    size_t nnz = 0;
    for (size_t i = 0; i < n; i++)
        nnz += runs[i].nnz;
    if (nnz > parcel->room)
        return false;
    *parcel->nnz = nnz;
    nnz = 0;
    for (size_t i = 0; i < n; i++) {
        if (runs[i].nnz == 0)
            continue;
        memmove((char *)parcel->value + nnz * shape->element_size, runs[i].value,
                runs[i].nnz * shape->element_size);
        memmove((char *)parcel->index + nnz * shape->index_size, runs[i].index,
                runs[i].nnz * shape->index_size);
        nnz += runs[i].nnz;
    }
    return true;
}

void sar_parcel_expand(const struct sar_shape *shape, struct sar_parcel *parcel, void *spare)
{
    size_t size = shape->element_size, nnz = (size_t)*parcel->nnz, behind = (size_t)shape->count;
    char *value = parcel->value;
    if (nnz != 0)
        memcpy(spare, parcel->index, nnz * shape->index_size);
    for (size_t k = nnz; k-- > 0;) {
        size_t at = (size_t)sar_index_get(spare, shape->index_size, k);
        memmove(value + at * size, value + k * size, size);
        memset(value + (at + 1) * size, 0, (behind - at - 1) * size);
        behind = at;
    }
    memset(value, 0, behind * size);
    *parcel->nnz = SAR_PARCEL_WHOLE;
}
