/* SPDX-License-Identifier: BSD-3-Clause */
/* Reduction of sorted vecs, tile by tile, without comparing indices with each other. Schemes reduce the parts
 * of all ranks with it.
 *
 * A tile is a range of indices that begins at the least index not yet reduced. Every vec sets a bit for each
 * of its elements in the tile. The set bits in order are the indices of the result. The number of bits set
 * before an element's own bit is its position in the result. So sums start as the op's identity at their
 * final position, and every vec adds its values there. Sums that are computed as floats
 * (vector/accumulator.h) are written after all vecs are added. A tile is as long as it takes to hold some
 * thousand elements, so that its bits, counts and sums stay in the L1 or L2 cache. If the longest tile holds
 * few elements, a second bitmap, with one bit for each word of the first, skips empty words.
 *
 * Plain sums are computed by a merge in vectors (vector/pair_sum.h) or tile by tile (vector/tile_sum.h), if
 * these work. Two-phase reductions of a few vecs use a merge (vector/merge.h) if sar_merge_is_faster.
 *
 *     time = gamma * sum of nnz + (tiles touched) * vecs,   gamma about 3 ns, .9 to 2 for plain sums */

#include "vector/reduce_range.h"

#include <assert.h>
#include <string.h>

#include "vector/accumulator.h"
#include "vector/merge.h"
#include "vector/pair_sum.h"
#include "vector/reduce.h"
#include "vector/tile.h"
#include "vector/tile_sum.h"

enum {
    TILE_ELEMENTS = 4096,   /* elements of all vecs in a tile */
    TILE_BYTES = 64 << 10,  /* bytes of the sums of a tile */
    TILE_ELEMENTS_MIN = 16, /* least elements of a tile, of any size */
    SLOTS_MIN = 64,
    SLOTS_MAX = 256 << 10,
    SLOTS_PER_ELEMENT_MAX = 1024, /* most slots of a tile for each element of all vecs */
    CHUNK = 1024,                 /* elements accumulated at a time */
    WORDS_PER_ELEMENT = 1,        /* words of bitmap for an element from which on a tile is sparse */
    KEPT_SLOTS_PER_ELEMENT = 64   /* slots for an element up to which the bits of all tiles are kept */
};

struct sar_reduce_state {
    const struct sar_vec_desc *desc;
    const struct sar_spvec *vecs;
    size_t n;
    size_t *next; /* for each vec, its first element not yet reduced */
    size_t *end;  /* for each vec, its first element after the tile */
    struct sar_tile tile;
    struct sar_accumulator acc;
    struct sar_spvec out; /* the result so far */
    unsigned index_size;  /* bytes of an index of out */
    size_t tiles;         /* tiles marked by sar_reduce_count_range, whose bits follow each other; or 0 */
    uint64_t start;       /* start of the first marked tile */
    bool use_merge;       /* merge replaces tile */
    struct sar_merge merge;
    struct sar_pair_sum pair;     /* replaces all of these if it has keys */
    struct sar_tile_sum tile_sum; /* likewise if it has bits */
};

size_t sar_reduce_max_nnz(const struct sar_vec_desc *desc, const struct sar_spvec vecs[], size_t n)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += vecs[i].nnz;
    return (size_t)(sum < desc->count ? sum : desc->count);
}

/* Returns vecs and the range of their indices. */
static struct sar_tile_sum_args find_range(const struct sar_reduce_state *s)
{
    struct sar_tile_sum_args range = { s->desc, s->vecs, s->n, 0, 0, 0 };
    uint64_t min_index = UINT64_MAX, max_index = 0;
    for (size_t r = 0; r < s->n; r++) {
        const struct sar_spvec *vec = &s->vecs[r];
        if (vec->nnz == 0)
            continue;
        uint64_t first = sar_index_get(vec->index, s->desc->index_size, 0);
        uint64_t last = sar_index_get(vec->index, s->desc->index_size, vec->nnz - 1);
        min_index = first < min_index ? first : min_index;
        max_index = last > max_index ? last : max_index;
        range.nnz += vec->nnz;
    }
    range.first = min_index;
    range.span = min_index <= max_index ? max_index - min_index + 1 : 0;
    return range;
}

/* Returns the elements that a tile should hold. */
static size_t tile_capacity(const struct sar_vec_desc *desc)
{
    size_t fit = TILE_BYTES / desc->element_size;
    return fit > TILE_ELEMENTS ? TILE_ELEMENTS : fit < TILE_ELEMENTS_MIN ? TILE_ELEMENTS_MIN : fit;
}

