/* SPDX-License-Identifier: BSD-3-Clause */
/* Workloads. Random sets have a chosen overlap between ranks and a chosen skew.
 *
 * A keyed bijection orders the elements of a region. The first m elements in that order form the pool, which
 * all ranks have. The other elements are dealt to the ranks, p to each: rank r takes those from r p on. So
 * the sets of two ranks have the pool in common and nothing else, for any number of ranks, and each set is
 * random. If the region is too small for all shares, they wrap around and overlap.
 *
 * A bitmap sorts the elements: time and memory are O(set + count / 64). */

#include "bench/lib/workload.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The models. The Zen paper reports their elements and densities (Table 1), and more: in all models, the
 * first of 8 equal parts has more than 60 % of the elements. In LSTM, the first of 128 parts has more than
 * 70 times the mean. Pairs of ranks share .21 to .44 of the smaller set with DeepFM, .24 to .37 with NMT.
 * Coordinates make NMT's balanced parallelism on 128 ranks 36 % cheaper than dense, so (gamma + 1) d is .64.
 * The source of its text has .11 to .29 for BERT, whose union of 128 ranks is 40.8 % dense.
 *
 * The other numbers are plausible choices: words by frequency, so that nearly all batches have the words of
 * the first strip. NMT's overlap is thus set from the paper's own result, and LSTM's is chosen: the paper
 * states none for it. Gradients of LLMs are the largest 5 % of a bucket of 128 MB of floats. These models
 * differ in the number of buckets, which does not affect a single call. */

#define BUCKET ((uint64_t)128 << 20 >> 2)
#define LARGEST_OF_BUCKET                       \
    BUCKET, 0.05,                               \
    {                                           \
        { 1.0 / 128, 0.08 }, { 1.0 / 8, 0.65 }, \
        {                                       \
            1, 1                                \
        }                                       \
    }

/* `share` is cumulative. */
static const struct perf_model models[] = {
    { "lstm", 406000000, 0.0113, { { 1.0 / 128, 0.58 }, { 1.0 / 8, 0.80 }, { 1, 1 } } },
    { "deepfm", 214000000, 0.0280, { { 0.0233, 0.50 }, { 1.0 / 8, 0.70 }, { 1, 1 } } },
    { "nmt", 112000000, 0.0247, { { 0.0206, 0.50 }, { 1.0 / 8, 0.77 }, { 1, 1 } } },
    { "bert", 23000000, 0.0106, { { 0.009, 0.40 }, { 1.0 / 8, 0.746 }, { 1, 1 } } },
    { "llama", LARGEST_OF_BUCKET },
    { "opt", LARGEST_OF_BUCKET },
    { "gemma", LARGEST_OF_BUCKET },
};

const struct perf_model *perf_model_get(int i)
{
    return (size_t)i < sizeof models / sizeof *models ? &models[i] : NULL;
}

const char *perf_model_name(int i)
{
    const struct perf_model *model = perf_model_get(i);

    return model != NULL ? model->name : NULL;
}

bool perf_source_load(struct perf_source *source, struct perf_options *options, size_t least,
                      const struct perf_world *world)
{
    const struct perf_workload_spec *spec = &options->workload;

    memset(source, 0, sizeof *source);
    source->kind = spec->kind;
    switch (spec->kind) {
    case PERF_MODEL: source->model = perf_model_get(spec->model); break;
    case PERF_TEXT_FILE: return perf_text_load(&source->text, spec->path, least, world);
    case PERF_TRACE_FILE:
        if (!perf_index_trace_load(&source->trace, spec->path, world))
            return false;
        options->row_len = source->trace.row_len;
    }
    return true;
}

void perf_source_free(struct perf_source *source)
{
    perf_text_free(&source->text);
    perf_index_trace_free(&source->trace);
}

