/* SPDX-License-Identifier: BSD-3-Clause */
#include "tensor/stretch.h"

#include <string.h>

enum { STEP = 16 /* elements */ };

/* Gallop, then bisect: what is looked for is near most of the time. */
size_t sar_run_find(const struct sar_shape *shape, const struct sar_run *run, size_t from, uint64_t limit)
{
    size_t step = STEP, low = from, high;
    while (low + step < run->nnz && sar_index_get(run->index, shape->index_size, low + step) < limit) {
        low += step;
        step *= 2;
    }
    high = low + step < run->nnz ? low + step : run->nnz;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (sar_index_get(run->index, shape->index_size, middle) < limit)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct sar_run sar_run_slice(const struct sar_shape *shape, const struct sar_run *run, size_t from, size_t to)
{
    return (struct sar_run){ (unsigned char *)run->index + from * shape->index_size,
                             (unsigned char *)run->value + from * shape->element_size, to - from };
}

/* base may be the negative of a number: indices are unsigned. */
SAR_INLINE void shift(const void *index, unsigned size, size_t n, uint64_t base, void *out, unsigned out_size)
{
    for (size_t i = 0; i < n; i++)
        sar_index_set(out, out_size, i, sar_index_get(index, size, i) + base);
}

enum sar_status sar_run_rebase(const struct sar_shape *shape, uint64_t base, unsigned index_size,
                               struct sar_arena *arena, struct sar_run *run)
{
    void *index;
    SAR_TRY(sar_arena_take(arena, run->nnz, index_size, &index));
    SAR_FOR_INDEX_SIZE(shape->index_size, shift(run->index, INDEX_SIZE, run->nnz, -base, index, index_size));
    run->index = index;
    return SAR_OK;
}

void sar_run_append(const struct sar_shape *shape, const struct sar_run *run, unsigned index_size,
                    uint64_t base, struct sar_run *out)
{
    unsigned char *index = (unsigned char *)out->index + out->nnz * shape->index_size;
    if (run->nnz == 0)
        return;
    SAR_FOR_INDEX_SIZE(shape->index_size, shift(run->index, index_size, run->nnz, base, index, INDEX_SIZE));
    memcpy((unsigned char *)out->value + out->nnz * shape->element_size, run->value,
           run->nnz * shape->element_size);
    out->nnz += run->nnz;
}
