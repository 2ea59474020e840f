/* SPDX-License-Identifier: BSD-3-Clause */
/* The study `hash`: what Algorithm 1 of the Zen paper costs on one thread of the host against the memory and
 * the hash functions it is given, and beside it the hash that loses elements.
 *
 * Every way of hashing takes its turn in each iteration, the first of which is not counted. The share of
 * occurrences that go to serial memory is that of a run whose serial memory holds them all; the runs that are
 * timed have the paper's r2 = r1 / 10, and run again where it overflows. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "stats.h"
#include "strawman.h"
#include "study.h"

struct line {
    const char *study, *method;
    long long parts, count, nnz, hashes, cells, reruns, lost;
    double density, memory, serial_share, loss, expected_loss, seconds, nanoseconds, relative;
};

#define FIELD(key, kind, member) PERF_FIELD(line, key, kind, member)

static const struct perf_field fields[] = {
    FIELD("study", PERF_TEXT, study),
    FIELD("count", PERF_INTEGER, count),
    FIELD("density", PERF_REAL, density),
    FIELD("nnz", PERF_INTEGER, nnz),
    FIELD("parts", PERF_INTEGER, parts),
    FIELD("method", PERF_TEXT, method),
    FIELD("memory", PERF_REAL, memory),
    FIELD("hashes", PERF_INTEGER, hashes),
    FIELD("serial_share", PERF_REAL, serial_share),
    FIELD("reruns", PERF_INTEGER, reruns),
    FIELD("lost", PERF_INTEGER, lost),
    FIELD("loss", PERF_REAL, loss),
    FIELD("expected_loss", PERF_REAL, expected_loss),
    FIELD("median_s", PERF_REAL, seconds),
    FIELD("element_ns", PERF_REAL, nanoseconds),
    FIELD("relative", PERF_REAL, relative),
};
static const struct perf_schema schema = PERF_SCHEMA(fields);

/* Memory is in parallel cells for each non-zero, over all parts. */
static const double densities[] = { 0.1 }, memories[] = { 1, 2, 3, 4 },
                    strawman_memories[] = { 1, 2, 2.5, 4, 10, 40 };
static const char levels[] = "levels", paper[] = "paper", strawman[] = "strawman";

enum { COUNT = 1 << 22, HASHES = 4, SERIAL_SHARE = 10, LEAST_SERIAL = 16, WARMUP = 1, MOST_LINES = 64 };

/* What all ways of hashing work on. */
struct job {
    struct sar_map map;
    struct sar_run run;
    struct sar_hash_input input;
    struct sar_arena arena;
    uint32_t seed;
    size_t fullest; /* occurrences of the fullest part */
    struct line line[MOST_LINES];
    int lines;
};

static size_t cells_of(const struct job *job, double memory)
{
    return (size_t)ceil(memory * (double)job->input.nnz / job->map.parts);
}

static struct sar_hierarchical how_of(const struct job *job, const struct line *line, bool ample)
{
    struct sar_hierarchical how = sar_hierarchical_defaults(job->input.nnz, job->map.parts, job->seed);

    how.paper = line->method == paper;
    how.hashes = (unsigned)line->hashes;
    how.parallel = cells_of(job, line->memory);
    how.serial = how.parallel / SERIAL_SHARE;
    if (how.serial < LEAST_SERIAL)
        how.serial = LEAST_SERIAL;
    if (ample)
        how.serial = job->fullest;
    return how;
}

static size_t fullest_part(const struct job *job)
{
    size_t *part = perf_alloc(job->map.parts, sizeof *part), most = 0;

    for (size_t i = 0; i < job->input.nnz; i++) {
        size_t n = ++part[sar_map_place(&job->map, sar_hash_index(&job->input, i)).part];
        most = n > most ? n : most;
    }
    free(part);
    return most;
}

/* Hash once; the outcome stays in the arena until the next time. */
static struct sar_hash_output hash(struct job *job, const struct line *line, bool ample)
{
    struct sar_hash_output out;

    sar_arena_reset(&job->arena);
    if (line->method == strawman) {
        struct perf_strawman how = { job->map.parts, job->seed, cells_of(job, line->memory) };
        perf_study_must(perf_strawman_hash(&how, &job->input, &job->arena, &out));
    } else {
        struct sar_hierarchical how = how_of(job, line, ample);
        perf_study_must(sar_hierarchical_hash(&how, &job->map, &job->input, &job->arena, &out));
    }
    return out;
}

