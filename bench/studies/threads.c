/* SPDX-License-Identifier: BSD-3-Clause */
/* Study `threads`: the library's loops on 1, 2, 4 … threads of one process, next to a copy by as many
 * threads.
 *
 * A call on one thread precedes each call on several, so that both have the same state of the machine. A
 * row of one thread compares such calls with each other; its speed-up is 1 but for noise. A result that
 * depends on the number of threads counts as wrong. */

#include <stdlib.h>

#include "base/parallel.h"
#include "bench/lib/stats.h"
#include "bench/studies/thread_work.h"
#include "comm/topology.h"
#include "vector/magnitude.h"

struct record {
    const char *study, *work, *wire;
    long long count, row_len, parts, piece, threads, elements, bytes, iterations, wrong;
    double density, median, serial_median, min, serial_min, element_rate, byte_rate, speedup, copy_rate,
        copy_speedup, relative;
};

#define FIELD(key, kind, member) PERF_FIELD(record, key, kind, member)

static const struct perf_field fields[] = {
    FIELD("study", PERF_TEXT, study),
    FIELD("count", PERF_INTEGER, count),
    FIELD("row", PERF_INTEGER, row_len),
    FIELD("density", PERF_REAL, density),
    FIELD("parts", PERF_INTEGER, parts),
    FIELD("work", PERF_TEXT, work),
    FIELD("wire", PERF_TEXT, wire),
    FIELD("threads", PERF_INTEGER, threads),
    FIELD("elements", PERF_INTEGER, elements),
    FIELD("bytes", PERF_INTEGER, bytes),
    FIELD("serial_median_s", PERF_REAL, serial_median),
    FIELD("median_s", PERF_REAL, median),
    FIELD("serial_min_s", PERF_REAL, serial_min),
    FIELD("min_s", PERF_REAL, min),
    FIELD("elements_per_s", PERF_REAL, element_rate),
    FIELD("gbs", PERF_REAL, byte_rate),
    FIELD("copy_gbs", PERF_REAL, copy_rate),
    FIELD("speedup", PERF_REAL, speedup),
    FIELD("copy_speedup", PERF_REAL, copy_speedup),
    FIELD("relative", PERF_REAL, relative),
    FIELD("wrong", PERF_INTEGER, wrong),
    FIELD("iterations", PERF_INTEGER, iterations),
    FIELD("piece", PERF_INTEGER, piece),
};
static const struct perf_schema schema = PERF_SCHEMA(fields);

static const double densities[] = { 0.01, 0.1 };

enum { COUNT = 1 << 22, WARMUP = 2 };

/* Sets the measured fields of a record with these threads. */
static void measure(struct perf_thread_job *job, const struct perf_thread_work *work, struct record *record)
{
    double *one = perf_alloc(job->iterations, sizeof *one), *all = perf_alloc(job->iterations, sizeof *all);
    struct perf_times serial, several;
    uint64_t expected = 0, got = 0;

    for (size_t i = 0; i < job->iterations + WARMUP; i++) {
        size_t at = i < WARMUP ? 0 : i - WARMUP;
        one[at] = perf_thread_call(job, work, 1, i == 0 ? &expected : NULL);
        all[at] = perf_thread_call(job, work, (int)record->threads, i == 0 ? &got : NULL);
    }
    serial = perf_times_of(one, (int)job->iterations);
    several = perf_times_of(all, (int)job->iterations);
    record->work = work->name;
    record->wrong = expected != got;
    record->iterations = (long long)job->iterations;
    record->elements = (long long)job->elements;
    record->bytes = (long long)job->bytes;
    record->serial_median = serial.median;
    record->serial_min = serial.min;
    record->median = several.median;
    record->min = several.min;
    record->element_rate = (double)job->elements / record->median;
    record->byte_rate = (double)job->bytes / record->median / 1e9;
    record->speedup = record->serial_median / record->median;
    free(one);
    free(all);
}

static void add(struct perf_study *study, struct record *record)
{
    record->relative = record->speedup / record->copy_speedup;
    study->wrong += record->wrong;
    perf_study_add(study, record);
}

