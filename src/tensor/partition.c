/* SPDX-License-Identifier: BSD-3-Clause */
/* Stable counting sort by part: the host's fast path for what Algorithm 1 does with many threads. */

#include "tensor/partition.h"

#include <string.h>

struct places {
    uint32_t *part, *slot; /* of each element */
    size_t *next;          /* where the next element of each part goes */
};

SAR_INLINE void locate_body(const struct sar_map *map, const void *index, unsigned size, size_t n,
                            struct places to)
{
    for (size_t i = 0; i < n; i++) {
        struct sar_place place = sar_map_place(map, sar_index_get(index, size, i));
        to.part[i] = place.part;
        to.slot[i] = (uint32_t)place.slot;
    }
}

/* The usual maps get loops of their own, in which the kind and the width are constants. */
SAR_CLONES static void locate_hash(const struct sar_map *map, const uint32_t *index, size_t n,
                                   struct places to)
{
    struct sar_map fixed = *map;
    fixed.kind = SAR_PARTITION_HASH;
    fixed.narrow = true;
    locate_body(&fixed, index, 4, n, to);
}

SAR_CLONES static void locate_cyclic(const struct sar_map *map, const uint32_t *index, size_t n,
                                     struct places to)
{
    struct sar_map fixed = *map;
    fixed.kind = SAR_PARTITION_CYCLIC;
    fixed.narrow = true;
    locate_body(&fixed, index, 4, n, to);
}

static void locate(const struct sar_map *map, const struct sar_shape *shape, const struct sar_run *run,
                   struct places to)
{
    bool narrow = map->narrow && map->parts > 1 && shape->index_size == 4;
    if (narrow && map->kind == SAR_PARTITION_HASH)
        locate_hash(map, run->index, run->nnz, to);
    else if (narrow && map->kind == SAR_PARTITION_CYCLIC)
        locate_cyclic(map, run->index, run->nnz, to);
    else
        SAR_FOR_INDEX_SIZE(shape->index_size, locate_body(map, run->index, INDEX_SIZE, run->nnz, to));
}

SAR_INLINE void scatter_body(const struct places *at, const struct sar_run *run, size_t bytes, uint32_t *slot,
                             unsigned char *value)
{
    const unsigned char *from = run->value;
    for (size_t i = 0; i < run->nnz; i++) {
        size_t to = at->next[at->part[i]]++;
        slot[to] = at->slot[i];
        memcpy(value + to * bytes, from + i * bytes, bytes);
    }
}

static void scatter(const struct places *at, const struct sar_run *run, size_t bytes, uint32_t *slot,
                    unsigned char *value)
{
    if (bytes == 4)
        scatter_body(at, run, 4, slot, value);
    else if (bytes == 8)
        scatter_body(at, run, 8, slot, value);
    else
        scatter_body(at, run, bytes, slot, value);
}

/* Count the parts, and turn counts into places: afterwards next[p] is where part p begins. */
static void lay_out(const struct sar_map *map, const struct places *at, size_t nnz, struct sar_run parts[])
{
    for (size_t i = 0; i < nnz; i++)
        at->next[at->part[i]]++;
    size_t begin = 0;
    for (uint32_t p = 0; p < map->parts; p++) {
        parts[p].nnz = at->next[p];
        at->next[p] = begin;
        begin += parts[p].nnz;
    }
}

enum sar_status sar_partition(const struct sar_map *map, const struct sar_shape *shape,
                              const struct sar_run *run, struct sar_arena *arena, struct sar_run parts[])
{
    void *part, *place, *next, *slot, *value;
    SAR_TRY(sar_arena_take(arena, run->nnz, sizeof(uint32_t), &part));
    SAR_TRY(sar_arena_take(arena, run->nnz, sizeof(uint32_t), &place));
    SAR_TRY(sar_arena_take_zeroed(arena, map->parts, sizeof(size_t), &next));
    SAR_TRY(sar_arena_take(arena, run->nnz, sizeof(uint32_t), &slot));
    SAR_TRY(sar_arena_take(arena, run->nnz, shape->element_size, &value));
    struct places at = { part, place, next };
    locate(map, shape, run, at);
    lay_out(map, &at, run->nnz, parts);
    for (uint32_t p = 0; p < map->parts; p++) {
        parts[p].index = (uint32_t *)slot + at.next[p];
        parts[p].value = (unsigned char *)value + at.next[p] * shape->element_size;
    }
    scatter(&at, run, shape->element_size, slot, value);
    return SAR_OK;
}

SAR_INLINE void index_body(const struct sar_map *map, uint32_t part, const uint32_t *slot, size_t n,
                           void *index, unsigned size)
{
    for (size_t i = 0; i < n; i++)
        sar_index_set(index, size, i, sar_map_index(map, part, slot[i]));
}

SAR_CLONES static void index_hash(const struct sar_map *map, uint32_t part, const uint32_t *slot, size_t n,
                                  uint32_t *index)
{
    struct sar_map fixed = *map;
    fixed.kind = SAR_PARTITION_HASH;
    fixed.narrow = true;
    index_body(&fixed, part, slot, n, index, 4);
}

enum sar_status sar_unpartition(const struct sar_map *map, const struct sar_shape *shape, uint32_t part,
                                struct sar_arena *arena, struct sar_run *run)
{
    void *index;
    SAR_TRY(sar_arena_take(arena, run->nnz, shape->index_size, &index));
    if (map->kind == SAR_PARTITION_HASH && map->narrow && shape->index_size == 4)
        index_hash(map, part, run->index, run->nnz, index);
    else
        SAR_FOR_INDEX_SIZE(shape->index_size, index_body(map, part, run->index, run->nnz, index, INDEX_SIZE));
    run->index = index;
    return SAR_OK;
}
