/* SPDX-License-Identifier: BSD-3-Clause */
/* A block holds values, and behind them the indices of the same elements. All blocks of the ring are queued
 * at once; each is queued again as soon as it has been emptied. */

#include "device/arrival.h"

#include <string.h>

enum sar_status sar_arrival_open(struct sar_arrival *a, const struct sar_memory *memory, size_t nnz)
{
    const struct sar_lanes *lanes = memory->accelerator->lanes;
    a->memory = *memory;
    a->from.nnz = nnz;
    if (nnz == 0)
        return SAR_OK;
    SAR_TRY(lanes->take(memory->place, nnz * a->index_size, memory->stream, &a->from.index));
    return lanes->take(memory->place, nnz * a->element_size, memory->stream, &a->from.value);
}

/* Elements of block k. */
static size_t length_of(const struct sar_arrival *a, size_t k)
{
    size_t rest = a->from.nnz - k * a->each;
    return rest < a->each ? rest : a->each;
}

static enum sar_status queue_next(struct sar_arrival *a)
{
    size_t k = a->queued, first = k * a->each;
    if (first >= a->from.nnz)
        return SAR_OK;
    size_t n = length_of(a, k);
    void *block;
    SAR_TRY(sar_staging_block(a->staging, k, &block));
    SAR_TRY(sar_staging_copy(a->staging, k, block, (const char *)a->from.value + first * a->element_size,
                             n * a->element_size));
    SAR_TRY(sar_staging_copy(a->staging, k, (char *)block + a->each * a->element_size,
                             (const char *)a->from.index + first * a->index_size, n * a->index_size));
    a->queued++;
    return sar_staging_mark(a->staging, k);
}

enum sar_status sar_arrival_begin(struct sar_arrival *a, size_t room, struct sar_arena *arena)
{
    size_t size = a->element_size + a->index_size, all = a->from.nnz;
    SAR_TRY(sar_arena_take(arena, all, a->index_size, &a->run.index));
    SAR_TRY(sar_arena_take(arena, all, a->element_size, &a->run.value));
    a->run.nnz = all;
    a->each = room / size > 0 ? room / size : 1;
    a->each = a->each < all ? a->each : all;
    if (all == 0)
        return SAR_OK;
    SAR_TRY(sar_staging_take(&a->memory, a->each * size, &a->staging));
    for (int i = 0; i < SAR_STAGING_BLOCKS; i++)
        SAR_TRY(queue_next(a));
    return SAR_OK;
}

static enum sar_status empty_next(struct sar_arrival *a)
{
    size_t k = a->here / a->each, n = length_of(a, k);
    void *block;
    SAR_TRY(sar_staging_block(a->staging, k, &block));
    memcpy((char *)a->run.value + a->here * a->element_size, block, n * a->element_size);
    memcpy((char *)a->run.index + a->here * a->index_size, (char *)block + a->each * a->element_size,
           n * a->index_size);
    a->here += n;
    return queue_next(a);
}

enum sar_status sar_arrival_until(struct sar_arrival *a, size_t n)
{
    while (a->here < n)
        SAR_TRY(empty_next(a));
    return SAR_OK;
}

void sar_arrival_end(struct sar_arrival *a)
{
    (void)sar_staging_give_back(a->staging);
    if (a->from.index != NULL)
        a->memory.accelerator->lanes->give_back(a->memory.place, a->from.index, a->memory.stream);
    if (a->from.value != NULL)
        a->memory.accelerator->lanes->give_back(a->memory.place, a->from.value, a->memory.stream);
    *a = (struct sar_arrival){ 0 };
}
