/* SPDX-License-Identifier: BSD-3-Clause */
/* Random sets with a chosen overlap between ranks and a chosen skew; others at the end.
 *
 * A keyed bijection puts the elements of a region in an order. The first m in that order are the pool
 * that all ranks have; behind it each rank takes p of its own in turn, rank r those from r p on. So
 * the sets of two ranks meet in the pool and nowhere else, whatever the number of ranks, and each set
 * is random. Where the region is too small for the shares of all ranks they wrap around and meet
 * again.
 *
 * Marking the elements in a bitmap sorts them: time and memory are O(set + count / 64). */

#include "workload.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A stretch of the index range in which elements are drawn evenly. */
struct region {
    uint64_t first, size, mask;
    unsigned shift;
    uint64_t key[3];
};

/* Regions of different numbers have different orders. */
static struct region region_make(const struct perf_case *c, uint64_t number, uint64_t first, uint64_t size)
{
    struct region region = { .first = first, .size = size };
    uint64_t key = perf_mix((uint64_t)c->options->seed + UINT64_C(0x9e3779b97f4a7c15));
    unsigned bits = 0;

    while (bits < 63 && (UINT64_C(1) << bits) < size)
        bits++;
    region.mask = (UINT64_C(1) << bits) - 1;
    region.shift = (bits + 1) / 2;
    key = perf_mix(key ^ perf_mix(number));
    for (int i = 0; i < 3; i++)
        region.key[i] = perf_mix(key + (uint64_t)i);
    return region;
}

/* A bijection on [0, size): each step is one on the next power of two, and what lies beyond goes again. */
static uint64_t permute(const struct region *region, uint64_t x)
{
    do {
        for (int i = 0; i < 3; i++) {
            x = (x + region->key[i]) * (region->key[i] | 1) & region->mask;
            x ^= x >> region->shift;
        }
    } while (x >= region->size);
    return x;
}

static void mark(uint64_t *bitmap, uint64_t at)
{
    bitmap[at / 64] |= UINT64_C(1) << at % 64;
}

/* Append the marked elements to the set and wipe the marks. */
static void collect(uint64_t *bitmap, const struct region *region, struct perf_set *set)
{
    for (uint64_t word = 0; word * 64 < region->size; word++) {
        for (uint64_t bits = bitmap[word]; bits != 0; bits &= bits - 1)
            set->at[set->n++] = region->first + word * 64 + (uint64_t)__builtin_ctzll(bits);
        bitmap[word] = 0;
    }
}

/* n elements, `pool` of which all ranks have. */
static void draw(const struct perf_case *c, const struct region *region, size_t n, size_t pool,
                 uint64_t *bitmap)
{
    uint64_t own = n - pool, room = region->size - pool, at = 0;

    for (uint64_t i = 0; i < pool; i++)
        mark(bitmap, permute(region, i));
    if (room > 0)
        at = (uint64_t)c->world->rank * own % room;
    for (uint64_t i = 0; i < own; i++) {
        mark(bitmap, permute(region, pool + at));
        at = at + 1 < room ? at + 1 : 0;
    }
}

/* A share of n things, as a whole number of them. */
static size_t share(double part, size_t n)
{
    size_t some = (size_t)llround(part * (double)n);
    return some < n ? some : n;
}

size_t perf_workload_most(const struct perf_case *c, const struct perf_source *source)
{
    switch (source->kind) {
    case PERF_TEXT_FILE: return (size_t)c->options->batch;
    case PERF_TRACE_FILE: return source->replay.largest;
    default: return share(c->density, c->count);
    }
}

size_t perf_workload_steps(const struct perf_case *c, const struct perf_source *source)
{
    switch (source->kind) {
    case PERF_TEXT_FILE: return source->text.tokens / (size_t)c->options->batch / (size_t)c->world->ranks;
    case PERF_TRACE_FILE: return (size_t)source->replay.steps;
    default: return SIZE_MAX;
    }
}

/* The first eighth gets its share as far as it has room and as the tail has room for the others. */
static size_t head_size(const struct perf_case *c, size_t n, size_t head, size_t tail)
{
    size_t wanted = share(c->options->skew, n);

    if (wanted > head)
        wanted = head;
    return n - wanted > tail ? n - tail : wanted;
}

