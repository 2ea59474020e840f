/* SPDX-License-Identifier: BSD-3-Clause */
/* Reduction of sorted runs, tile by tile, without comparing indices with each other.
 *
 * A tile is a stretch of the index space that begins at the least index not yet done. Its accumulators, one
 * for each slot, stand at the op's identity. Every run in turn folds its values of the tile in and sets a bit
 * for each; then the bits are swept in order, which yields indices and sums already sorted, and puts bits and
 * accumulators back as they were. All of it stays in the L2 cache. Where a tile holds few elements, a second
 * bitmap, one bit for a word of the first, lets the sweep jump over empty stretches.
 *
 *     time = gamma * sum of nnz + (tiles touched) * runs,   gamma about 3 ns for float */

#include "tensor/reduce.h"

#include <assert.h>
#include <string.h>

enum {
    TILE_BYTES = 128 << 10, /* accumulators of a tile */
    TILE_MOST = 32 << 10,   /* slots */
    TILE_LEAST = 64,
    CHUNK = 1024,   /* indices turned into slots at a time */
    WORDS_EACH = 2, /* words of bitmap for an element beyond which a tile is thinly filled */
    BATCH = 4       /* bits of a word taken out without a test */
};

struct tile {
    uint64_t start;
    uint32_t slots;    /* a power of two, at least 64 */
    uint64_t *bits;    /* slots that hold something */
    uint64_t *summary; /* words of bits that are not zero; kept only while thin */
    bool thin;         /* few elements, far apart */
    uint32_t *found;   /* room for the slots of a sweep */
    uint32_t *hits;    /* runs that reached a slot; NULL unless absent elements are zeros */
    unsigned char *sums;
};

