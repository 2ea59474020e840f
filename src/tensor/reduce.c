/* SPDX-License-Identifier: BSD-3-Clause */
/* Reduction of sorted runs, tile by tile, without comparing indices with each other.
 *
 * A tile is a stretch of the index space that begins at the least index not yet done. Every run sets a bit
 * for each of its elements there. The bits in order are the outcome's indices, and how many are set before an
 * element's own is its place among them: so the sums stand where they belong from the beginning, at the op's
 * identity first, and every run in turn folds its values in. Those that are made of floats to be rounded once
 * (tensor/sums.h) are written when all runs have been folded. Bits, counts and the sums of a tile stay in the
 * L1 or L2 cache, since a tile is as long as it takes to hold some thousand elements. Where even the longest
 * holds few, a second bitmap, one bit for a word of the first, lets empty stretches be jumped over.
 * Plain sums need no list of bits: each element writes its index where it adds its value (tensor/totals.h).
 * A few runs that are counted first are merged instead (tensor/merge.h) where that pays.
 *
 *     time = gamma * sum of nnz + (tiles touched) * runs,   gamma about 2 ns for plain sums, 3 for others */

#include "tensor/reduce.h"

#include <assert.h>
#include <string.h>

#include "tensor/merge.h"
#include "tensor/stream.h"
#include "tensor/stretch.h"
#include "tensor/sums.h"
#include "tensor/tile.h"
#include "tensor/totals.h"

enum {
    TILE_ELEMENTS = 4096,  /* of all runs together */
    TILE_BYTES = 64 << 10, /* of sums */
    ROWS_LEAST = 16,       /* elements of a tile however large they are */
    SLOTS_LEAST = 64,
    SLOTS_MOST = 256 << 10,
    SLOTS_EACH = 1024, /* most of them for each element there is */
    CHUNK = 1024,      /* elements worked on at a time */
    WORDS_EACH = 1,    /* words of bitmap for an element beyond which a tile is thinly filled */
    SLOTS_KEPT = 64    /* for an element, up to which bits are kept */
};

struct sar_sweep {
    const struct sar_shape *shape;
    const struct sar_run *runs;
    size_t n;
    size_t *next; /* for each run, its first element not yet done */
    size_t *end;  /* for each run, the first behind the tile */
    struct sar_tile tile;
    sar_totals_fn *totals; /* instead of sums; or NULL */
    struct sar_sums sums;
    struct sar_run out;
    unsigned index_size; /* of out */
    size_t tiles;        /* that are marked already, with their bits one behind the other; or 0 */
    uint64_t start;      /* of the first of them */
    bool merges;         /* instead of all that */
    struct sar_merge merge;
};

size_t sar_reduce_bound(const struct sar_shape *shape, const struct sar_run runs[], size_t n)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += runs[i].nnz;
    return (size_t)(sum < shape->count ? sum : shape->count);
}

enum sar_status sar_run_take(const struct sar_shape *shape, size_t nnz, struct sar_arena *arena,
                             struct sar_run *run)
{
    struct sar_run taken = { .nnz = nnz };
    SAR_TRY(sar_arena_take(arena, nnz, shape->index_size, &taken.index));
    SAR_TRY(sar_arena_take(arena, nnz, shape->element_size, &taken.value));
    *run = taken;
    return SAR_OK;
}

void sar_run_copy(const struct sar_shape *shape, const struct sar_run *from, struct sar_run *to)
{
    if (from->nnz == 0)
        return;
    memcpy(to->index, from->index, from->nnz * shape->index_size);
    memcpy(to->value, from->value, from->nnz * shape->element_size);
}

void sar_run_stream(const struct sar_shape *shape, const struct sar_run *from, struct sar_run *to)
{
    if (from->nnz == 0)
        return;
    sar_stream_any(to->index, from->index, from->nnz * shape->index_size);
    sar_stream_any(to->value, from->value, from->nnz * shape->element_size);
    sar_stream_settle();
}

/* From the first index of any run to the last. */
static uint64_t span_of(const struct sar_sweep *s)
{
    uint64_t least = UINT64_MAX, most = 0;
    for (size_t r = 0; r < s->n; r++) {
        const struct sar_run *run = &s->runs[r];
        if (run->nnz == 0)
            continue;
        uint64_t first = sar_index_get(run->index, s->shape->index_size, 0);
        uint64_t last = sar_index_get(run->index, s->shape->index_size, run->nnz - 1);
        least = first < least ? first : least;
        most = last > most ? last : most;
    }
    return least <= most ? most - least + 1 : 0;
}

