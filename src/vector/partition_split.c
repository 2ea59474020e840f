/* SPDX-License-Identifier: BSD-3-Clause */
/* Split by a partition map: a stable counting sort by part, the host's fast path for Algorithm 1. It locates
 * all elements twice, to count the parts and to move the elements. That is faster than storing all slots and
 * reading them again. Parts that fit a byte are stored, so that elements are hashed once.
 *
 * Elements of one block, a run, go to one part, where their slots follow each other at a constant difference
 * from their indices. Where blocks have some elements, runs are located and moved, some elements at a time;
 * the next run overwrites any excess. Otherwise elements are located and moved one by one, or, into few
 * parts, by comparisons of whole SIMD vectors.
 *
 *     time = two passes over the indices, one over the values;
 *            1.5 to 3 ns for an element with AVX-512, 2 to 4.5 without */

#include "vector/partition.h"

#include <string.h>
#if defined(SAR_AVX512)
#include <immintrin.h>
#endif

#include "base/parallel.h"
#include "vector/partition_locate.h"
#include "vector/pieces.h"

enum {
    CHUNK = SAR_LOCATE_BATCH,
    FEW_PARTS = 8,           /* parts up to which SIMD comparisons count and move */
    LANES_AVX512 = 16,       /* slots in a vector of AVX-512 */
    BATCH = 8,               /* elements of a run moved at a time */
    RUN_ELEMENTS = 8,        /* elements for four blocks from which on runs are faster */
    RUN_ELEMENTS_AVX512 = 5, /* the same, of runs located in vectors */
    FEW_RUN_ELEMENTS = 16    /* the same, of few parts */
};

/* Where elements are moved to. */
struct target {
    uint32_t parts;
    size_t bytes;      /* of an element */
    size_t *next;      /* position of the next element of each part */
    const size_t *end; /* position after the last of each part */
    uint32_t *slot;
    unsigned char *value;
};

SAR_INLINE void move_as(const struct sar_slots_batch *at, const unsigned char *from, size_t n, size_t bytes,
                        const struct target *t)
{
    size_t *restrict next = t->next;
    uint32_t *restrict slot = t->slot;
    unsigned char *restrict value = t->value;
    for (size_t i = 0; i < n; i++) {
        size_t to = next[at->part[i]]++;
        slot[to] = at->slot[i];
        memcpy(value + to * bytes, from + i * bytes, bytes);
    }
}

