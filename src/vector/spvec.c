/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations on one sorted sparse vector; each costs a pass over its elements or less. */

#include "vector/spvec.h"

#include <string.h>

#include "vector/nt_store.h"

enum { STEP = 16 /* elements of the first gallop */ };

enum sar_status sar_spvec_alloc(const struct sar_vec_desc *desc, size_t nnz, struct sar_arena *arena,
                                struct sar_spvec *vec)
{
    struct sar_spvec fresh = { .nnz = nnz };
    SAR_TRY(sar_arena_alloc(arena, nnz, desc->index_size, &fresh.index));
    SAR_TRY(sar_arena_alloc(arena, nnz, desc->element_size, &fresh.value));
    *vec = fresh;
    return SAR_OK;
}

void sar_spvec_copy(const struct sar_vec_desc *desc, const struct sar_spvec *from, struct sar_spvec *to)
{
    if (from->nnz == 0)
        return;
    memcpy(to->index, from->index, from->nnz * desc->index_size);
    memcpy(to->value, from->value, from->nnz * desc->element_size);
}

void sar_spvec_copy_nt(const struct sar_vec_desc *desc, const struct sar_spvec *from, struct sar_spvec *to)
{
    if (from->nnz == 0)
        return;
    sar_nt_copy_unaligned(to->index, from->index, from->nnz * desc->index_size);
    sar_nt_copy_unaligned(to->value, from->value, from->nnz * desc->element_size);
    sar_nt_fence();
}

/* Gallop, then bisect: callers search in ascending order, so the limit is usually near `from`. */
size_t sar_spvec_lower_bound(const struct sar_vec_desc *desc, const struct sar_spvec *vec, size_t from,
                             uint64_t limit)
{
    size_t step = STEP, low = from;
    while (low + step < vec->nnz && sar_index_get(vec->index, desc->index_size, low + step) < limit) {
        low += step;
        step *= 2;
    }
    size_t high = low + step < vec->nnz ? low + step : vec->nnz;
    return sar_index_lower_bound(vec->index, desc->index_size, low, high, limit);
}

struct sar_spvec sar_spvec_slice(const struct sar_vec_desc *desc, const struct sar_spvec *vec, size_t from,
                                 size_t to)
{
    return (struct sar_spvec){ (unsigned char *)vec->index + from * desc->index_size,
                               (unsigned char *)vec->value + from * desc->element_size, to - from };
}

/* Indices are unsigned: base may be the two's complement of a number to subtract. */
SAR_INLINE void rebase_indices(const void *index, unsigned size, size_t n, uint64_t base, void *out,
                               unsigned out_size)
{
    for (size_t i = 0; i < n; i++)
        sar_index_set(out, out_size, i, sar_index_get(index, size, i) + base);
}

enum sar_status sar_spvec_rebase(const struct sar_vec_desc *desc, uint64_t base, unsigned index_size,
                                 struct sar_arena *arena, struct sar_spvec *vec)
{
    void *index;
    SAR_TRY(sar_arena_alloc(arena, vec->nnz, index_size, &index));
    SAR_FOR_INDEX_SIZE(desc->index_size,
                       rebase_indices(vec->index, INDEX_SIZE, vec->nnz, -base, index, index_size));
    vec->index = index;
    return SAR_OK;
}

void sar_spvec_append(const struct sar_vec_desc *desc, const struct sar_spvec *vec, unsigned index_size,
                      uint64_t base, struct sar_spvec *out)
{
    unsigned char *index = (unsigned char *)out->index + out->nnz * desc->index_size;
    if (vec->nnz == 0)
        return;
    SAR_FOR_INDEX_SIZE(desc->index_size,
                       rebase_indices(vec->index, index_size, vec->nnz, base, index, INDEX_SIZE));
    memcpy((unsigned char *)out->value + out->nnz * desc->element_size, vec->value,
           vec->nnz * desc->element_size);
    out->nnz += vec->nnz;
}