/* Adds a row for the work in each format that can hold the vector. */
static void run_formats(struct perf_study *study, struct perf_thread_job *job,
                        const struct perf_thread_work *work, struct record *record)
{
    for (size_t i = 0; sar_wires[i] != NULL; i++) {
        job->payload_bytes = sar_wire_bytes(sar_wires[i], &job->layout, &job->vec);
        if (job->payload_bytes > (uint64_t)PTRDIFF_MAX)
            continue;
        job->wire = sar_wires[i];
        job->payload = perf_alloc((size_t)job->payload_bytes, 1);
        perf_thread_messages_open(job);
        record->wire = job->wire->name;
        measure(job, work, record);
        add(study, record);
        perf_thread_messages_close(job);
        free(job->payload);
    }
    record->wire = NULL;
}

static void run_threads(struct perf_study *study, struct perf_thread_job *job, struct record *record)
{
    measure(job, &perf_thread_copy, record);
    record->copy_rate = record->byte_rate;
    record->copy_speedup = record->speedup;
    add(study, record);
    for (const struct perf_thread_work *work = perf_thread_works; work->name != NULL; work++) {
        if (work->single_floats && (job->desc.row_len > 1 || !sar_magnitude_defined(job->desc.dtype)))
            continue;
        if (work->bitmaps && job->bitmaps == NULL)
            continue;
        if (work->per_format) {
            run_formats(study, job, work, record);
            continue;
        }
        measure(job, work, record);
        add(study, record);
    }
}

/* Returns the processors that this process may use. */
static int processors(void)
{
    struct sar_cpuset set;
    int quota = sar_topology_cgroup_cpus(), all;

    sar_topology_cpuset(0, &set);
    all = sar_cpuset_count(&set);
    return quota > 0 && quota < all ? quota : all;
}

/* Returns the largest number of threads of the study. */
static int most_threads(const struct perf_options *options)
{
    int most = 0;

    for (int i = 0; i < options->threads.n; i++) {
        int asked = options->threads_given ? atoi(options->threads.at[i]) : 0;
        if (asked == 0) /* auto */
            asked = processors();
        most = asked > most ? asked : most;
    }
    return most;
}

/* Returns the bytes to copy: more than the caches hold, and two pieces for each thread. */
static size_t copied_bytes(const struct perf_study *study, int threads)
{
    const size_t least = 256 << 20, most = (size_t)study->world->memory / 8;
    size_t bytes = 2 * (size_t)threads * PERF_COPY_PIECE;

    bytes = bytes > least ? bytes : least;
    return bytes < most ? bytes : most;
}

/* Runs 1, 2, 4 … threads, and in the end the most. */
static void run_case(struct perf_study *study, const struct perf_case *c, const struct perf_copied *copied)
{
    int most = most_threads(study->options);
    struct perf_thread_job job = perf_thread_job_make(study, c, copied);
    struct record record = { .study = perf_study_name(PERF_THREADS),
                             .count = (long long)c->count,
                             .row_len = (long long)c->row_len,
                             .density = c->density,
                             .parts = study->options->parts,
                             .piece = study->options->piece };

    for (int threads = 1; job.vec.nnz > 0; threads = threads > most / 2 ? most : 2 * threads) {
        record.threads = threads;
        run_threads(study, &job, &record);
        if (threads == most)
            break;
    }
    perf_thread_job_free(&job);
}

void perf_study_threads(struct perf_study *study)
{
    static const struct perf_world one_rank = { .rank = 0, .ranks = 1 };
    struct perf_counts counts = perf_study_counts(study, COUNT);
    struct perf_reals at = perf_study_densities(study, densities, 2);
    struct perf_copied copied;
    struct perf_case c;

    if (study->world->rank != 0)
        return;
    sar_parallel_piece_bytes = (size_t)study->options->piece;
    copied.bytes = copied_bytes(study, most_threads(study->options));
    copied.from = perf_block_written(copied.bytes);
    copied.to = perf_block_written(copied.bytes);
    perf_study_table(study, &schema);
    perf_case_make(&c, &one_rank, study->options, study->options->type.at[0], study->options->op.at[0]);
    for (int i = 0; i < counts.n; i++)
        for (int d = 0; d < at.n; d++) {
            perf_case_size(&c, (size_t)counts.at[i], at.at[d]);
            run_case(study, &c, &copied);
        }
    perf_case_free(&c);
    perf_block_free(&copied.from);
    perf_block_free(&copied.to);
}
