/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/indices.h"

#include "tensor/dense.h"

SAR_INLINE bool ascend(const void *index, unsigned size, size_t n, uint64_t span)
{
    bool wrong = sar_index_get(index, size, n - 1) >= span;
    for (size_t i = 1; i < n; i++)
        wrong |= sar_index_get(index, size, i) <= sar_index_get(index, size, i - 1);
    return !wrong;
}

SAR_CLONES static bool narrow_ascend(const uint32_t *index, size_t n, uint64_t span)
{
    return ascend(index, 4, n, span);
}

bool sar_indices_ascend(const struct sar_layout *layout, const void *index, size_t n)
{
    if (n == 0)
        return true;
    return layout->index_size == 4 ? narrow_ascend(index, n, layout->span)
                                   : ascend(index, 8, n, layout->span);
}

SAR_INLINE uint64_t count_stretches(const void *index, unsigned size, size_t n, unsigned shift)
{
    uint64_t stretches = n != 0;
    for (size_t i = 1; i < n; i++)
        stretches += sar_index_get(index, size, i) >> shift != sar_index_get(index, size, i - 1) >> shift;
    return stretches;
}

SAR_CLONES static uint64_t narrow_stretches(const uint32_t *index, size_t n, unsigned shift)
{
    return count_stretches(index, 4, n, shift);
}

uint64_t sar_indices_stretches(const struct sar_layout *layout, const struct sar_run *run, unsigned shift)
{
    return layout->index_size == 4 ? narrow_stretches(run->index, run->nnz, shift)
                                   : count_stretches(run->index, 8, run->nnz, shift);
}

static void gather(const unsigned char *values, size_t size, const struct sar_layout *layout,
                   struct sar_run *run)
{
    for (size_t i = 0; i < run->nnz; i++)
        memcpy((unsigned char *)run->value + i * size,
               values + sar_index_get(run->index, layout->index_size, i) * size, size);
}

enum sar_status sar_pick(const struct sar_layout *layout, const unsigned char *values,
                         const unsigned char *presence, uint64_t slots, struct sar_arena *arena,
                         struct sar_run *run)
{
    size_t announced = run->nnz;
    if (presence == NULL) {
        struct sar_shape shape = { .count = slots,
                                   .element_size = layout->element_size,
                                   .index_size = layout->index_size };
        SAR_TRY(sar_dense_compact(&shape, values, announced, arena, run));
        return run->nnz <= announced ? SAR_OK : SAR_CORRUPT;
    }
    struct sar_layout all = *layout;
    all.span = slots;
    SAR_TRY(sar_arena_take(arena, announced, layout->index_size, &run->index));
    SAR_TRY(sar_bitmap_decode(&all, presence, announced, run->index));
    SAR_TRY(sar_arena_take(arena, announced, layout->element_size, &run->value));
    gather(values, layout->element_size, layout, run);
    return SAR_OK;
}