/* Returns the slots of a tile that holds tile_capacity elements if indices are uniform. */
static uint32_t choose_slots(const struct sar_reduce_state *s, const struct sar_tile_sum_args *range)
{
    double nnz = (double)range->nnz, span = (double)range->span, wanted = (double)tile_capacity(s->desc);
    uint32_t slots = SLOTS_MIN;
    while (slots < SLOTS_MAX && slots < span && slots < nnz * SLOTS_PER_ELEMENT_MAX &&
           slots * nnz < wanted * span)
        slots *= 2;
    return slots;
}

/* A merge is for two-phase reductions only: its positions need more memory than sar_reduce may use. */
static enum sar_status open_state(struct sar_reduce_state *s, const struct sar_tile_sum_args *range,
                                  bool two_phase, struct sar_arena *arena)
{
    void *next, *end;
    size_t max_nnz = sar_reduce_max_nnz(s->desc, s->vecs, s->n);
    s->use_merge = two_phase && sar_merge_is_faster(s->n, range->nnz, range->span);
    if (s->use_merge) {
        SAR_TRY(sar_merge(s->desc, s->vecs, s->n, arena, &s->merge));
    } else {
        SAR_TRY(sar_tile_open(choose_slots(s, range), arena, &s->tile));
        max_nnz = max_nnz < s->tile.slots ? max_nnz : s->tile.slots;
    }
    SAR_TRY(sar_arena_alloc_zeroed(arena, s->n, sizeof *s->next, &next));
    SAR_TRY(sar_arena_alloc(arena, s->n, sizeof *s->end, &end));
    s->next = next;
    s->end = end;
    return sar_accumulator_open(s->desc, s->n, max_nnz, arena, &s->acc);
}

/* Start the next tile at the least index not yet reduced; returns false at the end. */
static bool find_start(struct sar_reduce_state *s)
{
    uint64_t min_index = UINT64_MAX;
    bool found = false;
    for (size_t r = 0; r < s->n; r++) {
        if (s->next[r] == s->vecs[r].nnz)
            continue;
        uint64_t index = sar_index_get(s->vecs[r].index, s->desc->index_size, s->next[r]);
        min_index = index < min_index ? index : min_index;
        found = true;
    }
    s->tile.start = min_index & ~(uint64_t)(s->tile.slots - 1);
    return found;
}

/* Find the elements of every vec in the tile; returns their number. */
static size_t find_tile_ends(struct sar_reduce_state *s)
{
    size_t elements = 0;
    for (size_t r = 0; r < s->n; r++) {
        s->end[r] = sar_spvec_lower_bound(s->desc, &s->vecs[r], s->next[r], s->tile.start + s->tile.slots);
        elements += s->end[r] - s->next[r];
    }
    return elements;
}

/* Add elements of a vec up to `end`. acc counts positions from `base`, the tile from 0. */
static void accumulate_vec(struct sar_reduce_state *s, size_t r, size_t end, uint32_t base)
{
    const struct sar_spvec *vec = &s->vecs[r];
    const unsigned char *value = vec->value;
    uint32_t positions[CHUNK], last = UINT32_MAX;
    for (size_t n, from = s->next[r]; from < end; from += n) {
        n = end - from < CHUNK ? end - from : CHUNK;
        sar_tile_positions(&s->tile, vec->index, s->desc->index_size, from, n, positions);
        for (size_t i = 0; base != 0 && i < n; i++)
            positions[i] -= base;
        sar_accumulator_add(&s->acc, positions, value + from * s->desc->element_size, n, &last);
    }
    s->next[r] = end;
}

static void *next_out(const struct sar_reduce_state *s)
{
    return (unsigned char *)s->out.value + s->out.nnz * s->desc->element_size;
}

static void mark_tile(struct sar_reduce_state *s)
{
    for (size_t r = 0; r < s->n; r++)
        sar_tile_mark(&s->tile, s->vecs[r].index, s->desc->index_size, s->next[r], s->end[r]);
}

/* Returns a vec's first element after the next n elements of the result. The tile has `left` elements
 * left. */
static size_t end_of_range(const struct sar_reduce_state *s, size_t r, size_t n, size_t left)
{
    if (n == left)
        return s->end[r];
    uint64_t limit = sar_index_get(s->out.index, s->index_size, s->out.nnz + n);
    return sar_spvec_lower_bound(s->desc, &s->vecs[r], s->next[r], limit);
}

/* Reduce a marked tile, acc.capacity elements at a time. */
static void write_tile(struct sar_reduce_state *s)
{
    size_t count = sar_tile_list_indices(&s->tile, s->out.index, s->index_size, s->out.nnz),
           chunk = s->acc.capacity;
    for (size_t n, at = 0; at < count; at += n, s->out.nnz += n) {
        n = count - at < chunk ? count - at : chunk;
        sar_accumulator_begin(&s->acc, next_out(s), 0, n);
        for (size_t r = 0; r < s->n; r++)
            accumulate_vec(s, r, end_of_range(s, r, n, count - at), (uint32_t)at);
        sar_accumulator_finish(&s->acc, 0, n);
    }
}