static uint64_t nnz_of(const struct sar_sweep *s)
{
    uint64_t nnz = 0;
    for (size_t r = 0; r < s->n; r++)
        nnz += s->runs[r].nnz;
    return nnz;
}

/* Of a tile. */
static size_t most_elements(const struct sar_shape *shape)
{
    size_t fit = TILE_BYTES / shape->element_size;
    return fit > TILE_ELEMENTS ? TILE_ELEMENTS : fit < ROWS_LEAST ? ROWS_LEAST : fit;
}

/* As many as hold the elements wanted, if these are spread evenly. */
static uint32_t choose_slots(const struct sar_sweep *s)
{
    double nnz = (double)nnz_of(s), span = (double)span_of(s), wanted = (double)most_elements(s->shape);
    uint32_t slots = SLOTS_LEAST;
    while (slots < SLOTS_MOST && slots < span && slots < nnz * SLOTS_EACH && slots * nnz < wanted * span)
        slots *= 2;
    return slots;
}

/* Plain sums take less than merging, but for two runs. Places may be kept where the outcome is counted first;
 * elsewhere they are more memory than is promised. */
static enum sar_status open_sweep(struct sar_sweep *s, bool counts, struct sar_arena *arena)
{
    void *next, *end;
    size_t most = sar_reduce_bound(s->shape, s->runs, s->n);
    if (!(counts && s->n == 2) && span_of(s) <= nnz_of(s) * SAR_TOTALS_SLOTS)
        s->totals = sar_totals_of(s->shape, s->index_size);
    s->merges = counts && s->totals == NULL && sar_merge_pays(s->n, nnz_of(s), span_of(s));
    if (s->merges) {
        SAR_TRY(sar_merge(s->shape, s->runs, s->n, arena, &s->merge));
    } else {
        SAR_TRY(sar_tile_open(choose_slots(s), arena, &s->tile));
        most = most < s->tile.slots ? most : s->tile.slots;
    }
    SAR_TRY(sar_arena_take_zeroed(arena, s->n, sizeof *s->next, &next));
    SAR_TRY(sar_arena_take(arena, s->n, sizeof *s->end, &end));
    s->next = next;
    s->end = end;
    return sar_sums_open(s->shape, s->n, most, arena, &s->sums);
}

/* The least index that is not done yet; false when all are. */
static bool find_start(struct sar_sweep *s)
{
    uint64_t least = UINT64_MAX;
    bool found = false;
    for (size_t r = 0; r < s->n; r++) {
        if (s->next[r] == s->runs[r].nnz)
            continue;
        uint64_t index = sar_index_get(s->runs[r].index, s->shape->index_size, s->next[r]);
        least = index < least ? index : least;
        found = true;
    }
    s->tile.start = least & ~(uint64_t)(s->tile.slots - 1);
    return found;
}

/* Find the elements of every run in the tile; returns how many there are. */
static size_t enclose(struct sar_sweep *s)
{
    size_t elements = 0;
    for (size_t r = 0; r < s->n; r++) {
        s->end[r] = sar_run_find(s->shape, &s->runs[r], s->next[r], s->tile.start + s->tile.slots);
        elements += s->end[r] - s->next[r];
    }
    return elements;
}

/* Elements of a run up to `end`, whose places in the tile are counted from a place on. */
static void fold_run(struct sar_sweep *s, size_t r, size_t end, uint32_t base)
{
    const struct sar_run *run = &s->runs[r];
    const unsigned char *value = run->value;
    uint32_t places[CHUNK], last = UINT32_MAX;
    for (size_t n, from = s->next[r]; from < end; from += n) {
        n = end - from < CHUNK ? end - from : CHUNK;
        sar_tile_places(&s->tile, run->index, s->shape->index_size, from, n, places);
        for (size_t i = 0; base != 0 && i < n; i++)
            places[i] -= base;
        sar_sums_fold(&s->sums, places, value + from * s->shape->element_size, n, &last);
    }
    s->next[r] = end;
}

static void *next_out(const struct sar_sweep *s)
{
    return (unsigned char *)s->out.value + s->out.nnz * s->shape->element_size;
}

