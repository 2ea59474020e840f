/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of a map put together: the blocks of the vector are gone through in order, and each takes the
 * next elements of its part, whose indices differ from their slots by one number. So many as a block has
 * seldom are copied at a time, without a branch that cannot be foreseen: what is too much is written over by
 * the next block. Where blocks are far more than elements, these are put together as any runs.
 *
 *     time = blocks + elements, each below 1 ns for floats */

#include "tensor/assemble.h"

#include <string.h>
#if defined(SAR_WIDE)
#include <immintrin.h>
#endif

#include "tensor/partition.h"
#include "tensor/reduce.h"

enum {
    BATCH = 8,  /* elements copied at a time */
    LARGEST = 8 /* bytes of such */
};

/* Elements to come, and where they stand or go. */
struct rest {
    unsigned char *index, *value;
    size_t n;
};

struct seam {
    const struct sar_map *map;
    uint64_t from, end; /* lines that have elements */
    struct rest *parts;
    struct rest out;
};

/* `grain` slots from `slot` on, and the index of the first. */
struct block {
    uint32_t slot, grain;
    uint64_t index;
};

SAR_INLINE void advance(struct rest *rest, size_t n, unsigned size, size_t bytes)
{
    rest->index += n * size;
    rest->value += n * bytes;
    rest->n -= n;
}

/* Turn a batch of slots into indices; returns how many of them are in the block. */
SAR_INLINE size_t turn_batch(const struct block *b, const uint32_t *slot, void *index, unsigned size)
{
    uint32_t n = 0;
    for (size_t i = 0; i < BATCH; i++) {
        uint32_t offset = slot[i] - b->slot;
        sar_index_set(index, size, i, b->index + offset);
        n += offset < b->grain;
    }
    return n;
}

#if defined(SAR_WIDE)
SAR_WIDE static inline size_t turn_batch_wide(const struct block *b, const uint32_t *slot, uint32_t *index)
{
    __m256i slots = _mm256_loadu_si256((const __m256i *)slot);
    __m256i offset = _mm256_sub_epi32(slots, _mm256_set1_epi32((int)b->slot));
    __mmask8 inside = _mm256_cmplt_epu32_mask(offset, _mm256_set1_epi32((int)b->grain));
    _mm256_storeu_si256((__m256i *)index, _mm256_add_epi32(offset, _mm256_set1_epi32((int)b->index)));
    return (size_t)__builtin_popcount(inside);
}
#else
#define turn_batch_wide(b, slot, index) turn_batch(b, slot, index, 4)
#endif

/* Copy what a part has in a block, up to a batch, where there may be fewer or no room for more. */
SAR_INLINE size_t copy_few(const struct block *b, const struct rest *part, const struct rest *out,
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

SAR_INLINE void take_block(const struct block *b, struct rest *part, struct rest *out, unsigned size,
                           size_t bytes, bool wide)
{
    size_t n;
    do {
        if (bytes > LARGEST || part->n < BATCH || out->n < BATCH) {
            n = copy_few(b, part, out, size, bytes);
        } else {
            const uint32_t *slot = (const uint32_t *)part->index;
            n = wide ? turn_batch_wide(b, slot, (uint32_t *)out->index)
                     : turn_batch(b, slot, out->index, size);
            memcpy(out->value, part->value, BATCH * bytes);
        }
        advance(part, n, sizeof(uint32_t), bytes);
        advance(out, n, size, bytes);
    } while (__builtin_expect(n == BATCH, 0));
}

SAR_INLINE void take_lines(struct seam *s, unsigned size, size_t bytes, bool wide)
{
    const struct sar_map map = *s->map;
    struct rest out = s->out;
    struct block b = { 0, 1u << map.grain_shift, s->from * map.parts << map.grain_shift };
    for (uint64_t line = s->from; line < s->end; line++) {
        uint32_t part = sar_map_turn(&map, line);
        b.slot = (uint32_t)((line << map.grain_shift) - map.base);
        for (uint32_t i = 0; i < map.parts; i++, b.index += b.grain) {
            take_block(&b, &s->parts[part], &out, size, bytes, wide);
            part = part + 1 < map.parts ? part + 1 : 0;
        }
    }
}

#if defined(SAR_WIDE)
SAR_WIDE static void take_words_wide(struct seam *s)
{
    take_lines(s, 4, 4, true);
}
#else
#define take_words_wide(s) ((void)0)
#endif

static void take_any(struct seam *s, unsigned size, size_t bytes)
{
    if (size == 4 && bytes == 4 && sar_is_wide())
        take_words_wide(s);
    else if (bytes == 4)
        SAR_FOR_INDEX_SIZE(size, take_lines(s, INDEX_SIZE, 4, false));
    else if (bytes == 8)
        SAR_FOR_INDEX_SIZE(size, take_lines(s, INDEX_SIZE, 8, false));
    else
        take_lines(s, size, bytes, false);
}

/* All parts from their beginning, the lines that have elements, and room for all of these. */
static enum sar_status open_seam(struct seam *s, const struct sar_run parts[], struct sar_arena *arena)
{
    const struct sar_map *map = s->map;
    void *taken;
    SAR_TRY(sar_arena_take(arena, map->parts, sizeof *s->parts, &taken));
    s->parts = taken;
    s->from = UINT64_MAX;
    for (uint32_t p = 0; p < map->parts; p++) {
        const uint32_t *slot = parts[p].index;
        size_t nnz = parts[p].nnz;
        s->parts[p] = (struct rest){ parts[p].index, parts[p].value, nnz };
        if (nnz == 0)
            continue;
        uint64_t first = (slot[0] + map->base) >> map->grain_shift;
        uint64_t last = (slot[nnz - 1] + map->base) >> map->grain_shift;
        s->from = first < s->from ? first : s->from;
        s->end = last >= s->end ? last + 1 : s->end;
        s->out.n += nnz;
    }
    return SAR_OK;
}

/* As runs of any kind. */
static enum sar_status merge(const struct sar_map *map, const struct sar_shape *shape,
                             const struct sar_run parts[], struct sar_arena *arena, struct sar_run *out)
{
    void *taken;
    struct sar_shape apart = *shape;
    apart.absent_is_zero = false;
    SAR_TRY(sar_arena_take(arena, map->parts, sizeof *parts, &taken));
    struct sar_run *runs = taken;
    memcpy(runs, parts, map->parts * sizeof *parts);
    for (uint32_t p = 0; p < map->parts; p++)
        SAR_TRY(sar_unpartition(map, shape, p, arena, &runs[p]));
    return sar_reduce(&apart, runs, map->parts, arena, out);
}

enum sar_status sar_assemble(const struct sar_map *map, const struct sar_shape *shape,
                             const struct sar_run parts[], struct sar_arena *arena, struct sar_run *out)
{
    struct seam s = { .map = map, .out = { out->index, out->value, 0 } };
    SAR_TRY(open_seam(&s, parts, arena));
    out->nnz = s.out.n;
    if (s.out.n == 0)
        return SAR_OK;
    if (!sar_assembles_blocks(map, s.end - s.from, s.out.n))
        return merge(map, shape, parts, arena, out);
    take_any(&s, shape->index_size, shape->element_size);
    return SAR_OK;
}