bool perf_source_size(const struct perf_source *source, struct perf_case *c)
{
    switch (source->kind) {
    case PERF_MODEL:
        perf_case_size(c, (size_t)source->model->count / (size_t)c->options->scale / c->row_len,
                       source->model->density);
        return true;
    case PERF_TEXT_FILE: perf_case_size(c, source->text.words, 0); return true;
    case PERF_TRACE_FILE: perf_case_size(c, source->trace.count, 0); return true;
    default: return false;
    }
}

void perf_source_name(const struct perf_workload_spec *content, char *name, size_t size)
{
    static const char *const kinds[] = {
        [PERF_RANDOM] = "random", [PERF_MODEL] = "", [PERF_TEXT_FILE] = "text:", [PERF_TRACE_FILE] = "trace:"
    };

    snprintf(name, size, "%s%s", kinds[content->kind],
             content->kind == PERF_MODEL ? perf_model_name(content->model) : content->path);
}

/* A range of indices in which elements are drawn uniformly. */
struct region {
    uint64_t first, size, mask;
    unsigned shift;
    uint64_t key[3];
};

/* Regions with different numbers have different orders. */
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

/* A bijection on [0, size). Each step is a bijection on the next power of two, repeated until the value is
 * below size. */
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

/* Appends the marked elements to the set and clears the bitmap. */
static void collect(uint64_t *bitmap, const struct region *region, struct perf_set *set)
{
    for (uint64_t word = 0; word * 64 < region->size; word++) {
        for (uint64_t bits = bitmap[word]; bits != 0; bits &= bits - 1)
            set->at[set->n++] = region->first + word * 64 + (uint64_t)__builtin_ctzll(bits);
        bitmap[word] = 0;
    }
}

/* Marks n elements of a region, of which `pool` are common to all members: ranks, or their GPUs. */
static void draw(size_t member, const struct region *region, size_t n, size_t pool, uint64_t *bitmap)
{
    uint64_t own = n - pool, others = region->size - pool, at = 0;

    for (uint64_t i = 0; i < pool; i++)
        mark(bitmap, permute(region, i));
    if (others > 0)
        at = member * own % others;
    for (uint64_t i = 0; i < own; i++) {
        mark(bitmap, permute(region, pool + at));
        at = at + 1 < others ? at + 1 : 0;
    }
}

/* Returns the fraction `part` of n, rounded. */
static size_t share(double part, size_t n)
{
    size_t some = (size_t)llround(part * (double)n);
    return some < n ? some : n;
}

/* Returns how many elements a GPU of this rank draws (option --unequal). */
static size_t model_elements(const struct perf_case *c)
{
    double unequal = c->options->unequal;
    int rank = c->world->rank;

    if (rank > 0)
        return unequal > 1 && rank == c->world->ranks - 1 ? 0 : share(c->density, c->count);
    return share(unequal * c->density, c->count);
}

/* Returns an upper bound of the elements of a rank's GPUs, if each draws n. */
static size_t machine_max(const struct perf_case *c, size_t n)
{
    size_t gpus = (size_t)c->options->gpus;

    return n < c->count / gpus ? n * gpus : c->count;
}

size_t perf_workload_max(const struct perf_case *c, const struct perf_source *source)
{
    switch (source->kind) {
    case PERF_MODEL: return machine_max(c, share(c->options->unequal * c->density, c->count));
    case PERF_TEXT_FILE: return (size_t)c->options->batch;
    case PERF_TRACE_FILE: return source->trace.largest;
    default: return share(c->density, c->count);
    }
}

size_t perf_workload_steps(const struct perf_case *c, const struct perf_source *source)
{
    switch (source->kind) {
    case PERF_TEXT_FILE: return source->text.tokens / (size_t)c->options->batch / (size_t)c->world->ranks;
    case PERF_TRACE_FILE: return (size_t)source->trace.steps;
    default: return SIZE_MAX;
    }
}