/* Add elements of a vec whose positions are below limit. acc counts positions from `base`. */
static void accumulate_merged(struct sar_reduce_state *s, size_t r, size_t base, size_t limit)
{
    static const struct sar_vec_desc narrow = { .index_size = sizeof(uint32_t) };
    const unsigned char *value = s->vecs[r].value;
    struct sar_spvec positions = { s->merge.positions[r], NULL, s->vecs[r].nnz };
    size_t from = s->next[r], end = sar_spvec_lower_bound(&narrow, &positions, from, limit), n = end - from;
    uint32_t last = UINT32_MAX, *position = s->merge.positions[r] + from;
    for (size_t i = 0; base != 0 && i < n; i++)
        position[i] -= (uint32_t)base;
    sar_accumulator_add(&s->acc, position, value + from * s->desc->element_size, n, &last);
    s->next[r] = end;
}

/* Reduce merged vecs, as many elements at a time as a cache holds. Positions count from the beginning of the
 * result, or of the range if sums are in separate memory. */
static void write_merged(struct sar_reduce_state *s)
{
    size_t chunk = tile_capacity(s->desc), left;
    bool separate = s->acc.wide != NULL;
    chunk = chunk < s->acc.capacity ? chunk : s->acc.capacity;
    while ((left = s->merge.nnz - s->out.nnz) != 0) {
        size_t at = s->out.nnz, n = left < chunk ? left : chunk, base = separate ? at : 0;
        sar_accumulator_begin(&s->acc, separate ? next_out(s) : s->out.value, at - base, n);
        sar_merge_write_indices(&s->merge, at, n, s->out.index, s->index_size);
        for (size_t r = 0; r < s->n; r++)
            accumulate_merged(s, r, base, at + n);
        sar_accumulator_finish(&s->acc, at - base, n);
        s->out.nnz += n;
    }
}

static void reduce_tiles(struct sar_reduce_state *s)
{
    while (find_start(s)) {
        s->tile.sparse = find_tile_ends(s) * WORDS_PER_ELEMENT < s->tile.slots / 64;
        mark_tile(s);
        write_tile(s);
        sar_tile_clear(&s->tile);
    }
}

enum sar_status sar_reduce_range(const struct sar_vec_desc *desc, const struct sar_spvec vecs[], size_t n,
                                 struct sar_arena *arena, struct sar_spvec *out)
{
    struct sar_reduce_state s = {
        .desc = desc, .vecs = vecs, .n = n, .out = *out, .index_size = desc->index_size
    };
    struct sar_tile_sum_args range = find_range(&s);
    out->nnz = sar_reduce_max_nnz(desc, vecs, n);
    if (sar_pair_sum_works(desc, n, s.index_size, range.span) && sar_pair_sum(desc, vecs, out))
        return SAR_OK;
    if (sar_tile_sum_works(&range, s.index_size, SAR_TILE_SUM_SLOTS_MAX))
        return sar_tile_sum(&range, arena, out);
    SAR_TRY(open_state(&s, &range, false, arena));
    s.out.nnz = 0;
    reduce_tiles(&s);
    *out = s.out;
    assert(out->nnz <= sar_reduce_max_nnz(desc, vecs, n));
    return SAR_OK;
}

/* Select a marked tile. */
static void select_tile(struct sar_reduce_state *s, const struct sar_tile *first, size_t tile)
{
    size_t words = s->tile.slots / 64;
    s->tile.start = s->start + (uint64_t)tile * s->tile.slots;
    s->tile.bits = first->bits + tile * words;
    find_tile_ends(s);
}

/* Mark all tiles and keep their bits; count the elements. */
static enum sar_status mark_all(struct sar_reduce_state *s, size_t tiles, struct sar_arena *arena,
                                size_t *count)
{
    void *bits;
    size_t words = s->tile.slots / 64;
    SAR_TRY(sar_arena_alloc(arena, tiles * words, sizeof(uint64_t), &bits));
    s->tile.bits = bits;
    const struct sar_tile first = s->tile;
    s->tiles = tiles;
    s->start = s->tile.start;
    *count = 0;
    for (size_t t = 0; t < tiles; t++) {
        select_tile(s, &first, t);
        memset(s->tile.bits, 0, words * sizeof(uint64_t));
        mark_tile(s);
        *count += sar_tile_count(s->tile.bits, words);
        memcpy(s->next, s->end, s->n * sizeof *s->next);
    }
    memset(s->next, 0, s->n * sizeof *s->next);
    s->tile = first;
    return SAR_OK;
}

