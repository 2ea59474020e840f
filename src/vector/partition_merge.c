/* SPDX-License-Identifier: BSD-3-Clause */
/* Merge of the parts of a partition map: visits the blocks of the vector in order. Each block takes the next
 * elements of its part, whose indices and slots have a constant difference. A block seldom needs a second
 * batch, and the next block overwrites any excess, so no branch mispredicts. For too many blocks it calls
 * sar_reduce_disjoint.
 *
 *     time = blocks + elements, each below 1 ns for floats */

#include "vector/partition.h"

#include <string.h>
#if defined(SAR_AVX2)
#include <immintrin.h>
#endif

#include "base/parallel.h"
#include "vector/pieces.h"
#include "vector/reduce.h"

enum {
    BATCH = 8,  /* elements of a block copied at a time */
    LANES = 16, /* the same with AVX-512 */
    FEW = 4,    /* mean elements of a block from which on AVX-512 copies LANES at a time … */
    SOME = 12,  /* … and from which on twice as many */
    LARGEST = 8 /* most bytes of an element that is copied in batches */
};

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

/* Slots and indices of a block, or of a contiguous part, have a constant difference. */
void sar_partition_slots_to_indices(const struct sar_partition_map *map, uint32_t part, const void *slots,
                                    unsigned slot_size, size_t n, void *index, unsigned index_size)
{
    uint64_t end = 0, to_index = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t slot = sar_index_get(slots, slot_size, i);
        if (slot >= end) {
            to_index = sar_partition_map_index(map, part, slot) - slot;
            end = map->kind == SAR_PARTITION_RANGE ? UINT64_MAX : slot - slot % map->grain + map->grain;
        }
        sar_index_set(index, index_size, i, slot + to_index);
    }
}

