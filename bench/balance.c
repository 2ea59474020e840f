/* SPDX-License-Identifier: BSD-3-Clause */
/* The study `balance`: how evenly elements fall into parts (Zen, Definition 5), by the library's partition
 * maps and by boundaries that were computed from an earlier batch.
 *
 * All ranks, one for each part, are thought of by one process: nothing is sent. */

#include <math.h>
#include <stdlib.h>

#include "bounds.h"
#include "pattern.h"
#include "study.h"

struct line {
    const char *study, *pattern, *partition;
    long long count, parts, grain, recompute, batches;
    bool chosen;
    double nnz, nnz_all, push_mean, push_max, pull_mean, pull_max;
};

#define FIELD(key, kind, member) PERF_FIELD(line, key, kind, member)

static const struct perf_field fields[] = {
    FIELD("study", PERF_TEXT, study),          FIELD("pattern", PERF_TEXT, pattern),
    FIELD("count", PERF_INTEGER, count),       FIELD("nnz_in_mean", PERF_REAL, nnz),
    FIELD("nnz_out_mean", PERF_REAL, nnz_all), FIELD("parts", PERF_INTEGER, parts),
    FIELD("batches", PERF_INTEGER, batches),   FIELD("partition", PERF_TEXT, partition),
    FIELD("grain", PERF_INTEGER, grain),       FIELD("recompute", PERF_INTEGER, recompute),
    FIELD("chosen", PERF_BOOL, chosen),        FIELD("push_mean", PERF_REAL, push_mean),
    FIELD("push_max", PERF_REAL, push_max),    FIELD("pull_mean", PERF_REAL, pull_mean),
    FIELD("pull_max", PERF_REAL, pull_max),
};
static const struct perf_schema schema = PERF_SCHEMA(fields);

static const double densities[] = { 0.05 };
static const unsigned grains[] = { 1, 4, 16, 64, 256 };
static const long long recomputes[] = { 1, 8, 64, 1000 };

enum { COUNT = 1 << 20, MOST_WAYS = 16 };

/* A way to say which part an element belongs to: a map, or boundaries. */
struct way {
    struct sar_map map;
    uint64_t *bound; /* NULL for a map */
    struct line line;
};

struct job {
    struct perf_pattern pattern;
    struct perf_case c;
    struct perf_world world;
    const struct perf_source *source;
    int batches;
    struct way way[MOST_WAYS];
    int ways;
};

static struct way *add(struct job *job, const struct line *first, const char *partition)
{
    struct way *way = &job->way[job->ways++];

    *way = (struct way){ .line = *first };
    way->line.partition = partition;
    way->line.grain = way->line.recompute = -1;
    return way;
}

static void add_map(struct job *job, const struct line *first, struct sar_map map, bool chosen)
{
    struct way *way = add(job, first, sar_partition_names[map.kind]);

    way->map = map;
    way->line.chosen = chosen;
    if (map.kind != SAR_PARTITION_RANGE)
        way->line.grain = 1ll << map.grain_shift;
}

/* The planner's map comes first; the others besides. */
static void plan(struct job *job, const struct line *first, struct sar_map planned)
{
    add_map(job, first, planned, true);
    for (size_t g = 0; g < sizeof grains / sizeof *grains; g++)
        if (grains[g] != 1u << planned.grain_shift)
            add_map(job, first,
                    sar_map_make(SAR_PARTITION_HASH, planned.count, planned.parts, grains[g], planned.seed),
                    false);
    add_map(job, first, sar_map_make(SAR_PARTITION_CYCLIC, planned.count, planned.parts, 1, 0), false);
    add_map(job, first, sar_map_make(SAR_PARTITION_RANGE, planned.count, planned.parts, 1, 0), false);
    for (size_t r = 0; r < sizeof recomputes / sizeof *recomputes; r++) {
        struct way *way = add(job, first, "recomputed");
        way->bound = perf_alloc((size_t)planned.parts + 1, sizeof *way->bound);
        way->line.recompute = recomputes[r];
    }
}