/* Returns the number of tiles if keeping their bits is cheap, else 0. */
static size_t tiles_to_keep(struct sar_reduce_state *s, const struct sar_tile_sum_args *range)
{
    uint64_t max_tiles = range->nnz * KEPT_SLOTS_PER_ELEMENT / s->tile.slots,
             tiles = range->span / s->tile.slots + 2;
    return find_start(s) && tiles <= max_tiles ? (size_t)tiles : 0;
}

/* Computes all sums into memory from the arena. */
static enum sar_status compute(struct sar_reduce_state *s, const struct sar_tile_sum_args *range,
                               struct sar_arena *arena, struct sar_range_reduction *reduction)
{
    struct sar_vec_desc out = *s->desc;
    out.index_size = s->index_size;
    SAR_TRY(sar_spvec_alloc(&out, sar_reduce_max_nnz(s->desc, s->vecs, s->n), arena, &s->out));
    if (s->tile.bits == NULL) {
        SAR_TRY(sar_tile_sum(range, arena, &s->out));
    } else {
        s->out.nnz = 0;
        reduce_tiles(s);
    }
    *reduction = (struct sar_range_reduction){ .state = s, .nnz = s->out.nnz, .computed = true };
    return SAR_OK;
}

/* Counts plain sums, if a way to compute these works; else sets *works to false. */
static enum sar_status count_sums(struct sar_reduce_state *s, const struct sar_tile_sum_args *range,
                                  struct sar_arena *arena, struct sar_range_reduction *reduction, bool *works)
{
    *works = true;
    if (sar_pair_sum_works(s->desc, s->n, s->index_size, range->span)) {
        SAR_TRY(sar_pair_sum_count(s->desc, s->vecs, arena, &s->pair));
        *reduction = (struct sar_range_reduction){ .state = s, .nnz = s->pair.distinct };
        if (!s->pair.repeats)
            return SAR_OK;
        s->pair.keys = NULL;
    }
    if (s->n != 2 && sar_tile_sum_works(range, s->index_size, SAR_TILE_SUM_SLOTS_COUNTED)) {
        SAR_TRY(sar_tile_sum_count(range, arena, &s->tile_sum));
        *reduction = (struct sar_range_reduction){ .state = s, .nnz = s->tile_sum.nnz };
        return SAR_OK;
    }
    *works = s->n > SAR_MERGE_MAX && sar_tile_sum_works(range, s->index_size, SAR_TILE_SUM_SLOTS_MAX);
    return *works ? compute(s, range, arena, reduction) : SAR_OK;
}

enum sar_status sar_reduce_count_range(const struct sar_vec_desc *desc, const struct sar_spvec vecs[],
                                       size_t n, unsigned index_size, struct sar_arena *arena,
                                       struct sar_range_reduction *reduction)
{
    void *memory;
    bool works;
    SAR_TRY(sar_arena_alloc_zeroed(arena, 1, sizeof(struct sar_reduce_state), &memory));
    struct sar_reduce_state *s = memory;
    *s = (struct sar_reduce_state){ .desc = desc, .vecs = vecs, .n = n, .index_size = index_size };
    struct sar_tile_sum_args range = find_range(s);
    SAR_TRY(count_sums(s, &range, arena, reduction, &works));
    if (works)
        return SAR_OK;
    SAR_TRY(open_state(s, &range, true, arena));
    *reduction = (struct sar_range_reduction){ .state = s, .nnz = s->merge.nnz };
    if (s->use_merge)
        return SAR_OK;
    size_t tiles = tiles_to_keep(s, &range);
    return tiles != 0 ? mark_all(s, tiles, arena, &reduction->nnz) : compute(s, &range, arena, reduction);
}

void sar_reduce_write_range(const struct sar_range_reduction *reduction, const struct sar_spvec *out)
{
    struct sar_reduce_state *s = reduction->state;
    const struct sar_tile first = s->tile;
    struct sar_vec_desc desc = *s->desc;
    desc.index_size = s->index_size;
    if (reduction->computed) {
        sar_spvec_copy(&desc, &s->out, &(struct sar_spvec){ out->index, out->value, 0 });
        return;
    }
    s->out = (struct sar_spvec){ out->index, out->value, 0 };
    if (s->pair.keys != NULL)
        sar_pair_sum_write(&s->pair, out);
    if (s->tile_sum.bits != NULL)
        sar_tile_sum_write(&s->tile_sum, out);
    if (s->use_merge)
        write_merged(s);
    for (size_t t = 0; t < s->tiles; t++) {
        select_tile(s, &first, t);
        write_tile(s);
    }
}
