/* SPDX-License-Identifier: BSD-3-Clause */
/* Study `balance`: how evenly elements fall into parts (Zen, Definition 5), by the library's partition maps
 * and by boundaries computed from an earlier batch. One process simulates all ranks, one for each part;
 * nothing is sent. */

#include <math.h>
#include <stdlib.h>

#include "bench/lib/workload.h"
#include "bench/studies/study.h"

/* A pattern: element x of a set becomes the elements x stride … x stride + run - 1. */
struct pattern {
    const char *name;
    uint64_t stride, run; /* run <= stride */
    double skew;          /* 0: as option --skew says */
    bool text;
};

/* A batch: the elements of each rank, and their union. */
struct batch {
    int ranks;
    uint64_t count; /* elements of the vector */
    struct perf_set *rank, all;
};

/* Patterns keep the number of elements of random sets, so that they are comparable. PER_PART stands for the
 * number of parts, and in a text for the values of a word. */
enum { PER_PART = 0 };

static const struct pattern patterns[] = {
    { "random", 1, 1, 0, false },           { "skewed", 1, 1, 0.6, false },
    { "mod_parts", PER_PART, 1, 0, false }, { "mod_64", 64, 1, 0, false },
    { "mod_1024", 1024, 1, 0, false },      { "clusters_64", 64, 64, 0, false },
    { "text_rows", 1, 1, 0, true },         { "text_elements", PER_PART, PER_PART, 0, true },
};

static bool pattern_get(int i, uint64_t parts, uint64_t row, struct pattern *pattern)
{
    uint64_t own;

    if (i >= (int)(sizeof patterns / sizeof *patterns))
        return false;
    *pattern = patterns[i];
    own = pattern->text ? row : parts;
    if (pattern->stride == PER_PART)
        pattern->stride = own;
    if (pattern->run == PER_PART)
        pattern->run = own;
    return true;
}

static void apply_stride(const struct pattern *pattern, struct perf_set *set)
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

static struct batch batch_make(const struct pattern *pattern, const struct perf_case *c,
                               const struct perf_source *source, int i, int batches)
{
    static const struct perf_source random = { .kind = PERF_RANDOM };
    struct perf_world world = *c->world;
    struct perf_case one = *c;
    struct batch batch = { .ranks = world.ranks, .count = c->count * pattern->stride };

    batch.rank = perf_alloc((size_t)batch.ranks, sizeof *batch.rank);
    one.world = &world;
    for (world.rank = 0; world.rank < world.ranks; world.rank++)
        batch.rank[world.rank] = perf_workload_draw(&one, pattern->text ? source : &random, i, batches);
    batch.all = join(batch.rank, batch.ranks, c->count);
    apply_stride(pattern, &batch.all);
    for (int r = 0; r < batch.ranks; r++)
        apply_stride(pattern, &batch.rank[r]);
    return batch;
}

static void batch_free(struct batch *batch)
{
    for (int r = 0; r < batch->ranks; r++)
        perf_set_free(&batch->rank[r]);
    free(batch->rank);
    perf_set_free(&batch->all);
}

/* Computes contiguous parts from the data, like scheme oktopk (the data-dependent baseline of the Zen
 * paper). Each of `ranks` sets is cut into equal shares; a boundary is the mean over sets. Part p begins
 * with element boundary[p]; boundary[parts] is `count`. */
static void boundaries_find(const struct perf_set *sets, int ranks, uint64_t count, uint32_t parts,
                            uint64_t *boundary)
{
    for (uint32_t p = 0; p < parts; p++) {
        double sum = 0;
        for (int r = 0; r < ranks && p > 0; r++) {
            size_t at = (size_t)((double)sets[r].n * p / parts);
            sum += at < sets[r].n ? (double)sets[r].at[at] : (double)(count / parts * p);
        }
        boundary[p] = (uint64_t)(sum / ranks);
    }
    boundary[parts] = count;
}

/* Returns the part of an element. */
static uint32_t boundaries_part(const uint64_t *boundary, uint32_t parts, uint64_t index)
{
    uint32_t low = 0, high = parts;

    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (boundary[middle] <= index)
            low = middle;
        else
            high = middle;
    }
    return low;
}

struct record {
    const char *study, *pattern, *partition;
    long long count, parts, grain, recompute, batches;
    bool chosen;
    double nnz, nnz_all, push_mean, push_max, pull_mean, pull_max;
};

#define FIELD(key, kind, member) PERF_FIELD(record, key, kind, member)

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

enum { COUNT = 1 << 20, MAX_PARTITIONERS = 16 };

/* A rule that assigns elements to parts: a map, or boundaries. */
struct partitioner {
    struct sar_partition_map map;
    uint64_t *boundary; /* NULL for a map, and for the hash of each index */
    bool by_index;      /* a hash of each index, as in the Zen paper */
    struct record record;
};

/* One pattern and all its partitioners. */
struct job {
    struct pattern pattern;
    struct perf_case c;
    struct perf_world world;
    const struct perf_source *source;
    int batches;
    struct partitioner partitioner[MAX_PARTITIONERS];
    int partitioners;
};

static struct partitioner *add(struct job *job, const struct record *first, const char *partition)
{
    struct partitioner *partitioner = &job->partitioner[job->partitioners++];