/* Parts times the elements of the fullest over all elements. */
static double imbalance(const struct way *way, const struct perf_set *set, size_t *part)
{
    uint32_t parts = (uint32_t)way->line.parts;
    size_t most = 0;

    for (uint32_t p = 0; p < parts; p++)
        part[p] = 0;
    for (size_t i = 0; i < set->n; i++)
        part[way->bound != NULL ? perf_bounds_part(way->bound, parts, set->at[i])
                                : sar_map_place(&way->map, set->at[i]).part]++;
    for (uint32_t p = 0; p < parts; p++)
        most = part[p] > most ? part[p] : most;
    return set->n > 0 ? parts * (double)most / (double)set->n : 1;
}

static void weigh(struct way *way, const struct perf_batch *batch, int i, size_t *part)
{
    struct line *line = &way->line;
    double push = 0, pull;

    if (way->bound != NULL && i % line->recompute == 0)
        perf_bounds_find(batch->rank, batch->ranks, batch->count, (uint32_t)line->parts, way->bound);
    for (int r = 0; r < batch->ranks; r++) {
        push = fmax(push, imbalance(way, &batch->rank[r], part));
        line->nnz += (double)batch->rank[r].n / batch->ranks / (double)line->batches;
    }
    pull = imbalance(way, &batch->all, part);
    line->nnz_all += (double)batch->all.n / (double)line->batches;
    line->push_mean += push / (double)line->batches;
    line->pull_mean += pull / (double)line->batches;
    line->push_max = fmax(line->push_max, push);
    line->pull_max = fmax(line->pull_max, pull);
}

static void run(struct perf_study *study, struct job *job)
{
    size_t *part = perf_alloc((size_t)job->world.ranks, sizeof *part);

    for (int i = 0; i < job->batches; i++) {
        struct perf_batch batch = perf_batch_make(&job->pattern, &job->c, job->source, i, job->batches);
        if (i == 0) {
            struct line first = { .study = perf_study_name(PERF_BALANCE),
                                  .pattern = job->pattern.name,
                                  .count = (long long)batch.count,
                                  .parts = job->world.ranks,
                                  .batches = job->batches };
            plan(job, &first, perf_study_map(study, batch.count, batch.rank[0].n));
        }
        for (int w = 0; w < job->ways; w++)
            weigh(&job->way[w], &batch, i, part);
        perf_batch_free(&batch);
    }
    for (int w = 0; w < job->ways; w++) {
        perf_study_put(study, &job->way[w].line);
        free(job->way[w].bound);
    }
    free(part);
}

/* A pattern on vectors of about `count` elements before it is stretched. */
static void run_pattern(struct perf_study *study, const struct perf_pattern *pattern, size_t count,
                        double density)
{
    struct perf_options *options = perf_alloc(1, sizeof *options);
    struct job *job = perf_alloc(1, sizeof *job);

    *options = *study->options;
    if (pattern->skew > 0)
        options->skew = pattern->skew;
    job->pattern = *pattern;
    job->world = (struct perf_world){ .ranks = (int)options->parts };
    job->source = study->source;
    job->batches = (int)options->iterations;
    if (pattern->text) {
        size_t batches = study->source->text.tokens / (size_t)options->batch / (size_t)options->parts;
        job->batches = batches < (size_t)job->batches ? (int)batches : job->batches;
    }
    perf_case_make(&job->c, &job->world, options, options->type.at[0], PERF_SUM);
    perf_case_size(&job->c, pattern->text ? study->source->text.words : count / pattern->run, density);
    run(study, job);
    perf_case_free(&job->c);
    free(options);
    free(job);
}

void perf_study_balance(struct perf_study *study)
{
    struct perf_counts counts = perf_study_counts(study, COUNT);
    struct perf_reals at = perf_study_densities(study, densities, 1);
    struct perf_pattern pattern;
    bool has_text = study->source->kind == PERF_TEXT_FILE;

    if (study->world->rank != 0)
        return;
    perf_study_table(study, &schema);
    for (int k = 0;
         perf_pattern_get(k, (uint64_t)study->options->parts, (uint64_t)study->options->row, &pattern); k++) {
        if (pattern.text && !has_text)
            perf_report_note(study->report, "skipped %s: no text; --workload text:FILE names one",
                             pattern.name);
        for (int i = 0; i < counts.n && !pattern.text; i++)
            for (int d = 0; d < at.n; d++)
                run_pattern(study, &pattern, (size_t)counts.at[i], at.at[d]);
        if (pattern.text && has_text)
            run_pattern(study, &pattern, 0, 0);
    }
}