/* Occurrences that are in no part, or, where the map says which, not in theirs, or with another's value. */
static long long count_lost(const struct job *job, const struct line *line, const struct sar_hash_output *out)
{
    const struct sar_hash_input *input = &job->input;
    char *found = perf_alloc(input->nnz, 1);
    long long left = 0;

    for (uint32_t p = 0; p < job->map.parts; p++)
        for (size_t i = out->first[p]; i < out->first[p + 1]; i++) {
            size_t at = out->position[i];
            uint64_t index = sar_hash_index(input, at);
            bool owned = line->method == strawman || sar_map_place(&job->map, index).part == p;
            bool same = sar_index_get(out->index, input->index_size, i) == index &&
                        memcmp((const char *)out->value + i * input->value_size,
                               (const char *)input->value + at * input->value_size, input->value_size) == 0;
            left += owned && same && found[at] == 0;
            found[at] = 1;
        }
    free(found);
    return (long long)input->nnz - left;
}

/* What can be counted. */
static void look(struct job *job, struct line *line)
{
    struct sar_hash_output out = hash(job, line, false);

    line->lost = count_lost(job, line, &out);
    line->loss = (double)line->lost / (double)job->input.nnz;
    line->expected_loss = line->method == strawman ? perf_strawman_loss(line->memory) : 0;
    line->reruns = line->method == strawman ? -1 : (long long)out.reruns;
    line->serial_share = NAN;
    if (line->method != strawman)
        line->serial_share = (double)hash(job, line, true).serial / (double)job->input.nnz;
}

static void time_all(struct job *job, int iterations)
{
    double *seconds = perf_alloc((size_t)(job->lines * iterations), sizeof *seconds), best = INFINITY;

    for (int i = -WARMUP; i < iterations; i++)
        for (int k = 0; k < job->lines; k++) {
            double start = MPI_Wtime();
            hash(job, &job->line[k], false);
            seconds[k * iterations + (i < 0 ? 0 : i)] = MPI_Wtime() - start;
        }
    for (int k = 0; k < job->lines; k++) {
        struct line *line = &job->line[k];
        line->seconds = perf_times_of(seconds + k * iterations, iterations).median;
        line->nanoseconds = line->seconds * 1e9 / (double)job->input.nnz;
        if (line->method != strawman)
            best = fmin(best, line->seconds);
    }
    for (int k = 0; k < job->lines; k++)
        job->line[k].relative = job->line[k].seconds / best;
    free(seconds);
}

static void add(struct job *job, const struct line *first, const char *method, double memory, int hashes)
{
    struct line *line = &job->line[job->lines++];

    *line = *first;
    line->method = method;
    line->memory = memory;
    line->hashes = hashes;
}

static void plan(struct job *job, const struct line *first)
{
    for (int variant = 0; variant < 2; variant++)
        for (size_t m = 0; m < sizeof memories / sizeof *memories; m++)
            for (int k = 1; k <= HASHES; k++)
                add(job, first, variant == 0 ? levels : paper, memories[m], k);
    for (size_t m = 0; m < sizeof strawman_memories / sizeof *strawman_memories; m++)
        if ((double)(cells_of(job, strawman_memories[m]) * job->map.parts) < UINT32_MAX)
            add(job, first, strawman, strawman_memories[m], 1);
}

static void run_case(struct perf_study *study, const struct perf_case *c)
{
    struct perf_set set = perf_workload_draw(c, study->source, 0, 1);
    struct job *job = perf_alloc(1, sizeof *job);
    struct line first = { .study = perf_study_name(PERF_HASH),
                          .parts = study->options->parts,
                          .count = (long long)c->count,
                          .density = c->density,
                          .nnz = (long long)set.n };

    job->map = perf_study_map(study, c->count, set.n);
    job->run = perf_study_run_make(c, &set);
    job->seed = (uint32_t)study->options->seed;
    job->input = (struct sar_hash_input){ job->run.index, job->run.value, sar_index_size(c->count),
                                          c->element_bytes, set.n };
    job->fullest = fullest_part(job);
    plan(job, &first);
    for (int k = 0; k < job->lines; k++)
        look(job, &job->line[k]);
    time_all(job, (int)study->options->iterations);
    for (int k = 0; k < job->lines; k++) {
        study->wrong += job->line[k].method == strawman ? 0 : job->line[k].lost;
        perf_study_put(study, &job->line[k]);
    }
    sar_arena_free(&job->arena);
    perf_study_run_free(&job->run);
    perf_set_free(&set);
    free(job);
}

void perf_study_hash(struct perf_study *study)
{
    static const struct perf_world alone = { .rank = 0, .ranks = 1 };
    struct perf_counts counts = perf_study_counts(study, COUNT);
    struct perf_reals at = perf_study_densities(study, densities, 1);
    struct perf_case c;

    if (study->world->rank != 0)
        return;
    perf_study_table(study, &schema);
    perf_case_make(&c, &alone, study->options, study->options->type.at[0], PERF_SUM);
    for (int i = 0; i < counts.n; i++)
        for (int d = 0; d < at.n; d++) {
            perf_case_size(&c, (size_t)counts.at[i], at.at[d]);
            if (perf_workload_most(&c, study->source) > 0)
                run_case(study, &c);
        }
    perf_case_free(&c);
}
