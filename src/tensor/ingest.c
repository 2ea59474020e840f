/* SPDX-License-Identifier: BSD-3-Clause */
/* A caller's coordinate buffers become a run. One pass finds indices out of range and tells ascending
 * from unsorted input, which is sorted; ascending 32-bit input is used where it lies. */

#include "tensor/ingest.h"

#include "tensor/sort.h"

/* What a pass over the indices found. A negative index looks huge. */
struct findings {
    uint64_t most;  /* the largest index */
    bool ascending; /* each index above the one before it */
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

SAR_CLONES static struct findings look32(const uint32_t *index, size_t n)
{
    uint32_t most = index[0], descents = 0;
    for (size_t i = 1; i < n; i++) {
        most = index[i] > most ? index[i] : most;
        descents |= index[i] <= index[i - 1];
    }
    return (struct findings){ most, descents == 0 };
}

SAR_CLONES static struct findings look64(const uint64_t *index, size_t n)
{
    uint64_t most = index[0], descents = 0;
    for (size_t i = 1; i < n; i++) {
        most = index[i] > most ? index[i] : most;
        descents |= index[i] <= index[i - 1];
    }
    return (struct findings){ most, descents == 0 };
}

static long long first_bad(const struct sar_coo *coo, uint64_t count)
{
    unsigned size = sar_index_type_size(coo->type);
    size_t i = 0;
    while (sar_index_get(coo->indices, size, i) < count)
        i++;
    uint64_t bad = sar_index_get(coo->indices, size, i);
    return coo->type == SAR_INDEX_INT32 ? (int32_t)(uint32_t)bad : (long long)bad;
}

/* Copy indices to the library's width. */
static enum sar_status resize_indices(const struct sar_shape *shape, const struct sar_coo *coo,
                                      struct sar_arena *arena, struct sar_run *run)
{
    SAR_TRY(sar_arena_take(arena, coo->nnz, shape->index_size, &run->index));
    if (shape->index_size == 4)
        for (size_t i = 0; i < coo->nnz; i++)
            ((uint32_t *)run->index)[i] = (uint32_t)((const uint64_t *)coo->indices)[i];
    else
        for (size_t i = 0; i < coo->nnz; i++)
            ((uint64_t *)run->index)[i] = ((const uint32_t *)coo->indices)[i];
    return SAR_OK;
}

/* What a logical op makes 0 or 1 is made so where no other rank has it, too. */
static enum sar_status settle_truth(const struct sar_shape *shape, struct sar_arena *arena,
                                    struct sar_run *run)
{
    const void *given = run->value;
    size_t values = run->nnz * shape->row;
    if (!sar_op_is_logical(shape->op))
        return SAR_OK;
    SAR_TRY(sar_arena_take(arena, run->nnz, shape->element_size, &run->value));
    shape->kernels->fill_identity(run->value, values);
    shape->kernels->fold(run->value, given, values);
    return SAR_OK;
}

static enum sar_status put_in_order(const struct sar_shape *shape, const struct sar_coo *coo,
                                    const struct findings *found, struct sar_arena *arena,
                                    struct sar_run *run)
{
    unsigned size = sar_index_type_size(coo->type);
    if (!found->ascending)
        return sar_sort(shape,
                        &(struct sar_unsorted){ coo->indices, coo->values, coo->nnz, size, found->most },
                        arena, run);
    return size == shape->index_size ? SAR_OK : resize_indices(shape, coo, arena, run);
}

enum sar_status sar_ingest(const struct sar_shape *shape, const struct sar_coo *coo, struct sar_arena *arena,
                           struct sar_run *run, long long *bad)
{
    unsigned size = sar_index_type_size(coo->type);
    *run = (struct sar_run){ (void *)coo->indices, (void *)coo->values, coo->nnz };
    if (coo->nnz == 0)
        return SAR_OK;
    struct findings found = size == 4 ? look32(coo->indices, coo->nnz) : look64(coo->indices, coo->nnz);
    if (found.most >= shape->count) {
        *bad = first_bad(coo, shape->count);
        return coo->type == SAR_INDEX_UINT64 ? SAR_BAD_UNSIGNED_INDEX : SAR_BAD_INDEX;
    }
    SAR_TRY(put_in_order(shape, coo, &found, arena, run));
    return settle_truth(shape, arena, run);
}