/* The remaining elements of a part, or the remaining capacity of the result. */
struct cursor {
    unsigned char *index, *value;
    const unsigned char *end; /* of the indices */
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

SAR_INLINE size_t left(const struct cursor *cursor, unsigned size)
{
    return (size_t)(cursor->end - cursor->index) / size;
}

SAR_INLINE void advance(struct cursor *cursor, size_t n, unsigned size, size_t bytes)
{
    cursor->index += n * size;
    cursor->value += n * bytes;
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

#if defined(SAR_AVX2)
/* An offset is inside if the lesser of it and the last offset is it. */
SAR_AVX2 static inline size_t slots_to_indices_wide(const struct block *b, const uint32_t *slot,
                                                    uint32_t *index)
{
    __m256i slots = _mm256_loadu_si256((const __m256i *)slot);
    __m256i offset = _mm256_sub_epi32(slots, _mm256_set1_epi32((int)b->slot));
    __m256i least = _mm256_min_epu32(offset, _mm256_set1_epi32((int)(b->grain - 1)));
    __m256 inside = _mm256_castsi256_ps(_mm256_cmpeq_epi32(least, offset));
    _mm256_storeu_si256((__m256i *)index, _mm256_add_epi32(offset, _mm256_set1_epi32((int)b->index)));
    return (size_t)__builtin_popcount((unsigned)_mm256_movemask_ps(inside));
}
#else
#define slots_to_indices_wide(b, slot, index) slots_to_indices(b, slot, index, 4)
#endif

/* Copy at most a batch of a block; the part or the result may end within the batch. */
SAR_INLINE size_t copy_few(const struct block *b, const struct cursor *part, const struct cursor *out,
                           unsigned size, size_t bytes)
{
    const uint32_t *slot = (const uint32_t *)part->index;
    size_t n = 0, most = left(part, sizeof *slot);
    for (; n < BATCH && n < most && slot[n] - b->slot < b->grain; n++)
        sar_index_set(out->index, size, n, b->index + (slot[n] - b->slot));
    if (n > 0)
        memcpy(out->value, part->value, n * bytes);
    return n;
}

/* How blocks are copied. `checked`: a part or the result may end within a batch. */
struct batching {
    bool wide, checked;
    size_t lanes; /* elements at a time with AVX-512, or 0 */
};

SAR_INLINE bool too_few(const struct cursor *part, const struct cursor *out, unsigned size, size_t batch)
{
    return left(part, sizeof(uint32_t)) < batch || left(out, size) < batch;
}

SAR_INLINE void copy_block(const struct block *b, struct cursor *part, struct cursor *out, unsigned size,
                           size_t bytes, struct batching how)
{
    size_t n;
    do {
        if (bytes > LARGEST || (how.checked && too_few(part, out, size, BATCH))) {
            n = copy_few(b, part, out, size, bytes);
        } else {
            const uint32_t *slot = (const uint32_t *)part->index;
            n = how.wide ? slots_to_indices_wide(b, slot, (uint32_t *)out->index)
                         : slots_to_indices(b, slot, out->index, size);
            memcpy(out->value, part->value, BATCH * bytes);
        }
        advance(part, n, sizeof(uint32_t), bytes);
        advance(out, n, size, bytes);
    } while (__builtin_expect(n == BATCH, 0));
}

#if defined(SAR_AVX512)
/* The offsets of LANES slots in a block, and the lanes that are inside. */
SAR_AVX512 static inline __m512i offsets_of(const struct block *b, const unsigned char *slots,
                                            __mmask16 *inside)
{
    __m512i offset = _mm512_sub_epi32(_mm512_loadu_si512(slots), _mm512_set1_epi32((int)b->slot));
    *inside = _mm512_cmplt_epu32_mask(offset, _mm512_set1_epi32((int)b->grain));
    return offset;
}

/* Writes LANES elements to a result from element `at` on. */
SAR_AVX512 static inline void store_lanes(const struct block *b, const struct cursor *part,
                                          const struct cursor *out, size_t at, __m512i offset, size_t bytes)
{
    __m512i index = _mm512_add_epi32(offset, _mm512_set1_epi32((int)b->index));
    _mm512_storeu_si512(out->index + at * 4, index);
    memcpy(out->value + at * bytes, part->value + at * bytes, LANES * bytes);
}

/* As copy_block with 16 or 32 elements at a time. No comparison waits for another. The second 16 are stored
 * only if the block has more than 16: on Zen 4 a store of 64 bytes takes longer than a comparison. */
SAR_AVX512 static inline void copy_block_lanes(const struct block *b, struct cursor *part, struct cursor *out,
                                               size_t bytes, struct batching how)
{
    size_t n;
    do {
        if (how.checked && too_few(part, out, 4, how.lanes)) {
            copy_block(b, part, out, 4, bytes, how);
            return;
        }
        __mmask16 inside, inside2 = 0;
        __m512i offset = offsets_of(b, part->index, &inside), offset2 = offset;
        if (how.lanes > LANES)
            offset2 = offsets_of(b, part->index + LANES * 4, &inside2);
        n = (size_t)__builtin_popcount(sar_mask_bits(inside) | sar_mask_bits(inside2) << LANES);
        store_lanes(b, part, out, 0, offset, bytes);
        if (n > LANES)
            store_lanes(b, part, out, LANES, offset2, bytes);
        advance(part, n, sizeof(uint32_t), bytes);
        advance(out, n, 4, bytes);
    } while (__builtin_expect(n == how.lanes, 0));
}
#else
#define copy_block_lanes(b, part, out, bytes, how) copy_block(b, part, out, 4, bytes, how)
#endif

/* Copies stripes s->from up to `end`. */
SAR_INLINE void copy_stripes(struct merge_state *s, uint64_t end, unsigned size, size_t bytes,
                             struct batching how)
{
    const struct sar_partition_map map = *s->map;
    struct cursor out = s->out;
    struct block b = { 0, 1u << map.grain_shift, s->from * map.parts << map.grain_shift };
    for (uint64_t stripe = s->from; stripe < end; stripe++) {
        uint32_t part = sar_partition_map_rotation(&map, stripe);
        b.slot = (uint32_t)((stripe << map.grain_shift) - map.slot_base);
        for (uint32_t i = 0; i < map.parts; i++, b.index += b.grain) {
            struct cursor from = s->parts[part];
            if (how.lanes)
                copy_block_lanes(&b, &from, &out, bytes, how);
            else
                copy_block(&b, &from, &out, size, bytes, how);
            s->parts[part].index = from.index;
            s->parts[part].value = from.value;
            part = part + 1 < map.parts ? part + 1 : 0;
        }
    }
    s->from = end;
    s->out = out;
}

/* Returns the end of the stripes in which no part ends within a batch. */
static uint64_t unchecked_end(const struct merge_state *s, size_t batch)
{
    const struct sar_partition_map *map = s->map;
    uint64_t end = s->end;
    for (uint32_t p = 0; p < map->parts; p++) {
        size_t n = left(&s->parts[p], sizeof(uint32_t));
        if (n < batch)
            return s->from;
        uint64_t slot = ((const uint32_t *)s->parts[p].index)[n - batch];
        uint64_t stripe = (slot + map->slot_base) >> map->grain_shift;
        end = stripe < end ? stripe : end;
    }
    return end;
}

/* A copy of the loop for each size and batch: as variables they would cost as much as the copy. */
SAR_INLINE void copy_batches(struct merge_state *s, size_t bytes, size_t lanes)
{
    struct batching how = { true, false, lanes };
    copy_stripes(s, unchecked_end(s, lanes ? lanes : BATCH), 4, bytes, how);
    how.checked = true;
    copy_stripes(s, s->end, 4, bytes, how);
}

#if defined(SAR_AVX2)
SAR_AVX2 static void copy_all_wide(struct merge_state *s, size_t bytes)
{
    if (bytes == 4)
        copy_batches(s, 4, 0);
    else
        copy_batches(s, 8, 0);
}
#else
#define copy_all_wide(s, bytes) ((void)0)
#endif

#if defined(SAR_AVX512)
SAR_AVX512 static void copy_all_lanes(struct merge_state *s, size_t bytes, size_t lanes)
{
    if (bytes == 4 && lanes == LANES)
        copy_batches(s, 4, LANES);
    else if (bytes == 4)
        copy_batches(s, 4, 2 * LANES);
    else if (lanes == LANES)
        copy_batches(s, 8, LANES);
    else
        copy_batches(s, 8, 2 * LANES);
}
#else
#define copy_all_lanes(s, bytes, lanes) copy_all_wide(s, bytes)
#endif

/* Returns the elements of a block that are copied at a time with AVX-512, or 0. */
static size_t lanes_of(const struct merge_state *s)
{
    uint64_t blocks = (s->end - s->from) * s->map->parts;
    size_t elements = left(&s->out, 4);
    if (!sar_has_avx512() || elements < FEW * blocks)
        return 0;
    return elements < SOME * blocks ? LANES : 2 * LANES;
}

static void copy_all(struct merge_state *s, unsigned size, size_t bytes)
{
    const struct batching checked = { .checked = true };
    size_t lanes = size == 4 && (bytes == 4 || bytes == 8) ? lanes_of(s) : 0;
    if (lanes > 0)
        copy_all_lanes(s, bytes, lanes);
    else if (size == 4 && (bytes == 4 || bytes == 8) && sar_has_avx2())
        copy_all_wide(s, bytes);
    else if (bytes == 4)
        SAR_FOR_INDEX_SIZE(size, copy_stripes(s, s->end, INDEX_SIZE, 4, checked));
    else if (bytes == 8)
        SAR_FOR_INDEX_SIZE(size, copy_stripes(s, s->end, INDEX_SIZE, 8, checked));
    else
        copy_stripes(s, s->end, size, bytes, checked);
}

/* Finds the stripes of all parts. Returns the number of elements. */
static size_t find_stripes(struct merge_state *s, const struct sar_spvec parts[])
{
    const struct sar_partition_map *map = s->map;
    size_t elements = 0;
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
        elements += nnz;
    }
    return elements;
}

/* Parts whose slots become indices, some parts in each piece. */
struct restore {
    const struct sar_partition_map *map;
    const struct sar_vec_desc *desc;
    struct sar_arena *arena;
    size_t pieces;
    struct sar_spvec *parts;
};

static enum sar_status restore_piece(void *arg, size_t i)
{
    const struct restore *r = arg;
    size_t end = sar_parallel_bound(r->map->parts, 1, r->pieces, i + 1);
    for (size_t p = sar_parallel_bound(r->map->parts, 1, r->pieces, i); p < end; p++)
        SAR_TRY(sar_partition_restore_indices(r->map, r->desc, (uint32_t)p, r->arena, &r->parts[p]));
    return SAR_OK;
}

/* Merge the parts, of nnz elements in all, as unrelated vecs. */
static enum sar_status merge_any(const struct sar_partition_map *map, const struct sar_vec_desc *desc,
                                 const struct sar_spvec parts[], size_t nnz, struct sar_arena *arena,
                                 struct sar_spvec *out)
{
    struct restore r = { map, desc, arena, sar_parallel_pieces(2 * nnz * desc->index_size), NULL };
    void *memory;
    struct sar_vec_desc union_desc = *desc;
    union_desc.absent_is_zero = false;
    SAR_TRY(sar_arena_alloc(arena, map->parts, sizeof *parts, &memory));
    r.parts = memory;
    memcpy(r.parts, parts, map->parts * sizeof *parts);
    SAR_TRY(sar_parallel_for(r.pieces, restore_piece, &r));
    return sar_reduce_disjoint(&union_desc, r.parts, map->parts, arena, out);
}

/* A merge whose ranges of stripes are copied in parallel. */
struct merge {
    struct merge_state all;
    const struct sar_vec_desc *desc;
    const struct sar_spvec *parts;
    size_t pieces;
    struct cursor *cursors; /* of each part in a piece */
    size_t stride;          /* from a piece to the next */
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
    size_t bytes = m->desc->element_size, before = 0, elements = 0;
    struct merge_state s = m->all;
    uint64_t stripes = s.end - s.from;
    s.end = s.from + sar_parallel_bound(stripes, 1, m->pieces, i + 1);
    s.from += sar_parallel_bound(stripes, 1, m->pieces, i);
    s.parts = m->cursors + i * m->stride;
    for (uint32_t p = 0; p < s.map->parts; p++) {
        s.parts[p] = (struct cursor){ NULL, NULL, NULL };
        if (m->parts[p].nnz == 0)
            continue;
        size_t begin = begin_of(m, p, s.from), n = begin_of(m, p, s.end) - begin;
        unsigned char *slots = (unsigned char *)m->parts[p].index + begin * sizeof(uint32_t);
        s.parts[p] = (struct cursor){ slots, (unsigned char *)m->parts[p].value + begin * bytes,
                                      slots + n * sizeof(uint32_t) };
        before += begin;
        elements += n;
    }
    s.out.index += before * size;
    s.out.value += before * bytes;
    s.out.end = s.out.index + elements * size;
    copy_all(&s, size, bytes);
    return SAR_OK;
}

enum sar_status sar_partition_merge(const struct sar_partition_map *map, const struct sar_vec_desc *desc,
                                    const struct sar_spvec parts[], struct sar_arena *arena,
                                    struct sar_spvec *out)
{
    struct merge m = { { .map = map, .out = { out->index, out->value, NULL } }, desc, parts, 1, NULL, 0 };
    void *cursors;
    size_t nnz = out->nnz = find_stripes(&m.all, parts);
    if (nnz == 0)
        return SAR_OK;
    if (!sar_partition_merges_by_block(map, m.all.end - m.all.from, nnz))
        return merge_any(map, desc, parts, nnz, arena, out);
    m.pieces = sar_parallel_steps(2 * nnz * (desc->element_size + desc->index_size),
                                  map->parts * SAR_MERGE_STEP_BYTES);
    m.stride = sar_row_stride(map->parts, sizeof *m.cursors);
    SAR_TRY(sar_arena_alloc(arena, m.pieces * m.stride, sizeof *m.cursors, &cursors));
    m.cursors = cursors;
    return sar_parallel_for(m.pieces, merge_piece, &m);
}
