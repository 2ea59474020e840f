/* SPDX-License-Identifier: BSD-3-Clause */
/* Stable counting sort by part: the host's fast path for what Algorithm 1 does with many threads. Elements
 * are located twice, to count parts and to move them, some at a time: that takes less than to write all
 * places down and read them again. Into few parts vectors are split by comparing. */

#include "tensor/partition.h"

#include <string.h>
#if defined(SAR_WIDE)
#include <immintrin.h>
#endif

enum {
    CHUNK = 1024, /* elements located at a time */
    FEW_PARTS = 8
};

/* Of some elements. */
struct places {
    uint32_t part[CHUNK], slot[CHUNK];
};

SAR_INLINE void locate_body(const struct sar_map *map, const void *index, unsigned size, size_t from,
                            size_t n, struct places *to)
{
    for (size_t i = 0; i < n; i++) {
        struct sar_place place = sar_map_place(map, sar_index_get(index, size, from + i));
        to->part[i] = place.part;
        to->slot[i] = (uint32_t)place.slot;
    }
}

SAR_INLINE void locate_narrow(const struct sar_map *map, const uint32_t *index, size_t n, struct places *to)
{
    for (size_t i = 0; i < n; i++) {
        struct sar_narrow_place place = sar_map_place_narrow(map, index[i]);
        to->part[i] = place.part;
        to->slot[i] = place.slot;
    }
}

/* The usual maps get loops of their own, in which the kind and the width are constants. */
SAR_CLONES static void locate_hash(const struct sar_map *map, const uint32_t *index, size_t n,
                                   struct places *to)
{
    struct sar_map fixed = *map;
    fixed.kind = SAR_PARTITION_HASH;
    fixed.narrow = true;
    locate_narrow(&fixed, index, n, to);
}

SAR_CLONES static void locate_cyclic(const struct sar_map *map, const uint32_t *index, size_t n,
                                     struct places *to)
{
    struct sar_map fixed = *map;
    fixed.kind = SAR_PARTITION_CYCLIC;
    fixed.narrow = true;
    locate_narrow(&fixed, index, n, to);
}

static void locate(const struct sar_map *map, const struct sar_shape *shape, const void *index, size_t from,
                   size_t n, struct places *to)
{
    bool narrow = map->narrow && map->parts > 1 && shape->index_size == 4;
    if (narrow && map->kind == SAR_PARTITION_HASH)
        locate_hash(map, (const uint32_t *)index + from, n, to);
    else if (narrow && map->kind == SAR_PARTITION_CYCLIC)
        locate_cyclic(map, (const uint32_t *)index + from, n, to);
    else
        SAR_FOR_INDEX_SIZE(shape->index_size, locate_body(map, index, INDEX_SIZE, from, n, to));
}

/* Where elements go. */
struct target {
    uint32_t parts;
    size_t bytes; /* of an element */
    size_t *next; /* place of the next element of each part */
    uint32_t *slot;
    unsigned char *value;
};

SAR_INLINE void move_body(const struct places *at, const unsigned char *from, size_t n, size_t bytes,
                          const struct target *t)
{
    for (size_t i = 0; i < n; i++) {
        size_t to = t->next[at->part[i]]++;
        t->slot[to] = at->slot[i];
        memcpy(t->value + to * bytes, from + i * bytes, bytes);
    }
}

#if defined(SAR_WIDE)
enum { LANES = 16 };

/* Move elements of 4 bytes into few parts; n is a multiple of LANES. */
SAR_WIDE static void move4_wide(const struct places *at, const uint32_t *from, size_t n,
                                const struct target *t)
{
    uint32_t *value = (uint32_t *)t->value;
    for (size_t i = 0; i < n; i += LANES) {
        __m512i part = _mm512_loadu_si512(at->part + i), slots = _mm512_loadu_si512(at->slot + i);
        __m512i values = _mm512_loadu_si512(from + i);
        for (uint32_t p = 0; p < t->parts; p++) {
            __mmask16 here = _mm512_cmpeq_epi32_mask(part, _mm512_set1_epi32((int)p));
            unsigned found = (unsigned)__builtin_popcount(here);
            __mmask16 first = (__mmask16)((1u << found) - 1);
            _mm512_mask_storeu_epi32(t->slot + t->next[p], first, _mm512_maskz_compress_epi32(here, slots));
            _mm512_mask_storeu_epi32(value + t->next[p], first, _mm512_maskz_compress_epi32(here, values));
            t->next[p] += found;
        }
    }
}
#else
#define move4_wide(at, from, n, t) ((void)0)
#endif

static void move(const struct places *at, const unsigned char *from, size_t n, const struct target *t)
{
    if (t->bytes == 4 && n == CHUNK && t->parts <= FEW_PARTS && sar_is_wide())
        move4_wide(at, (const uint32_t *)from, n, t);
    else if (t->bytes == 4)
        move_body(at, from, n, 4, t);
    else if (t->bytes == 8)
        move_body(at, from, n, 8, t);
    else
        move_body(at, from, n, t->bytes, t);
}

/* Additions to one of few numbers would wait for each other; comparing does not. */
SAR_CLONES static void count_few(const uint32_t *part, size_t n, uint32_t parts, size_t *count)
{
    for (uint32_t p = 0; p < parts; p++) {
        uint32_t found = 0;
        for (size_t i = 0; i < n; i++)
            found += part[i] == p;
        count[p] += found;
    }
}

static void count_places(const struct places *at, size_t n, uint32_t parts, size_t *count)
{
    if (parts <= FEW_PARTS) {
        count_few(at->part, n, parts, count);
        return;
    }
    for (size_t i = 0; i < n; i++)
        count[at->part[i]]++;
}

/* Go over a run: count its elements in each part, or move them where `to` is not NULL. */
static void walk(const struct sar_map *map, const struct sar_shape *shape, const struct sar_run *run,
                 size_t *count, const struct target *to)
{
    struct places at;
    for (size_t n, from = 0; from < run->nnz; from += n) {
        n = run->nnz - from < CHUNK ? run->nnz - from : CHUNK;
        locate(map, shape, run->index, from, n, &at);
        if (to != NULL)
            move(&at, (const unsigned char *)run->value + from * to->bytes, n, to);
        else
            count_places(&at, n, map->parts, count);
    }
}

enum sar_status sar_partition_into(const struct sar_map *map, const struct sar_shape *shape,
                                   const struct sar_run *run, struct sar_arena *arena,
                                   const struct sar_run *memory, struct sar_run parts[])
{
    void *next;
    size_t begin = 0;
    SAR_TRY(sar_arena_take_zeroed(arena, map->parts, sizeof(size_t), &next));
    struct target to = { map->parts, shape->element_size, next, memory->index, memory->value };
    walk(map, shape, run, to.next, NULL);
    for (uint32_t p = 0; p < map->parts; p++) {
        parts[p] = (struct sar_run){ to.slot + begin, to.value + begin * to.bytes, to.next[p] };
        to.next[p] = begin;
        begin += parts[p].nnz;
    }
    walk(map, shape, run, NULL, &to);
    return SAR_OK;
}

enum sar_status sar_partition(const struct sar_map *map, const struct sar_shape *shape,
                              const struct sar_run *run, struct sar_arena *arena, struct sar_run parts[])
{
    struct sar_run memory = { .nnz = run->nnz };
    SAR_TRY(sar_arena_take(arena, run->nnz, sizeof(uint32_t), &memory.index));
    SAR_TRY(sar_arena_take(arena, run->nnz, shape->element_size, &memory.value));
    return sar_partition_into(map, shape, run, arena, &memory, parts);
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
