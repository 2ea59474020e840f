/* SPDX-License-Identifier: BSD-3-Clause */
/* Algorithm 1 makes lists of positions in no order. All formats but the dense ones, and the reduction by
 * tiles, need ascending slots. Slots of a part ascend with positions, so a radix sort of each list gives the
 * order. The elements are then read in order, once.
 *
 *     time = nnz * (fill + read cells + sort + move)
 *
 * Threads fill cells together. The lists are read, sorted and moved one part a thread. */

#include "vector/partition_hierarchical.h"

#include <stdlib.h>
#include <string.h>

#include "base/parallel.h"
#include "vector/radix_sort.h"

enum { CELL_BYTES = 32 /* of memory that an element reads and writes */ };

struct job {
    const struct sar_partition_map *map;
    const struct sar_vec_desc *desc;
    const struct sar_spvec *vec;
    struct sar_hash_memory memory; /* of the last run */
    uint64_t *items;               /* two for each element */
    struct sar_spvec *parts;
};

/* A loop of hash/hierarchical.h on threads. */
static void on_threads(size_t n, sar_range_fn *body, void *context)
{
    sar_ranges_run((struct sar_ranges){ n, 1, sar_parallel_pieces(n * CELL_BYTES), body, context });
}

static uint64_t mark_at(const struct sar_hash_memory *memory, size_t cell)
{
    return memory->params.cell_size == 4 ? ((const uint32_t *)memory->cells)[cell]
                                         : ((const uint64_t *)memory->cells)[cell];
}

SAR_CLONES static size_t count_used(const uint32_t *cell, size_t n)
{
    size_t used = 0;
    for (size_t i = 0; i < n; i++)
        used += cell[i] != 0;
    return used;
}

static enum sar_status count_part(void *arg, size_t p)
{
    struct job *job = arg;
    const struct sar_hash_memory *memory = &job->memory;
    size_t begin = memory->first[p], end = memory->first[p + 1], used = 0;
    if (memory->params.cell_size == 4)
        used = count_used((const uint32_t *)memory->cells + begin, end - begin);
    else
        for (size_t cell = begin; cell < end; cell++)
            used += mark_at(memory, cell) != 0;
    job->parts[p].nnz = used;
    return SAR_OK;
}

/* nonzero(x[p]) of the paper. An item of an empty cell is overwritten by the next one. */
static void read_cells(const struct sar_hash_memory *memory, size_t p, unsigned shift, uint64_t *items,
                       size_t n)
{
    size_t found = 0;
    for (size_t cell = memory->first[p]; found < n; cell++) {
        uint64_t mark = mark_at(memory, cell);
        items[found] = (mark - 1) << shift;
        found += mark != 0;
    }
}

static int compare(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return a < b ? -1 : a > b;
}

SAR_INLINE void move_as(const struct job *job, struct sar_spvec *part, const uint64_t *items, unsigned shift,
                        unsigned index_size, size_t bytes)
{
    struct sar_partition_map map = *job->map;
    const unsigned char *value = job->vec->value;
    for (size_t i = 0; i < part->nnz; i++) {
        size_t from = (size_t)(items[i] >> shift);
        uint64_t index = sar_index_get(job->vec->index, index_size, from);
        ((uint32_t *)part->index)[i] = (uint32_t)sar_partition_map_locate(&map, index).slot;
        memcpy((unsigned char *)part->value + i * bytes, value + from * bytes, bytes);
    }
}

static void move(const struct job *job, struct sar_spvec *part, const uint64_t *items, unsigned shift)
{
    size_t bytes = job->desc->element_size;
    unsigned size = job->desc->index_size;
    if (bytes == 4)
        SAR_FOR_INDEX_SIZE(size, move_as(job, part, items, shift, INDEX_SIZE, 4));
    else if (bytes == 8)
        SAR_FOR_INDEX_SIZE(size, move_as(job, part, items, shift, INDEX_SIZE, 8));
    else
        move_as(job, part, items, shift, size, bytes);
}