/* Returns the elements of the first eighth of the range: as the skew says, unless the first eighth or the
 * rest is too small. */
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
        draw((size_t)c->world->rank, &front, in_head, head_pool, bitmap);
        collect(bitmap, &front, &set);
    }
    if (n > in_head) {
        draw((size_t)c->world->rank, &back, n - in_head, tail_pool, bitmap);
        collect(bitmap, &back, &set);
    }
    free(bitmap);
    return set;
}

/* Returns the batch of this rank in a step. Steps are spread evenly over the text and start in its middle,
 * because the words at the beginning of a text have the lowest numbers. */
static size_t batch_of(const struct perf_case *c, size_t batches, size_t step, size_t steps)
{
    size_t ranks = (size_t)c->world->ranks, all = batches / ranks;
    size_t taken = (all / 2 + step * all / steps) % all;

    return taken * ranks + (size_t)c->world->rank;
}

/* Returns the distinct words of one batch. */
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

/* A strip of the vector, and the elements that a GPU draws there. */
struct strip {
    int number;
    size_t first, end, wanted;
};

/* Marks the elements of one GPU. Each has its own order of a strip's region. */
static void draw_strip(const struct perf_case *c, int step, const struct strip *strip, size_t gpu,
                       uint64_t *bitmap)
{
    uint64_t number = (uint64_t)step * PERF_STRIPS + (uint64_t)strip->number;
    size_t size = strip->end - strip->first;
    struct region region = region_make(c, perf_mix(number) + gpu + 1, strip->first, size);

    if (size > 0)
        draw(gpu, &region, strip->wanted < size ? strip->wanted : size, 0, bitmap);
}

/* Adds `distance` to the elements of a set, modulo count (option --drift). They stay in order. */
static void rotate(struct perf_set *set, uint64_t distance, uint64_t count)
{
    uint64_t *moved = perf_alloc(set->n, sizeof *moved);
    size_t first = 0, n = 0;

    while (first < set->n && set->at[first] + distance < count)
        first++;
    for (size_t i = first; i < set->n; i++)
        moved[n++] = set->at[i] + distance - count;
    for (size_t i = 0; i < first; i++)
        moved[n++] = set->at[i] + distance;
    free(set->at);
    set->at = moved;
}

static struct perf_set draw_model(const struct perf_case *c, const struct perf_model *model, int step)
{
    size_t n = model_elements(c), gpus = (size_t)c->options->gpus, first = 0, done = 0;
    uint64_t *bitmap = perf_alloc(c->count / 64 + 1, sizeof *bitmap);
    struct perf_set set = { 0, perf_alloc(machine_max(c, n), sizeof *set.at) };

    for (int i = 0; i < PERF_STRIPS; i++) {
        size_t end = share(model->strip[i].end, c->count), upto = share(model->strip[i].share, n);
        struct strip strip = { i, first, end, upto - done };
        struct region region = { .first = first, .size = end - first };

        for (size_t gpu = 0; gpu < gpus; gpu++)
            draw_strip(c, step, &strip, (size_t)c->world->rank * gpus + gpu, bitmap);
        collect(bitmap, &region, &set);
        first = end;
        done = upto;
    }
    free(bitmap);
    if (c->options->drift > 0 && c->count > 0)
        rotate(&set, (uint64_t)(c->options->drift * step * (double)c->count) % c->count, c->count);
    return set;
}

static struct perf_set draw_trace(const struct perf_case *c, const struct perf_index_trace *trace, int step,
                                  int steps)
{
    struct region whole = { .size = c->count };
    uint64_t *bitmap = perf_alloc(c->count / 64 + 1, sizeof *bitmap);
    struct perf_set set = { 0, NULL };
    size_t n = 0;

    perf_index_trace_mark(trace, (int)((long)step * trace->steps / steps), c->world->rank, bitmap);
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
    case PERF_TRACE_FILE: return draw_trace(c, &source->trace, step, steps);
    default: return draw_random(c, step);
    }
}

void perf_set_free(struct perf_set *set)
{
    free(set->at);
    set->at = NULL;
    set->n = 0;
}