static struct perf_set draw_random(const struct perf_case *c, int step)
{
    size_t n = share(c->density, c->count), head = c->options->skew > 0 ? c->count / 8 : 0;
    size_t in_head = head_size(c, n, head, c->count - head);
    size_t pool = share(c->options->overlap, n), head_pool = share(c->options->overlap, in_head);
    size_t tail_pool = pool - head_pool < n - in_head ? pool - head_pool : n - in_head;
    struct region front = region_make(c, (uint64_t)step << 1, 0, head);
    struct region back = region_make(c, (uint64_t)step << 1 | 1, head, c->count - head);
    uint64_t *bitmap = perf_alloc(c->count / 64 + 1, sizeof *bitmap);
    struct perf_set set = { 0, perf_alloc(n, sizeof *set.at) };

    if (in_head > 0) {
        draw(c, &front, in_head, head_pool, bitmap);
        collect(bitmap, &front, &set);
    }
    if (n > in_head) {
        draw(c, &back, n - in_head, tail_pool, bitmap);
        collect(bitmap, &back, &set);
    }
    free(bitmap);
    return set;
}

/* The batch that a rank takes in a step. Steps begin in the middle of the text and are spread evenly over it,
 * as its beginning is special: words have the lowest numbers there. */
static size_t batch_of(const struct perf_case *c, size_t batches, size_t step, size_t steps)
{
    size_t ranks = (size_t)c->world->ranks, all = batches / ranks;
    size_t taken = (all / 2 + step * all / steps) % all;

    return taken * ranks + (size_t)c->world->rank;
}

/* The words of one batch of the text. */
static struct perf_set draw_text(const struct perf_case *c, const struct perf_text *text, int step, int steps)
{
    size_t batch = (size_t)c->options->batch, batches = text->tokens / batch;
    size_t which = batch_of(c, batches, (size_t)step, (size_t)steps);
    struct region whole = { .size = text->words };
    uint64_t *bitmap = perf_alloc(text->words / 64 + 1, sizeof *bitmap);
    struct perf_set set = { 0, perf_alloc(batch, sizeof *set.at) };

    for (size_t i = which * batch; i < (which + 1) * batch; i++)
        mark(bitmap, text->token[i]);
    collect(bitmap, &whole, &set);
    free(bitmap);
    return set;
}

/* A strip's region has an order of its own on each rank. */
static struct region strip_make(const struct perf_case *c, int step, int strip, uint64_t first, uint64_t end)
{
    uint64_t number = (uint64_t)step * PERF_STRIPS + (uint64_t)strip;

    return region_make(c, perf_mix(number) + (uint64_t)c->world->rank + 1, first, end - first);
}

static struct perf_set draw_model(const struct perf_case *c, const struct perf_model *model, int step)
{
    size_t n = share(c->density, c->count), first = 0, done = 0;
    uint64_t *bitmap = perf_alloc(c->count / 64 + 1, sizeof *bitmap);
    struct perf_set set = { 0, perf_alloc(n, sizeof *set.at) };

    for (int i = 0; i < PERF_STRIPS; i++) {
        size_t end = share(model->strip[i].end, c->count), upto = share(model->strip[i].share, n);
        struct region region = strip_make(c, step, i, first, end);
        size_t room = end - first, wanted = upto - done;

        if (room > 0)
            draw(c, &region, wanted < room ? wanted : room, 0, bitmap);
        collect(bitmap, &region, &set);
        first = end;
        done = upto;
    }
    free(bitmap);
    return set;
}

static struct perf_set draw_replay(const struct perf_case *c, const struct perf_replay *replay, int step,
                                   int steps)
{
    struct region whole = { .size = c->count };
    uint64_t *bitmap = perf_alloc(c->count / 64 + 1, sizeof *bitmap);
    struct perf_set set = { 0, NULL };
    size_t n = 0;

    perf_replay_mark(replay, (int)((long)step * replay->steps / steps), c->world->rank, bitmap);
    for (size_t word = 0; word <= c->count / 64; word++)
        n += (size_t)__builtin_popcountll(bitmap[word]);
    set.at = perf_alloc(n, sizeof *set.at);
    collect(bitmap, &whole, &set);
    free(bitmap);
    return set;
}

struct perf_set perf_workload_draw(const struct perf_case *c, const struct perf_source *source, int step,
                                   int steps)
{
    switch (source->kind) {
    case PERF_MODEL: return draw_model(c, source->model, step);
    case PERF_TEXT_FILE: return draw_text(c, &source->text, step, steps);
    case PERF_TRACE_FILE: return draw_replay(c, &source->replay, step, steps);
    default: return draw_random(c, step);
    }
}

void perf_set_free(struct perf_set *set)
{
    free(set->at);
    set->at = NULL;
    set->n = 0;
}
