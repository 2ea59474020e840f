/* SPDX-License-Identifier: BSD-3-Clause */
#include "pattern.h"

#include <stdlib.h>

/* Stretching keeps the number of elements of random sets, so that patterns can be compared. OWN stands for
 * the number of parts, and in a text for the values of a word. */
enum { OWN = 0 };

static const struct perf_pattern patterns[] = {
    { "random", 1, 1, 0, false },      { "skewed", 1, 1, 0.6, false },
    { "mod_parts", OWN, 1, 0, false }, { "mod_64", 64, 1, 0, false },
    { "mod_1024", 1024, 1, 0, false }, { "clusters_64", 64, 64, 0, false },
    { "text_rows", 1, 1, 0, true },    { "text_elements", OWN, OWN, 0, true },
};

bool perf_pattern_get(int i, uint64_t parts, uint64_t row, struct perf_pattern *pattern)
{
    uint64_t own;

    if (i >= (int)(sizeof patterns / sizeof *patterns))
        return false;
    *pattern = patterns[i];
    own = pattern->text ? row : parts;
    if (pattern->stride == OWN)
        pattern->stride = own;
    if (pattern->run == OWN)
        pattern->run = own;
    return true;
}

static void stretch(const struct perf_pattern *pattern, struct perf_set *set)
{
    struct perf_set longer = { 0, perf_alloc(set->n * pattern->run, sizeof *longer.at) };

    for (size_t i = 0; i < set->n; i++)
        for (uint64_t j = 0; j < pattern->run; j++)
            longer.at[longer.n++] = set->at[i] * pattern->stride + j;
    perf_set_free(set);
    *set = longer;
}

static struct perf_set join(const struct perf_set *sets, int n, size_t places)
{
    uint64_t *bitmap = perf_alloc(places / 64 + 1, sizeof *bitmap);
    struct perf_set all = { 0, NULL };

    for (int r = 0; r < n; r++)
        for (size_t i = 0; i < sets[r].n; i++) {
            uint64_t bit = UINT64_C(1) << sets[r].at[i] % 64, *word = &bitmap[sets[r].at[i] / 64];
            all.n += (*word & bit) == 0;
            *word |= bit;
        }
    all.at = perf_alloc(all.n, sizeof *all.at);
    all.n = 0;
    for (size_t word = 0; word <= places / 64; word++)
        for (uint64_t bits = bitmap[word]; bits != 0; bits &= bits - 1)
            all.at[all.n++] = word * 64 + (uint64_t)__builtin_ctzll(bits);
    free(bitmap);
    return all;
}

struct perf_batch perf_batch_make(const struct perf_pattern *pattern, const struct perf_case *c,
                                  const struct perf_source *source, int i, int batches)
{
    static const struct perf_source random = { .kind = PERF_RANDOM };
    struct perf_world world = *c->world;
    struct perf_case one = *c;
    struct perf_batch batch = { .ranks = world.ranks, .count = c->count * pattern->stride };

    batch.rank = perf_alloc((size_t)batch.ranks, sizeof *batch.rank);
    one.world = &world;
    for (world.rank = 0; world.rank < world.ranks; world.rank++)
        batch.rank[world.rank] = perf_workload_draw(&one, pattern->text ? source : &random, i, batches);
    batch.all = join(batch.rank, batch.ranks, c->count);
    stretch(pattern, &batch.all);
    for (int r = 0; r < batch.ranks; r++)
        stretch(pattern, &batch.rank[r]);
    return batch;
}

void perf_batch_free(struct perf_batch *batch)
{
    for (int r = 0; r < batch->ranks; r++)
        perf_set_free(&batch->rank[r]);
    free(batch->rank);
    perf_set_free(&batch->all);
}