/* The radix sort takes keys of 32 bits, in upper halves. */
static enum sar_status make_part(void *arg, size_t p)
{
    const struct job *job = arg;
    struct sar_spvec *part = &job->parts[p];
    size_t before = (size_t)((const uint32_t *)part->index - (const uint32_t *)job->parts[0].index);
    uint64_t *items = job->items + 2 * before;
    bool narrow = job->memory.params.cell_size == 4;
    unsigned shift = narrow ? 32 : 0;
    read_cells(&job->memory, p, shift, items, part->nnz);
    if (narrow) {
        unsigned bits = 64 - (unsigned)__builtin_clzll(job->vec->nnz | 1);
        items = sar_radix_sort(items, items + part->nnz, part->nnz, bits);
    } else {
        qsort(items, part->nnz, sizeof *items, compare);
    }
    move(job, part, items, shift);
    return SAR_OK;
}

static void place_parts(const struct job *job, const struct sar_spvec *memory)
{
    size_t before = 0;
    for (uint32_t p = 0; p < job->map->parts; p++) {
        job->parts[p].index = (uint32_t *)memory->index + before;
        job->parts[p].value = (unsigned char *)memory->value + before * job->desc->element_size;
        before += job->parts[p].nnz;
    }
}

static void for_parts(const struct job *job, bool threads, sar_parallel_body *body, void *arg)
{
    if (threads) {
        sar_parallel_for(job->map->parts, body, arg);
        return;
    }
    for (uint32_t p = 0; p < job->map->parts; p++)
        body(arg, p);
}

static enum sar_status split(struct job *job, const struct sar_hierarchical_params *given,
                             struct sar_arena *arena, const struct sar_spvec *memory,
                             struct sar_hash_stats *stats)
{
    const struct sar_spvec *vec = job->vec;
    struct sar_hash_input input = { .index = vec->index,
                                    .index_size = job->desc->index_size,
                                    .nnz = vec->nnz };
    bool threads = sar_parallel_pieces(vec->nnz * CELL_BYTES) > 1;
    struct sar_hierarchical_params params = *given;
    unsigned reruns;
    void *items;
    params.parallel_for = threads ? on_threads : NULL;
    SAR_TRY(sar_hash_fill(&params, job->map, &input, arena, &job->memory, &reruns));
    SAR_TRY(sar_arena_alloc(arena, vec->nnz, 2 * sizeof(uint64_t), &items));
    job->items = items;
    for_parts(job, threads, count_part, job);
    place_parts(job, memory);
    for_parts(job, threads, make_part, job);
    uint64_t serial = 0;
    for (uint32_t p = 0; p < job->map->parts; p++)
        serial += job->memory.serial_count[p];
    sar_hash_stats_add(stats, vec->nnz, serial, reruns);
    return SAR_OK;
}

enum sar_status sar_partition_hierarchical(const struct sar_hierarchical_params *params,
                                           const struct sar_partition_map *map,
                                           const struct sar_vec_desc *desc, const struct sar_spvec *vec,
                                           struct sar_arena *arena, const struct sar_spvec *memory,
                                           struct sar_spvec parts[], struct sar_hash_stats *stats)
{
    struct sar_hierarchical_params paper = sar_hierarchical_params_make(vec->nnz, map->parts, map->seed);
    struct job job = { .map = map, .desc = desc, .vec = vec, .parts = parts };
    struct sar_spvec own = { .nnz = vec->nnz };
    if (memory == NULL) {
        SAR_TRY(sar_arena_alloc(arena, vec->nnz, sizeof(uint32_t), &own.index));
        SAR_TRY(sar_arena_alloc(arena, vec->nnz, desc->element_size, &own.value));
        memory = &own;
    }
    return split(&job, params == NULL ? &paper : params, arena, memory, stats);
}