    *partitioner = (struct partitioner){ .record = *first };
    partitioner->record.partition = partition;
    partitioner->record.grain = partitioner->record.recompute = -1;
    return partitioner;
}

static void add_map(struct job *job, const struct record *first, struct sar_partition_map map, bool chosen)
{
    struct partitioner *partitioner = add(job, first, sar_partition_names[map.kind]);

    partitioner->map = map;
    partitioner->record.chosen = chosen;
    if (map.kind != SAR_PARTITION_RANGE)
        partitioner->record.grain = 1ll << map.grain_shift;
}

/* The first one is the planner's map. */
static void add_partitioners(struct job *job, const struct record *first, struct sar_partition_map planned)
{
    struct partitioner *hashed;

    add_map(job, first, planned, true);
    for (size_t g = 0; g < sizeof grains / sizeof *grains; g++)
        if (grains[g] != 1u << planned.grain_shift)
            add_map(job, first,
                    sar_partition_map_make(SAR_PARTITION_HASH, planned.count, planned.parts, grains[g],
                                           planned.seed),
                    false);
    add_map(job, first, sar_partition_map_make(SAR_PARTITION_CYCLIC, planned.count, planned.parts, 1, 0),
            false);
    add_map(job, first, sar_partition_map_make(SAR_PARTITION_RANGE, planned.count, planned.parts, 1, 0),
            false);
    hashed = add(job, first, "index_hash");
    hashed->by_index = true;
    hashed->map = planned;
    hashed->record.grain = 1;
    for (size_t r = 0; r < sizeof recomputes / sizeof *recomputes; r++) {
        struct partitioner *partitioner = add(job, first, "recomputed");
        partitioner->boundary = perf_alloc((size_t)planned.parts + 1, sizeof *partitioner->boundary);
        partitioner->record.recompute = recomputes[r];
    }
}

static uint32_t part_of(const struct partitioner *partitioner, uint64_t index)
{
    const struct sar_partition_map *map = &partitioner->map;

    if (partitioner->boundary != NULL)
        return boundaries_part(partitioner->boundary, (uint32_t)partitioner->record.parts, index);
    if (partitioner->by_index)
        return sar_hash_range(sar_murmur3_u64(index, map->seed), map->parts);
    return sar_partition_map_locate(map, index).part;
}

/* Returns the size of the largest part over the mean size. */
static double imbalance(const struct partitioner *partitioner, const struct perf_set *set, size_t *part)
{
    uint32_t parts = (uint32_t)partitioner->record.parts;
    size_t most = 0;

    for (uint32_t p = 0; p < parts; p++)
        part[p] = 0;
    for (size_t i = 0; i < set->n; i++)
        part[part_of(partitioner, set->at[i])]++;
    for (uint32_t p = 0; p < parts; p++)
        most = part[p] > most ? part[p] : most;
    return set->n > 0 ? parts * (double)most / (double)set->n : 1;
}

static void measure_imbalance(struct partitioner *partitioner, const struct batch *batch, int i, size_t *part)
{
    struct record *record = &partitioner->record;
    double push = 0, pull;

    if (partitioner->boundary != NULL && i % record->recompute == 0)
        boundaries_find(batch->rank, batch->ranks, batch->count, (uint32_t)record->parts,
                        partitioner->boundary);
    for (int r = 0; r < batch->ranks; r++) {
        push = fmax(push, imbalance(partitioner, &batch->rank[r], part));
        record->nnz += (double)batch->rank[r].n / batch->ranks / (double)record->batches;
    }
    pull = imbalance(partitioner, &batch->all, part);
    record->nnz_all += (double)batch->all.n / (double)record->batches;
    record->push_mean += push / (double)record->batches;
    record->pull_mean += pull / (double)record->batches;
    record->push_max = fmax(record->push_max, push);
    record->pull_max = fmax(record->pull_max, pull);
}

static void run(struct perf_study *study, struct job *job)
{
    size_t *part = perf_alloc((size_t)job->world.ranks, sizeof *part);

    for (int i = 0; i < job->batches; i++) {
        struct batch batch = batch_make(&job->pattern, &job->c, job->source, i, job->batches);
        if (i == 0) {
            struct record first = { .study = perf_study_name(PERF_BALANCE),
                                    .pattern = job->pattern.name,
                                    .count = (long long)batch.count,
                                    .parts = job->world.ranks,
                                    .batches = job->batches };
            add_partitioners(job, &first, perf_study_map(study, batch.count, batch.rank[0].n));
        }
        for (int w = 0; w < job->partitioners; w++)
            measure_imbalance(&job->partitioner[w], &batch, i, part);
        batch_free(&batch);
    }
    for (int w = 0; w < job->partitioners; w++) {
        perf_study_add(study, &job->partitioner[w].record);
        free(job->partitioner[w].boundary);
    }
    free(part);
}

/* Runs a pattern on sets of `count` elements, before the stride is applied. */
static void run_pattern(struct perf_study *study, const struct pattern *pattern, size_t count, double density)
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
    struct pattern pattern;
    bool has_text = study->source->kind == PERF_TEXT_FILE;

    if (study->world->rank != 0)
        return;
    perf_study_table(study, &schema);
    for (int k = 0;
         pattern_get(k, (uint64_t)study->options->parts, (uint64_t)study->options->row_len, &pattern); k++) {
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