static void mark_tile(struct sar_sweep *s)
{
    for (size_t r = 0; r < s->n; r++)
        sar_tile_mark(&s->tile, s->runs[r].index, s->shape->index_size, s->next[r], s->end[r]);
}

/* First element of a run in the tile that is not among the next n of the outcome, of which `left` are in the
 * tile. */
static size_t end_of(const struct sar_sweep *s, size_t r, size_t n, size_t left)
{
    if (n == left)
        return s->end[r];
    uint64_t limit = sar_index_get(s->out.index, s->index_size, s->out.nnz + n);
    return sar_run_find(s->shape, &s->runs[r], s->next[r], limit);
}

/* Once the tile is marked and counted. */
static void write_totals(struct sar_sweep *s, size_t count)
{
    size_t at = s->out.nnz;
    struct sar_run out = { (uint32_t *)s->out.index + at, next_out(s), count };
    s->shape->kernels->fill_identity(out.value, count);
    for (size_t r = 0; r < s->n; r++)
        s->totals(&s->tile, &s->runs[r], s->next[r], s->end[r], &out);
    memcpy(s->next, s->end, s->n * sizeof *s->next);
    s->out.nnz += count;
}

/* Once the tile is marked: as many elements at a time as there is room for sums. */
static void write_tile(struct sar_sweep *s)
{
    size_t count = sar_tile_list(&s->tile, s->out.index, s->index_size, s->out.nnz), most = s->sums.most;
    for (size_t n, at = 0; at < count; at += n, s->out.nnz += n) {
        n = count - at < most ? count - at : most;
        sar_sums_begin(&s->sums, next_out(s), 0, n);
        for (size_t r = 0; r < s->n; r++)
            fold_run(s, r, end_of(s, r, n, count - at), (uint32_t)at);
        sar_sums_end(&s->sums, 0, n);
    }
}

/* The elements of a run whose places are below a limit; these are counted from `base` on. */
static void fold_merged(struct sar_sweep *s, size_t r, size_t base, size_t limit)
{
    static const struct sar_shape narrow = { .index_size = sizeof(uint32_t) };
    const unsigned char *value = s->runs[r].value;
    struct sar_run places = { s->merge.places[r], NULL, s->runs[r].nnz };
    size_t from = s->next[r], end = sar_run_find(&narrow, &places, from, limit), n = end - from;
    uint32_t last = UINT32_MAX, *place = s->merge.places[r] + from;
    for (size_t i = 0; base != 0 && i < n; i++)
        place[i] -= (uint32_t)base;
    sar_sums_fold(&s->sums, place, value + from * s->shape->element_size, n, &last);
    s->next[r] = end;
}

/* Once all are merged: as many at a time as a cache has room for. Places are told in the whole outcome, but
 * where sums are elsewhere. */
static void write_merged(struct sar_sweep *s)
{
    size_t each = most_elements(s->shape), left;
    bool apart = s->sums.wide != NULL;
    each = each < s->sums.most ? each : s->sums.most;
    while ((left = s->merge.nnz - s->out.nnz) != 0) {
        size_t at = s->out.nnz, n = left < each ? left : each, base = apart ? at : 0;
        sar_sums_begin(&s->sums, apart ? next_out(s) : s->out.value, at - base, n);
        sar_merge_list(&s->merge, at, n, s->out.index, s->index_size);
        for (size_t r = 0; r < s->n; r++)
            fold_merged(s, r, base, at + n);
        sar_sums_end(&s->sums, at - base, n);
        s->out.nnz += n;
    }
}

static void sweep(struct sar_sweep *s)
{
    while (find_start(s)) {
        s->tile.thin = enclose(s) * WORDS_EACH < s->tile.slots / 64 && s->totals == NULL;
        mark_tile(s);
        if (s->totals != NULL)
            write_totals(s, sar_tile_rank(&s->tile));
        else
            write_tile(s);
        sar_tile_clear(&s->tile);
    }
}

enum sar_status sar_reduce(const struct sar_shape *shape, const struct sar_run runs[], size_t n,
                           struct sar_arena *arena, struct sar_run *out)
{
    struct sar_sweep s = {
        .shape = shape, .runs = runs, .n = n, .out = *out, .index_size = shape->index_size
    };
    SAR_TRY(open_sweep(&s, false, arena));
    s.out.nnz = 0;
    sweep(&s);
    *out = s.out;
    assert(out->nnz <= sar_reduce_bound(shape, runs, n));
    return SAR_OK;
}