struct sweep {
    const struct sar_shape *shape;
    const struct sar_run *runs;
    size_t n;
    size_t *next; /* for each run, its first element not yet done */
    size_t *end;  /* for each run, the first behind the tile */
    struct tile tile;
    unsigned char identity[8]; /* of a scalar element */
    struct sar_run *out;
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

static uint32_t choose_slots(const struct sar_shape *shape)
{
    uint32_t slots = TILE_LEAST;
    while (slots < TILE_MOST && slots < shape->count && slots * 2 * shape->element_size <= TILE_BYTES)
        slots *= 2;
    return slots;
}

static enum sar_status open_sweep(struct sweep *s, struct sar_arena *arena)
{
    struct tile *tile = &s->tile;
    const struct sar_shape *shape = s->shape;
    void *next, *end, *bits, *summary, *found, *hits = NULL, *sums;
    tile->slots = choose_slots(shape);
    SAR_TRY(sar_arena_take_zeroed(arena, s->n, sizeof *s->next, &next));
    SAR_TRY(sar_arena_take(arena, s->n, sizeof *s->end, &end));
    SAR_TRY(sar_arena_take(arena, tile->slots + 64, sizeof *tile->found, &found));
    SAR_TRY(sar_arena_take_zeroed(arena, tile->slots / 64, sizeof *tile->bits, &bits));
    SAR_TRY(sar_arena_take_zeroed(arena, (tile->slots + 4095) / 4096, sizeof *tile->summary, &summary));
    if (shape->absent_is_zero)
        SAR_TRY(sar_arena_take_zeroed(arena, tile->slots, sizeof *tile->hits, &hits));
    SAR_TRY(sar_arena_take(arena, tile->slots, shape->element_size, &sums));
    shape->kernels->fill_identity(sums, tile->slots * shape->row);
    memcpy(s->identity, sums, sizeof s->identity);
    s->next = next;
    s->end = end;
    tile->found = found;
    tile->bits = bits;
    tile->summary = summary;
    tile->hits = hits;
    tile->sums = sums;
    return SAR_OK;
}

/* The least index that is not done yet; false when all are. */
static bool find_start(struct sweep *s)
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

/* First element of a run at or behind `from` whose index is not below `limit`: gallop, then bisect. */
static size_t find_end(const struct sar_run *run, unsigned size, size_t from, uint64_t limit)
{
    size_t step = 16, low = from, high;
    while (low + step < run->nnz && sar_index_get(run->index, size, low + step) < limit) {
        low += step;
        step *= 2;
    }
    high = low + step < run->nnz ? low + step : run->nnz;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (sar_index_get(run->index, size, middle) < limit)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Slots of elements [from, from + n) of a run, relative to the tile. */
SAR_INLINE void slots_of(const void *index, unsigned size, size_t from, size_t n, uint64_t start,
                         uint32_t *slot)
{
    for (size_t i = 0; i < n; i++)
        slot[i] = (uint32_t)(sar_index_get(index, size, from + i) - start);
}

static void set_bits(struct tile *tile, const uint32_t *slot, size_t n)
{
    for (size_t i = 0; i < n; i++)
        tile->bits[slot[i] / 64] |= (uint64_t)1 << (slot[i] % 64);
    for (size_t i = 0; tile->thin && i < n; i++)
        tile->summary[slot[i] / 4096] |= (uint64_t)1 << (slot[i] / 64 % 64);
}

/* Find the elements of every run in the tile, and whether they are few. */
static void enclose(struct sweep *s)
{
    size_t elements = 0;
    for (size_t r = 0; r < s->n; r++) {
        s->end[r] = find_end(&s->runs[r], s->shape->index_size, s->next[r], s->tile.start + s->tile.slots);
        elements += s->end[r] - s->next[r];
    }
    s->tile.thin = elements * WORDS_EACH < s->tile.slots / 64;
}

/* Count a run once for each slot, also where the run holds an index several times. */
static void count_hits(struct tile *tile, const uint32_t *slot, size_t n, uint32_t *last)
{
    for (size_t i = 0; i < n; i++) {
        tile->hits[slot[i]] += slot[i] != *last;
        *last = slot[i];
    }
}

static void fold_run(struct sweep *s, size_t r)
{
    const struct sar_run *run = &s->runs[r];
    const struct sar_shape *shape = s->shape;
    uint32_t slot[CHUNK], last = UINT32_MAX;
    size_t from = s->next[r], end = s->end[r];
    for (size_t n; from < end; from += n) {
        n = end - from < CHUNK ? end - from : CHUNK;
        SAR_FOR_INDEX_SIZE(shape->index_size, slots_of(run->index, INDEX_SIZE, from, n, s->tile.start, slot));
        set_bits(&s->tile, slot, n);
        if (s->tile.hits != NULL)
            count_hits(&s->tile, slot, n, &last);
        shape->kernels->fold_rows(s->tile.sums, slot,
                                  (const unsigned char *)run->value + from * shape->element_size, n,
                                  shape->row);
    }
    s->next[r] = end;
}

/* List the set bits of a word and clear it. Most words hold fewer than BATCH, and a fixed number of writes of
 * which only some count is faster than a loop whose end cannot be foreseen. */
SAR_INLINE size_t take_word(struct tile *tile, uint32_t word, size_t k)
{
    uint64_t bits = tile->bits[word];
    size_t n = (size_t)__builtin_popcountll(bits);
    uint32_t *found = tile->found + k;
    tile->bits[word] = 0;
    for (size_t first = 0; first < n; first += BATCH) {
#pragma GCC unroll 4
        for (size_t i = 0; i < BATCH; i++, bits &= bits - 1)
            found[first + i] = word * 64 + (uint32_t)__builtin_ctzll(bits | (uint64_t)1 << 63);
    }
    return k + n;
}

/* List all slots in use, in order. */
SAR_CLONES static size_t take_slots(struct tile *tile)
{
    size_t k = 0;
    if (!tile->thin) {
        for (uint32_t word = 0; word < tile->slots / 64; word++)
            k = take_word(tile, word, k);
        return k;
    }
    for (uint32_t group = 0; group < (tile->slots + 4095) / 4096; group++) {
        for (uint64_t words = tile->summary[group]; words != 0; words &= words - 1)
            k = take_word(tile, group * 64 + (uint32_t)__builtin_ctzll(words), k);
        tile->summary[group] = 0;
    }
    return k;
}

/* Fold a zero into the elements that some run lacks. */
static void fold_absent(struct sweep *s, size_t n)
{
    const struct sar_shape *shape = s->shape;
    for (size_t i = 0; i < n; i++) {
        uint32_t slot = s->tile.found[i];
        if (s->tile.hits[slot] != s->n)
            shape->kernels->fold_zero(s->tile.sums + slot * shape->element_size, shape->row);
        s->tile.hits[slot] = 0;
    }
}

SAR_INLINE void move_indices(struct sweep *s, size_t n, unsigned size)
{
    for (size_t i = 0; i < n; i++)
        sar_index_set(s->out->index, size, s->out->nnz + i, s->tile.start + s->tile.found[i]);
}

/* Move the sums out of the tile and leave the identity behind. `bytes` is a constant where it matters. */
SAR_INLINE void move_sums(struct sweep *s, size_t n, size_t bytes)
{
    unsigned char *out = (unsigned char *)s->out->value + s->out->nnz * bytes;
    for (size_t i = 0; i < n; i++) {
        unsigned char *sum = s->tile.sums + s->tile.found[i] * bytes;
        memcpy(out + i * bytes, sum, bytes);
        if (bytes <= sizeof s->identity)
            memcpy(sum, s->identity, bytes);
        else
            s->shape->kernels->fill_identity(sum, s->shape->row);
    }
}

static void drain_tile(struct sweep *s)
{
    size_t n = take_slots(&s->tile);
    if (s->tile.hits != NULL)
        fold_absent(s, n);
    SAR_FOR_INDEX_SIZE(s->shape->index_size, move_indices(s, n, INDEX_SIZE));
    if (s->shape->element_size == 4)
        move_sums(s, n, 4);
    else if (s->shape->element_size == 8)
        move_sums(s, n, 8);
    else
        move_sums(s, n, s->shape->element_size);
    s->out->nnz += n;
}

enum sar_status sar_reduce(const struct sar_shape *shape, const struct sar_run runs[], size_t n,
                           struct sar_arena *arena, struct sar_run *out)
{
    struct sweep s = { .shape = shape, .runs = runs, .n = n, .out = out };
    SAR_TRY(open_sweep(&s, arena));
    out->nnz = 0;
    while (find_start(&s)) {
        enclose(&s);
        for (size_t r = 0; r < n; r++)
            fold_run(&s, r);
        drain_tile(&s);
    }
    assert(out->nnz <= sar_reduce_bound(shape, runs, n));
    return SAR_OK;
}

enum sar_status sar_reduce_taken(const struct sar_shape *shape, const struct sar_run runs[], size_t n,
                                 struct sar_arena *arena, struct sar_run *out)
{
    SAR_TRY(sar_run_take(shape, sar_reduce_bound(shape, runs, n), arena, out));
    return sar_reduce(shape, runs, n, arena, out);
}
