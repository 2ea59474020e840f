/* SPDX-License-Identifier: BSD-3-Clause */
/* Split by a partition map: a stable counting sort by part, the host's fast path for Algorithm 1. Each batch
 * of elements is located twice, to count the parts and to move the elements. That is faster than storing all
 * slots and reading them again. A split into few parts compares whole SIMD vectors.
 *
 * Merge of the parts: visits the blocks of the vector in order. Each block takes the next elements of its
 * part, whose indices and slots have a constant difference. A block seldom needs a second batch, and the next
 * block overwrites any excess, so no branch mispredicts. For too many blocks it calls sar_reduce.
 *
 *     time of the merge = blocks + elements, each below 1 ns for floats */

#include "vector/partition.h"

#include <string.h>
#if defined(SAR_AVX512)
#include <immintrin.h>
#endif

#include "base/parallel.h"
#include "vector/pieces.h"
#include "vector/reduce.h"

enum {
    CHUNK = 1024,      /* elements located at a time */
    FEW_PARTS = 8,     /* parts up to which SIMD comparisons count and move */
    BATCH = 8,         /* elements of a block copied at a time */
    LANES_AVX512 = 16, /* slots in a vector of AVX-512 */
    LARGEST = 8        /* most bytes of an element that is copied in batches */
};

/* Part and slot of each element of a batch. */
struct slots_batch {
    uint32_t part[CHUNK], slot[CHUNK];
};

SAR_INLINE void locate_as(const struct sar_partition_map *map, const void *index, unsigned size, size_t from,
                          size_t n, struct slots_batch *to)
{
    for (size_t i = 0; i < n; i++) {
        struct sar_slot at = sar_partition_map_locate(map, sar_index_get(index, size, from + i));
        to->part[i] = at.part;
        to->slot[i] = (uint32_t)at.slot;
    }
}

SAR_INLINE void locate32(const struct sar_partition_map *map, const uint32_t *index, size_t n,
                         struct slots_batch *to)
{
    for (size_t i = 0; i < n; i++) {
        struct sar_slot32 at = sar_partition_map_locate32(map, index[i]);
        to->part[i] = at.part;
        to->slot[i] = at.slot;
    }
}

/* The common kinds of map have loops in which kind and index size are constants. */
#define DEFINE_LOCATE(name, map_kind)                                                                 \
    SAR_CLONES static void name(const struct sar_partition_map *map, const uint32_t *index, size_t n, \
                                struct slots_batch *to)                                               \
    {                                                                                                 \
        struct sar_partition_map fixed = *map;                                                        \
        fixed.kind = map_kind;                                                                        \
        fixed.blocks_fit_32 = true;                                                                   \
        locate32(&fixed, index, n, to);                                                               \
    }

DEFINE_LOCATE(locate_hash, SAR_PARTITION_HASH)
DEFINE_LOCATE(locate_cyclic, SAR_PARTITION_CYCLIC)

static void locate(const struct sar_partition_map *map, const struct sar_vec_desc *desc, const void *index,
                   size_t from, size_t n, struct slots_batch *to)
{
    bool narrow = map->blocks_fit_32 && map->parts > 1 && desc->index_size == 4;
    if (narrow && map->kind == SAR_PARTITION_HASH)
        locate_hash(map, (const uint32_t *)index + from, n, to);
    else if (narrow && map->kind == SAR_PARTITION_CYCLIC)
        locate_cyclic(map, (const uint32_t *)index + from, n, to);
    else
        SAR_FOR_INDEX_SIZE(desc->index_size, locate_as(map, index, INDEX_SIZE, from, n, to));
}

/* Where elements are moved to. */
struct target {
    uint32_t parts;
    size_t bytes; /* of an element */
    size_t *next; /* position of the next element of each part */
    uint32_t *slot;
    unsigned char *value;
};

SAR_INLINE void move_as(const struct slots_batch *at, const unsigned char *from, size_t n, size_t bytes,
                        const struct target *t)
{
    for (size_t i = 0; i < n; i++) {
        size_t to = t->next[at->part[i]]++;
        t->slot[to] = at->slot[i];
        memcpy(t->value + to * bytes, from + i * bytes, bytes);
    }
}