#if defined(SAR_AVX512)
/* Move elements of 4 bytes into few parts; n is a multiple of LANES_AVX512. */
SAR_AVX512 static void move4_wide(const struct sar_slots_batch *at, const uint32_t *from, size_t n,
                                  const struct target *t)
{
    uint32_t *value = (uint32_t *)t->value;
    for (size_t i = 0; i < n; i += LANES_AVX512) {
        __m512i part = _mm512_loadu_si512(at->part + i), slots = _mm512_loadu_si512(at->slot + i);
        __m512i values = _mm512_loadu_si512(from + i);
        for (uint32_t p = 0; p < t->parts; p++) {
            __mmask16 here = _mm512_cmpeq_epi32_mask(part, _mm512_set1_epi32((int)p));
            unsigned found = (unsigned)__builtin_popcount(sar_mask_bits(here));
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

static void move(const struct sar_slots_batch *at, const unsigned char *from, size_t n,
                 const struct target *t)
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

static void count_parts(const struct sar_slots_batch *at, size_t n, uint32_t parts, size_t *count)
{
    if (parts <= FEW_PARTS) {
        count_few(at->part, n, parts, count);
        return;
    }
    for (size_t i = 0; i < n; i++)
        count[at->part[i]]++;
}

/* Moves up to BATCH elements. */
SAR_INLINE void move_batch(const uint32_t *restrict index, const unsigned char *restrict value,
                           uint32_t to_slot, size_t n, size_t bytes, uint32_t *restrict slot,
                           unsigned char *restrict to)
{
    for (size_t i = 0; i < n; i++)
        slot[i] = index[i] + to_slot;
    memcpy(to, value, n * bytes);
}

/* Moves the elements of runs. Batches are whole if neither the vec nor the part's memory ends within. */
SAR_INLINE void move_runs_as(const struct sar_runs_batch *runs, const uint32_t *index,
                             const unsigned char *value, size_t readable, size_t bytes, bool batches,
                             const struct target *t)
{
    const struct target to = *t;
    for (size_t r = 0; r < runs->n; r++) {
        uint32_t part = runs->part[r], to_slot = runs->to_slot[r];
        size_t from = runs->start[r], end = runs->start[r + 1], next = to.next[part], limit = to.end[part];
        to.next[part] = next + (end - from);
        do {
            size_t n = end - from;
            if (__builtin_expect(batches && from + BATCH <= readable && next + BATCH <= limit, 1))
                move_batch(index + from, value + from * bytes, to_slot, n = BATCH, bytes, to.slot + next,
                           to.value + next * bytes);
            else
                move_batch(index + from, value + from * bytes, to_slot, n, bytes, to.slot + next,
                           to.value + next * bytes);
            from += n;
            next += n;
        } while (__builtin_expect(from < end, 0));
    }
}

/* `readable` elements of the vec can be read. */
SAR_CLONES static void move_runs(const struct sar_runs_batch *runs, const uint32_t *index,
                                 const unsigned char *value, size_t readable, const struct target *t)
{
    if (t->bytes == 4)
        move_runs_as(runs, index, value, readable, 4, true, t);
    else if (t->bytes == 8)
        move_runs_as(runs, index, value, readable, 8, true, t);
    else
        move_runs_as(runs, index, value, readable, t->bytes, false, t);
}

static void count_runs(const struct sar_runs_batch *runs, size_t *count)
{
    for (size_t r = 0; r < runs->n; r++)
        count[runs->part[r]] += runs->start[r + 1] - runs->start[r];
}

/* A split whose ranges of elements are counted, and then moved, in parallel. */
struct split {
    const struct sar_partition_map *map;
    const struct sar_vec_desc *desc;
    const struct sar_spvec *vec, *memory;
    bool by_runs;
    uint8_t *stored; /* part of each element, or NULL */
    size_t pieces;
    size_t stride; /* from a piece to the next, in these arrays: */
    size_t *next;  /* of each part in a piece: counts, then positions */
    size_t *end;   /* likewise: positions after the last elements */
};

/* Counts elements [from, end) in each part, or moves them if `to` is not NULL. */
static void scan_elements(const struct split *s, size_t from, size_t end, size_t *count,
                          const struct target *to)
{
    struct sar_slots_batch at;
    for (size_t n; from < end; from += n) {
        n = end - from < CHUNK ? end - from : CHUNK;
        if (to != NULL && s->stored != NULL)
            sar_locate_stored_parts(s->map, s->vec->index, s->stored + from, from, n, &at);
        else
            sar_locate_slots(s->map, s->desc, s->vec->index, from, n, &at);
        if (to == NULL && s->stored != NULL)
            sar_locate_store_parts(&at, n, s->stored + from);
        if (to != NULL)
            move(&at, (const unsigned char *)s->vec->value + from * to->bytes, n, to);
        else
            count_parts(&at, n, s->map->parts, count);
    }
}

/* As scan_elements, run by run. */
static void scan_runs(const struct split *s, size_t from, size_t end, size_t *count, const struct target *to)
{
    struct sar_runs_batch runs;
    for (size_t n; from < end; from += n) {
        const uint32_t *index = (const uint32_t *)s->vec->index + from;
        n = end - from < CHUNK ? end - from : CHUNK;
        sar_locate_runs(s->map, index, n, &runs);
        if (to != NULL)
            move_runs(&runs, index, (const unsigned char *)s->vec->value + from * to->bytes,
                      s->vec->nnz - from, to);
        else
            count_runs(&runs, count);
    }
}

static void scan(const struct split *s, size_t i, size_t *count, const struct target *to)
{
    size_t from = sar_parallel_bound(s->vec->nnz, CHUNK, s->pieces, i),
           end = sar_parallel_bound(s->vec->nnz, CHUNK, s->pieces, i + 1);
    if (s->by_runs)
        scan_runs(s, from, end, count, to);
    else
        scan_elements(s, from, end, count, to);
}

static enum sar_status count_piece(void *arg, size_t i)
{
    const struct split *s = arg;
    scan(s, i, s->next + i * s->stride, NULL);
    return SAR_OK;
}

static enum sar_status move_piece(void *arg, size_t i)
{
    const struct split *s = arg;
    struct target to = { .parts = s->map->parts,
                         .bytes = s->desc->element_size,
                         .next = s->next + i * s->stride,
                         .end = s->end + i * s->stride,
                         .slot = s->memory->index,
                         .value = s->memory->value };
    scan(s, i, NULL, &to);
    return SAR_OK;
}

/* Lets the parts follow each other in memory, and in each part the pieces. */
static void place_parts(const struct split *s, struct sar_spvec parts[])
{
    size_t begin = 0, next = 0;
    for (uint32_t p = 0; p < s->map->parts; p++) {
        for (size_t i = 0; i < s->pieces; i++) {
            size_t at = i * s->stride + p, n = s->next[at];
            s->next[at] = next;
            next += n;
            s->end[at] = next;
        }
        parts[p] = (struct sar_spvec){ (uint32_t *)s->memory->index + begin,
                                       (unsigned char *)s->memory->value + begin * s->desc->element_size,
                                       next - begin };
        begin = next;
    }
}

/* Runs need blocks and slots of 32 bits. */
uint64_t sar_partition_run_blocks(const struct sar_partition_map *map, const struct sar_vec_desc *desc,
                                  const struct sar_spvec *vec)
{
    if (!map->blocks_fit_32 || map->parts < 2 || desc->index_size != 4 || map->kind == SAR_PARTITION_RANGE ||
        vec->nnz == 0)
        return 0;
    const uint32_t *index = vec->index;
    uint64_t blocks =
        (index[vec->nnz - 1] >> map->grain_shift) - (index[0] >> map->grain_shift) + UINT64_C(1);
    uint64_t least = map->parts <= FEW_PARTS ? FEW_RUN_ELEMENTS
                     : sar_has_avx512()      ? RUN_ELEMENTS_AVX512
                                             : RUN_ELEMENTS;
    return blocks <= 4 * (uint64_t)vec->nnz / least ? blocks : 0;
}

enum sar_status sar_partition_into(const struct sar_partition_map *map, const struct sar_vec_desc *desc,
                                   const struct sar_spvec *vec, struct sar_arena *arena,
                                   const struct sar_spvec *memory, struct sar_spvec parts[])
{
    void *next, *end, *stored = NULL;
    struct split s = { .map = map, .desc = desc, .vec = vec, .memory = memory };
    s.by_runs = sar_partition_run_blocks(map, desc, vec) != 0;
    s.pieces = sar_parallel_pieces(2 * vec->nnz * (desc->element_size + desc->index_size));
    s.stride = sar_row_stride(map->parts, sizeof *s.next);
    SAR_TRY(sar_arena_alloc_zeroed(arena, s.pieces * s.stride, sizeof *s.next, &next));
    SAR_TRY(sar_arena_alloc(arena, s.pieces * s.stride, sizeof *s.end, &end));
    if (!s.by_runs && sar_locate_stores_parts(map, desc))
        SAR_TRY(sar_arena_alloc(arena, vec->nnz, sizeof *s.stored, &stored));
    s.next = next;
    s.end = end;
    s.stored = stored;
    SAR_TRY(sar_parallel_for(s.pieces, count_piece, &s));
    place_parts(&s, parts);
    return sar_parallel_for(s.pieces, move_piece, &s);
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