/* Go to a tile whose bits are kept. */
static void go_to(struct sar_sweep *s, const struct sar_tile *first, size_t tile)
{
    size_t words = s->tile.slots / 64;
    s->tile.start = s->start + (uint64_t)tile * s->tile.slots;
    s->tile.bits = first->bits + tile * words;
    if (s->totals != NULL)
        s->tile.before = first->before + tile * words;
    enclose(s);
}

/* Mark all tiles and keep their bits, and for totals how many are before each word. */
static enum sar_status mark_all(struct sar_sweep *s, size_t tiles, struct sar_arena *arena, size_t *count)
{
    void *bits, *before = s->tile.before;
    size_t words = s->tile.slots / 64;
    SAR_TRY(sar_arena_take(arena, tiles * words, sizeof(uint64_t), &bits));
    if (s->totals != NULL)
        SAR_TRY(sar_arena_take(arena, tiles * words, sizeof(uint32_t), &before));
    s->tile.bits = bits;
    s->tile.before = before;
    const struct sar_tile first = s->tile;
    s->tiles = tiles;
    s->start = s->tile.start;
    *count = 0;
    for (size_t t = 0; t < tiles; t++) {
        go_to(s, &first, t);
        memset(s->tile.bits, 0, words * sizeof(uint64_t));
        mark_tile(s);
        *count += s->totals != NULL ? sar_tile_rank(&s->tile) : sar_tile_count(s->tile.bits, words);
        memcpy(s->next, s->end, s->n * sizeof *s->next);
    }
    memset(s->next, 0, s->n * sizeof *s->next);
    s->tile = first;
    return SAR_OK;
}

/* How many tiles there are, where keeping their bits is cheap; else 0. */
static size_t tiles_to_keep(struct sar_sweep *s)
{
    uint64_t most = nnz_of(s) * SLOTS_KEPT / s->tile.slots, tiles = span_of(s) / s->tile.slots + 2;
    return find_start(s) && tiles <= most ? (size_t)tiles : 0;
}

enum sar_status sar_reduce_count(const struct sar_shape *shape, const struct sar_run runs[], size_t n,
                                 unsigned index_size, struct sar_arena *arena,
                                 struct sar_reduction *reduction)
{
    void *taken;
    struct sar_shape out = *shape;
    SAR_TRY(sar_arena_take_zeroed(arena, 1, sizeof(struct sar_sweep), &taken));
    struct sar_sweep *s = taken;
    *s = (struct sar_sweep){ .shape = shape, .runs = runs, .n = n, .index_size = index_size };
    SAR_TRY(open_sweep(s, true, arena));
    *reduction = (struct sar_reduction){ .sweep = s, .nnz = s->merge.nnz };
    if (s->merges)
        return SAR_OK;
    size_t tiles = tiles_to_keep(s);
    if (tiles != 0)
        return mark_all(s, tiles, arena, &reduction->nnz);
    out.index_size = index_size;
    SAR_TRY(sar_run_take(&out, sar_reduce_bound(shape, runs, n), arena, &s->out));
    s->out.nnz = 0;
    sweep(s);
    *reduction = (struct sar_reduction){ .sweep = s, .nnz = s->out.nnz, .summed = true };
    return SAR_OK;
}

void sar_reduce_write(const struct sar_reduction *reduction, const struct sar_run *out)
{
    struct sar_sweep *s = reduction->sweep;
    const struct sar_tile first = s->tile;
    struct sar_shape shape = *s->shape;
    shape.index_size = s->index_size;
    if (reduction->summed) {
        sar_run_copy(&shape, &s->out, &(struct sar_run){ out->index, out->value, 0 });
        return;
    }
    s->out = (struct sar_run){ out->index, out->value, 0 };
    if (s->merges)
        write_merged(s);
    for (size_t t = 0; t < s->tiles; t++) {
        go_to(s, &first, t);
        if (s->totals != NULL)
            write_totals(s, sar_tile_ranked(&s->tile));
        else
            write_tile(s);
    }
}

enum sar_status sar_reduce_taken(const struct sar_shape *shape, const struct sar_run runs[], size_t n,
                                 struct sar_arena *arena, struct sar_run *out)
{
    SAR_TRY(sar_run_take(shape, sar_reduce_bound(shape, runs, n), arena, out));
    return sar_reduce(shape, runs, n, arena, out);
}
