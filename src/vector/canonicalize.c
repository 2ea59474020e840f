/* SPDX-License-Identifier: BSD-3-Clause */
/* Conversion of a caller's coordinates to a vec, at the beginning of every coordinate call. One pass finds
 * indices out of range and tests the order. Unsorted input is sorted; ascending input with indices of the
 * library's size is used in place.
 *
 *     time = bytes of indices / memory bandwidth, and sar_sort of unsorted input */

#include "vector/canonicalize.h"

#include "vector/sort.h"

/* Result of a pass over the indices. Indices are read as unsigned, so a negative index is huge. */
struct index_stats {
    uint64_t max_index; /* the largest index */
    bool ascending;     /* each index above the one before it */
};

unsigned sar_index_type_size(enum sar_index_type type)
{
    return type == SAR_INDEX_INT32 || type == SAR_INDEX_UINT32 ? 4 : 8;
}

uint64_t sar_index_type_limit(enum sar_index_type type)
{
    static const uint64_t limit[SAR_INDEX_TYPES] = { (uint64_t)1 << 31, (uint64_t)1 << 32, (uint64_t)1 << 63,
                                                     UINT64_MAX };
    return limit[type];
}

SAR_CLONES static struct index_stats scan32(const uint32_t *index, size_t n)
{
    uint32_t max_index = index[0], descents = 0;
    for (size_t i = 1; i < n; i++) {
        max_index = index[i] > max_index ? index[i] : max_index;
        descents |= index[i] <= index[i - 1];
    }
    return (struct index_stats){ max_index, descents == 0 };
}

SAR_CLONES static struct index_stats scan64(const uint64_t *index, size_t n)
{
    uint64_t max_index = index[0], descents = 0;
    for (size_t i = 1; i < n; i++) {
        max_index = index[i] > max_index ? index[i] : max_index;
        descents |= index[i] <= index[i - 1];
    }
    return (struct index_stats){ max_index, descents == 0 };
}

static long long first_invalid(const struct sar_coo_args *coo, uint64_t count)
{
    unsigned size = sar_index_type_size(coo->type);
    size_t i = 0;
    while (sar_index_get(coo->indices, size, i) < count)
        i++;
    uint64_t bad = sar_index_get(coo->indices, size, i);
    return coo->type == SAR_INDEX_INT32 ? (int32_t)(uint32_t)bad : (long long)bad;
}

/* Copy indices to indices of the library's size. */
static enum sar_status resize_indices(const struct sar_vec_desc *desc, const struct sar_coo_args *coo,
                                      struct sar_arena *arena, struct sar_spvec *vec)
{
    SAR_TRY(sar_arena_alloc(arena, coo->nnz, desc->index_size, &vec->index));
    if (desc->index_size == 4)
        for (size_t i = 0; i < coo->nnz; i++)
            ((uint32_t *)vec->index)[i] = (uint32_t)((const uint64_t *)coo->indices)[i];
    else
        for (size_t i = 0; i < coo->nnz; i++)
            ((uint64_t *)vec->index)[i] = ((const uint32_t *)coo->indices)[i];
    return SAR_OK;
}

/* A logical op returns 0 or 1. Normalize values, since elements of one rank only are never reduced. */
static enum sar_status normalize_logical(const struct sar_vec_desc *desc, struct sar_arena *arena,
                                         struct sar_spvec *vec)
{
    const void *input = vec->value;
    size_t values = vec->nnz * desc->row_len;
    if (!sar_op_is_logical(desc->op))
        return SAR_OK;
    SAR_TRY(sar_arena_alloc(arena, vec->nnz, desc->element_size, &vec->value));
    desc->kernels->fill_identity(vec->value, values);
    desc->kernels->apply(vec->value, input, values);
    return SAR_OK;
}

enum sar_status sar_canonicalize(const struct sar_vec_desc *desc, const struct sar_coo_args *coo,
                                 struct sar_arena *arena, struct sar_spvec *vec, long long *bad)
{
    unsigned size = sar_index_type_size(coo->type);
    *vec = (struct sar_spvec){ (void *)coo->indices, (void *)coo->values, coo->nnz };
    if (coo->nnz == 0)
        return SAR_OK;
    struct index_stats stats = size == 4 ? scan32(coo->indices, coo->nnz) : scan64(coo->indices, coo->nnz);
    if (stats.max_index >= desc->count) {
        *bad = first_invalid(coo, desc->count);
        return coo->type == SAR_INDEX_UINT64 ? SAR_BAD_UNSIGNED_INDEX : SAR_BAD_INDEX;
    }
    struct sar_sort_input unsorted = { coo->indices, coo->values, coo->nnz, size, stats.max_index };
    if (!stats.ascending)
        SAR_TRY(sar_sort(desc, &unsorted, arena, vec));
    else if (size != desc->index_size)
        SAR_TRY(resize_indices(desc, coo, arena, vec));
    return normalize_logical(desc, arena, vec);
}