#if defined(SAR_AVX512)
/* Move elements of 4 bytes into few parts; n is a multiple of LANES_AVX512. */
SAR_AVX512 static void move4_wide(const struct slots_batch *at, const uint32_t *from, size_t n,
                                  const struct target *t)
{
    uint32_t *value = (uint32_t *)t->value;
    for (size_t i = 0; i < n; i += LANES_AVX512) {
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

static void move(const struct slots_batch *at, const unsigned char *from, size_t n, const struct target *t)
{
    if (t->bytes == 4 && n == CHUNK && t->parts <= FEW_PARTS && sar_has_avx512())
        move4_wide(at, (const uint32_t *)from, n, t);
    else if (t->bytes == 4)
        move_as(at, from, n, 4, t);
    else if (t->bytes == 8)
        move_as(at, from, n, 8, t);
    else
        move_as(at, from, n, t->bytes, t);
}

/* Increments of few counters depend on each other; comparisons do not. */
SAR_CLONES static void count_few(const uint32_t *part, size_t n, uint32_t parts, size_t *count)
{
    for (uint32_t p = 0; p < parts; p++) {
        uint32_t found = 0;
        for (size_t i = 0; i < n; i++)
            found += part[i] == p;
        count[p] += found;
    }
}

static void count_parts(const struct slots_batch *at, size_t n, uint32_t parts, size_t *count)
{
    if (parts <= FEW_PARTS) {
        count_few(at->part, n, parts, count);
        return;
    }
    for (size_t i = 0; i < n; i++)
        count[at->part[i]]++;
}

/* Counts elements [from, end) of a vec in each part, or moves them if `to` is not NULL. */
static void scan(const struct sar_partition_map *map, const struct sar_vec_desc *desc,
                 const struct sar_spvec *vec, size_t from, size_t end, size_t *count, const struct target *to)
{
    struct slots_batch at;
    for (size_t n; from < end; from += n) {
        n = end - from < CHUNK ? end - from : CHUNK;
        locate(map, desc, vec->index, from, n, &at);
        if (to != NULL)
            move(&at, (const unsigned char *)vec->value + from * to->bytes, n, to);
        else
            count_parts(&at, n, map->parts, count);
    }
}

/* A split whose ranges of elements are counted, and then moved, in parallel. */
struct split {
    const struct sar_partition_map *map;
    const struct sar_vec_desc *desc;
    const struct sar_spvec *vec, *memory;
    size_t pieces;
    size_t *next; /* map->parts for each piece: counts, then positions */
};

static enum sar_status count_piece(void *arg, size_t i)
{
    const struct split *s = arg;
    size_t n = s->vec->nnz;
    scan(s->map, s->desc, s->vec, sar_parallel_bound(n, CHUNK, s->pieces, i),
         sar_parallel_bound(n, CHUNK, s->pieces, i + 1), s->next + i * s->map->parts, NULL);
    return SAR_OK;
}

static enum sar_status move_piece(void *arg, size_t i)
{
    const struct split *s = arg;
    size_t n = s->vec->nnz;
    struct target to = { s->map->parts, s->desc->element_size, s->next + i * s->map->parts, s->memory->index,
                         s->memory->value };
    scan(s->map, s->desc, s->vec, sar_parallel_bound(n, CHUNK, s->pieces, i),
         sar_parallel_bound(n, CHUNK, s->pieces, i + 1), NULL, &to);
    return SAR_OK;
}

/* Lets the parts follow each other in memory, and in each part the pieces. */
static void place_parts(const struct split *s, struct sar_spvec parts[])
{
    size_t begin = 0, next = 0;
    for (uint32_t p = 0; p < s->map->parts; p++) {
        for (size_t i = 0; i < s->pieces; i++) {
            size_t *at = &s->next[i * s->map->parts + p], n = *at;
            *at = next;
            next += n;
        }
        parts[p] = (struct sar_spvec){ (uint32_t *)s->memory->index + begin,
                                       (unsigned char *)s->memory->value + begin * s->desc->element_size,
                                       next - begin };
        begin = next;
    }
}

enum sar_status sar_partition_into(const struct sar_partition_map *map, const struct sar_vec_desc *desc,
                                   const struct sar_spvec *vec, struct sar_arena *arena,
                                   const struct sar_spvec *memory, struct sar_spvec parts[])
{
    void *next;
    size_t pieces = sar_parallel_pieces(2 * vec->nnz * (desc->element_size + desc->index_size));
    struct split s = { map, desc, vec, memory, pieces, NULL };
    SAR_TRY(sar_arena_alloc_zeroed(arena, pieces * map->parts, sizeof *s.next, &next));
    s.next = next;
    SAR_TRY(sar_parallel_for(pieces, count_piece, &s));
    place_parts(&s, parts);
    return sar_parallel_for(pieces, move_piece, &s);
}

enum sar_status sar_partition_split(const struct sar_partition_map *map, const struct sar_vec_desc *desc,
                                    const struct sar_spvec *vec, struct sar_arena *arena,
                                    struct sar_spvec parts[])
{
    struct sar_spvec memory = { .nnz = vec->nnz };
    SAR_TRY(sar_arena_alloc(arena, vec->nnz, sizeof(uint32_t), &memory.index));
    SAR_TRY(sar_arena_alloc(arena, vec->nnz, desc->element_size, &memory.value));
    return sar_partition_into(map, desc, vec, arena, &memory, parts);
}

SAR_INLINE void restore_as(const struct sar_partition_map *map, uint32_t part, const uint32_t *slot, size_t n,
                           void *index, unsigned size)
{
    for (size_t i = 0; i < n; i++)
        sar_index_set(index, size, i, sar_partition_map_index(map, part, slot[i]));
}

SAR_CLONES static void index_hash(const struct sar_partition_map *map, uint32_t part, const uint32_t *slot,
                                  size_t n, uint32_t *index)
{
    struct sar_partition_map fixed = *map;
    fixed.kind = SAR_PARTITION_HASH;
    fixed.blocks_fit_32 = true;
    restore_as(&fixed, part, slot, n, index, 4);
}

enum sar_status sar_partition_restore_indices(const struct sar_partition_map *map,
                                              const struct sar_vec_desc *desc, uint32_t part,
                                              struct sar_arena *arena, struct sar_spvec *vec)
{
    void *index;
    SAR_TRY(sar_arena_alloc(arena, vec->nnz, desc->index_size, &index));
    if (map->kind == SAR_PARTITION_HASH && map->blocks_fit_32 && desc->index_size == 4)
        index_hash(map, part, vec->index, vec->nnz, index);
    else
        SAR_FOR_INDEX_SIZE(desc->index_size, restore_as(map, part, vec->index, vec->nnz, index, INDEX_SIZE));
    vec->index = index;
    return SAR_OK;
}

/* The remaining elements of a part, or the remaining capacity of the result. */
struct cursor {
    unsigned char *index, *value;
    size_t n;
};

/* The merge of a range of stripes. */
struct merge_state {
    const struct sar_partition_map *map;
    uint64_t from, end; /* stripes that contain all elements */
    struct cursor *parts;
    struct cursor out;
};

/* Slots [slot, slot + grain) of a part, and the index of the first. */
struct block {
    uint32_t slot, grain;
    uint64_t index;
};

SAR_INLINE void advance(struct cursor *cursor, size_t n, unsigned size, size_t bytes)
{
    cursor->index += n * size;
    cursor->value += n * bytes;
    cursor->n -= n;
}

/* Convert a batch of slots to indices; returns the number of slots in the block. */
SAR_INLINE size_t slots_to_indices(const struct block *b, const uint32_t *slot, void *index, unsigned size)
{
    uint32_t n = 0;
    for (size_t i = 0; i < BATCH; i++) {
        uint32_t offset = slot[i] - b->slot;
        sar_index_set(index, size, i, b->index + offset);
        n += offset < b->grain;
    }
    return n;
}

#if defined(SAR_AVX512)
SAR_AVX512 static inline size_t slots_to_indices_wide(const struct block *b, const uint32_t *slot,
                                                      uint32_t *index)
{
    __m256i slots = _mm256_loadu_si256((const __m256i *)slot);
    __m256i offset = _mm256_sub_epi32(slots, _mm256_set1_epi32((int)b->slot));
    __mmask8 inside = _mm256_cmplt_epu32_mask(offset, _mm256_set1_epi32((int)b->grain));
    _mm256_storeu_si256((__m256i *)index, _mm256_add_epi32(offset, _mm256_set1_epi32((int)b->index)));
    return (size_t)__builtin_popcount(inside);
}
#else
#define slots_to_indices_wide(b, slot, index) slots_to_indices(b, slot, index, 4)
#endif

/* Copy at most a batch of a block; the part or the result may end within the batch. */
SAR_INLINE size_t copy_few(const struct block *b, const struct cursor *part, const struct cursor *out,
                           unsigned size, size_t bytes)
{
    const uint32_t *slot = (const uint32_t *)part->index;
    size_t n = 0;
    for (; n < BATCH && n < part->n && slot[n] - b->slot < b->grain; n++)
        sar_index_set(out->index, size, n, b->index + (slot[n] - b->slot));
    if (n > 0)
        memcpy(out->value, part->value, n * bytes);
    return n;
}

SAR_INLINE void copy_block(const struct block *b, struct cursor *part, struct cursor *out, unsigned size,
                           size_t bytes, bool wide)
{
    size_t n;
    do {
        if (bytes > LARGEST || part->n < BATCH || out->n < BATCH) {
            n = copy_few(b, part, out, size, bytes);
        } else {
            const uint32_t *slot = (const uint32_t *)part->index;
            n = wide ? slots_to_indices_wide(b, slot, (uint32_t *)out->index)
                     : slots_to_indices(b, slot, out->index, size);
            memcpy(out->value, part->value, BATCH * bytes);
        }
        advance(part, n, sizeof(uint32_t), bytes);
        advance(out, n, size, bytes);
    } while (__builtin_expect(n == BATCH, 0));
}

SAR_INLINE void copy_stripes(struct merge_state *s, unsigned size, size_t bytes, bool wide)
{
    const struct sar_partition_map map = *s->map;
    struct cursor out = s->out;
    struct block b = { 0, 1u << map.grain_shift, s->from * map.parts << map.grain_shift };
    for (uint64_t stripe = s->from; stripe < s->end; stripe++) {
        uint32_t part = sar_partition_map_rotation(&map, stripe);
        b.slot = (uint32_t)((stripe << map.grain_shift) - map.slot_base);
        for (uint32_t i = 0; i < map.parts; i++, b.index += b.grain) {
            copy_block(&b, &s->parts[part], &out, size, bytes, wide);
            part = part + 1 < map.parts ? part + 1 : 0;
        }
    }
}

#if defined(SAR_AVX512)
SAR_AVX512 static void copy_stripes_wide(struct merge_state *s)
{
    copy_stripes(s, 4, 4, true);
}
#else
#define copy_stripes_wide(s) ((void)0)
#endif

static void copy_all(struct merge_state *s, unsigned size, size_t bytes)
{
    if (size == 4 && bytes == 4 && sar_has_avx512())
        copy_stripes_wide(s);
    else if (bytes == 4)
        SAR_FOR_INDEX_SIZE(size, copy_stripes(s, INDEX_SIZE, 4, false));
    else if (bytes == 8)
        SAR_FOR_INDEX_SIZE(size, copy_stripes(s, INDEX_SIZE, 8, false));
    else
        copy_stripes(s, size, bytes, false);
}

/* Finds the stripes of all parts, and the number of elements. */
static void find_stripes(struct merge_state *s, const struct sar_spvec parts[])
{
    const struct sar_partition_map *map = s->map;
    s->from = UINT64_MAX;
    for (uint32_t p = 0; p < map->parts; p++) {
        const uint32_t *slot = parts[p].index;
        size_t nnz = parts[p].nnz;
        if (nnz == 0)
            continue;
        uint64_t first = (slot[0] + map->slot_base) >> map->grain_shift;
        uint64_t last = (slot[nnz - 1] + map->slot_base) >> map->grain_shift;
        s->from = first < s->from ? first : s->from;
        s->end = last >= s->end ? last + 1 : s->end;
        s->out.n += nnz;
    }
}

/* Reduce the parts as unrelated vecs. */
static enum sar_status merge_any(const struct sar_partition_map *map, const struct sar_vec_desc *desc,
                                 const struct sar_spvec parts[], struct sar_arena *arena,
                                 struct sar_spvec *out)
{
    void *memory;
    struct sar_vec_desc union_desc = *desc;
    union_desc.absent_is_zero = false;
    SAR_TRY(sar_arena_alloc(arena, map->parts, sizeof *parts, &memory));
    struct sar_spvec *vecs = memory;
    memcpy(vecs, parts, map->parts * sizeof *parts);
    for (uint32_t p = 0; p < map->parts; p++)
        SAR_TRY(sar_partition_restore_indices(map, desc, p, arena, &vecs[p]));
    return sar_reduce(&union_desc, vecs, map->parts, arena, out);
}

/* A merge whose ranges of stripes are copied in parallel. */
struct merge {
    struct merge_state all;
    const struct sar_vec_desc *desc;
    const struct sar_spvec *parts;
    size_t pieces;
    struct cursor *cursors; /* map->parts for each piece */
};

/* Returns the first element of a part at or after a stripe. */
static size_t begin_of(const struct merge *m, uint32_t part, uint64_t stripe)
{
    const struct sar_partition_map *map = m->all.map;
    uint64_t slot = (stripe << map->grain_shift) - map->slot_base;
    size_t nnz = m->parts[part].nnz;
    return stripe == m->all.end ? nnz
                                : sar_index_lower_bound(m->parts[part].index, sizeof(uint32_t), 0, nnz, slot);
}

static enum sar_status merge_piece(void *arg, size_t i)
{
    const struct merge *m = arg;
    unsigned size = m->desc->index_size;
    size_t bytes = m->desc->element_size, before = 0;
    struct merge_state s = m->all;
    uint64_t stripes = s.end - s.from;
    s.end = s.from + sar_parallel_bound(stripes, 1, m->pieces, i + 1);
    s.from += sar_parallel_bound(stripes, 1, m->pieces, i);
    s.parts = m->cursors + i * s.map->parts;
    s.out.n = 0;
    for (uint32_t p = 0; p < s.map->parts; p++) {
        s.parts[p] = (struct cursor){ NULL, NULL, 0 };
        if (m->parts[p].nnz == 0)
            continue;
        size_t begin = begin_of(m, p, s.from), n = begin_of(m, p, s.end) - begin;
        s.parts[p] = (struct cursor){ (unsigned char *)m->parts[p].index + begin * sizeof(uint32_t),
                                      (unsigned char *)m->parts[p].value + begin * bytes, n };
        before += begin;
        s.out.n += n;
    }
    s.out.index += before * size;
    s.out.value += before * bytes;
    copy_all(&s, size, bytes);
    return SAR_OK;
}

enum sar_status sar_partition_merge(const struct sar_partition_map *map, const struct sar_vec_desc *desc,
                                    const struct sar_spvec parts[], struct sar_arena *arena,
                                    struct sar_spvec *out)
{
    struct merge m = { { .map = map, .out = { out->index, out->value, 0 } }, desc, parts, 1, NULL };
    void *cursors;
    find_stripes(&m.all, parts);
    size_t nnz = out->nnz = m.all.out.n;
    if (nnz == 0)
        return SAR_OK;
    if (!sar_partition_merges_by_block(map, m.all.end - m.all.from, nnz))
        return merge_any(map, desc, parts, arena, out);
    m.pieces = sar_parallel_steps(2 * nnz * (desc->element_size + desc->index_size),
                                  map->parts * SAR_MERGE_STEP_BYTES);
    SAR_TRY(sar_arena_alloc(arena, m.pieces * map->parts, sizeof *m.cursors, &cursors));
    m.cursors = cursors;
    return sar_parallel_for(m.pieces, merge_piece, &m);
}
