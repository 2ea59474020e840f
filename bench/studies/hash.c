/* SPDX-License-Identifier: BSD-3-Clause */
/* Study `hash`: time of Algorithm 1 of the Zen paper on one host thread, for several sizes of memory and
 * numbers of hash functions, and of the lossy hash; and of three ways to make a rank's parts: the partitions
 * `hash` and `hierarchical` of the library, on 1, 2, 4 … threads, and a hash of each index.
 *
 * All methods of the first kind, and then all of the second, are timed in turn in each iteration; the first
 * iteration does not count. serial_share is
 * measured with serial memory for all occurrences. Timed runs have the paper's r2 = r1 / 10 and run again
 * after an overflow. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/parallel.h"
#include "bench/lib/stats.h"
#include "bench/studies/index_hash.h"
#include "bench/studies/study.h"
#include "hash/hierarchical.h"
#include "vector/partition.h"
#include "vector/partition_hierarchical.h"

/* The lossy hash of the Zen paper (appendix, Algorithm 2): one hash function picks a part and a cell of the
 * part's memory, and the last writer of a cell wins. The library has no such hash. */
struct lossy_hash {
    uint32_t parts, seed;
    size_t cells; /* of each part; fewer than 2^32 in all parts together */
};

/* The paper's x[p][q] = idx, in sequence. Like in the library, a cell holds a position plus 1. */
static void fill(const struct lossy_hash *parameters, const struct sar_hash_input *input, uint32_t *cell)
{
    uint32_t cells = (uint32_t)(parameters->cells * parameters->parts);

    for (size_t i = 0; i < input->nnz; i++) {
        uint64_t index = sar_hash_index(input, i);
        uint32_t bits = input->index_size == 4 ? sar_murmur3((uint32_t)index, parameters->seed)
                                               : sar_murmur3_u64(index, parameters->seed);
        cell[sar_hash_range(bits, cells)] = (uint32_t)i + 1;
    }
}

/* The paper's nonzero(x[p]) for all parts. */
static void collect(const struct lossy_hash *parameters, const uint32_t *cell, struct sar_hash_output *out)
{
    size_t n = 0;

    for (uint32_t p = 0; p < parameters->parts; p++) {
        out->first[p] = n;
        for (size_t i = p * parameters->cells; i < (p + 1) * parameters->cells; i++)
            if (cell[i] != 0)
                out->position[n++] = cell[i] - 1;
    }
    out->first[parameters->parts] = n;
}

static void gather(const void *from, size_t size, const struct sar_hash_output *out, size_t n, void *to)
{
    for (size_t i = 0; i < n; i++)
        memcpy((char *)to + i * size, (const char *)from + out->position[i] * size, size);
}

/* Sorts the surviving occurrences into parts. Fewer than 2^32 - 1 occurrences. The output lives in the
 * arena; out->first[parts] is the number of survivors. */
static enum sar_status lossy_hash_run(const struct lossy_hash *parameters, const struct sar_hash_input *input,
                                      struct sar_arena *arena, struct sar_hash_output *out)
{
    struct sar_hash_output made = { 0 };
    void *cell, *first, *position;

    SAR_TRY(sar_arena_alloc_zeroed(arena, parameters->cells * parameters->parts, sizeof(uint32_t), &cell));
    SAR_TRY(sar_arena_alloc(arena, (size_t)parameters->parts + 1, sizeof *made.first, &first));
    SAR_TRY(sar_arena_alloc(arena, input->nnz, sizeof *made.position, &position));
    SAR_TRY(sar_arena_alloc(arena, input->nnz, input->index_size, &made.index));
    SAR_TRY(sar_arena_alloc(arena, input->nnz, input->value_size, &made.value));
    made.first = first;
    made.position = position;
    fill(parameters, input, cell);
    collect(parameters, cell, &made);
    gather(input->index, input->index_size, &made, made.first[parameters->parts], made.index);
    gather(input->value, input->value_size, &made, made.first[parameters->parts], made.value);
    *out = made;
    return SAR_OK;
}

/* Returns the expected lost share of n distinct indices in c n cells, for large n. */
static double lossy_hash_loss(double c)
{
    return 1 + c * expm1(-1 / c);
}

struct record {
    const char *study, *method;
    long long parts, count, nnz, threads, hashes, cells, reruns, lost;
    double density, memory, serial_share, loss, expected_loss, seconds, nanoseconds, relative;
};

#define FIELD(key, kind, member) PERF_FIELD(record, key, kind, member)

static const struct perf_field fields[] = {
    FIELD("study", PERF_TEXT, study),        FIELD("count", PERF_INTEGER, count),
    FIELD("density", PERF_REAL, density),    FIELD("nnz", PERF_INTEGER, nnz),
    FIELD("parts", PERF_INTEGER, parts),     FIELD("method", PERF_TEXT, method),
    FIELD("threads", PERF_INTEGER, threads), FIELD("memory", PERF_REAL, memory),
    FIELD("hashes", PERF_INTEGER, hashes),   FIELD("serial_share", PERF_REAL, serial_share),
    FIELD("reruns", PERF_INTEGER, reruns),   FIELD("lost", PERF_INTEGER, lost),
    FIELD("loss", PERF_REAL, loss),          FIELD("expected_loss", PERF_REAL, expected_loss),
    FIELD("median_s", PERF_REAL, seconds),   FIELD("element_ns", PERF_REAL, nanoseconds),
    FIELD("relative", PERF_REAL, relative),
};
static const struct perf_schema schema = PERF_SCHEMA(fields);

/* Multiples of the nonzeros: parallel cells of all parts together. */
static const double densities[] = { 0.1 }, memories[] = { 1, 2, 3, 4 },
                    lossy_memories[] = { 1, 2, 2.5, 4, 10, 40 };
static const char levels[] = "levels", paper[] = "paper", lossy[] = "strawman", counted[] = "hash",
                  hashed[] = "hierarchical", by_index[] = "index_hash";

enum {
    COUNT = 1 << 22,
    HASHES = 4,
    SERIAL_SHARE = 10,
    LEAST_SERIAL = 16,
    WARMUP = 1,
    THREADS = 64,
    MAX_RECORDS = 64,
    INDEX_HASH_MAX = 1 << 28 /* elements of a tensor whose table of slots, of 1 GiB, is made */
};

/* The input of all methods, and their records. */
struct job {
    struct sar_partition_map map;
    struct sar_vec_desc desc;
    struct sar_spvec vec;
    struct sar_hash_input input;
    struct sar_spvec *part; /* the last split's */
    struct sar_arena arena, split_arena;
    struct perf_index_hash *index_hash; /* NULL: too many elements or parts */
    uint32_t seed;
    size_t max_load; /* occurrences of the largest part */
    struct record record[MAX_RECORDS];
    int records;
};

static size_t cells_of(const struct job *job, double memory)
{
    return (size_t)ceil(memory * (double)job->input.nnz / job->map.parts);
}

static struct sar_hierarchical_params parameters_of(const struct job *job, const struct record *record,
                                                    bool ample)
{
    struct sar_hierarchical_params parameters =
        sar_hierarchical_params_make(job->input.nnz, job->map.parts, job->seed);

    parameters.paper = record->method == paper;
    parameters.hashes = (unsigned)record->hashes;
    parameters.parallel_cells = cells_of(job, record->memory);
    parameters.serial_cells = parameters.parallel_cells / SERIAL_SHARE;
    if (parameters.serial_cells < LEAST_SERIAL)
        parameters.serial_cells = LEAST_SERIAL;
    if (ample)
        parameters.serial_cells = job->max_load;
    return parameters;
}

static size_t max_part_load(const struct job *job)
{
    size_t *part = perf_alloc(job->map.parts, sizeof *part), most = 0;

    for (size_t i = 0; i < job->input.nnz; i++) {
        size_t n = ++part[sar_partition_map_locate(&job->map, sar_hash_index(&job->input, i)).part];
        most = n > most ? n : most;
    }
    free(part);
    return most;
}

static bool is_split(const struct record *record)
{
    return record->method == counted || record->method == hashed || record->method == by_index;
}

/* Makes the parts once, as the library does. They live in the arena until the next call. */
static struct sar_hash_stats split(struct job *job, const struct record *record)
{
    struct sar_parallel former = sar_parallel_begin((struct sar_parallel){ .threads = (int)record->threads });
    struct sar_hash_stats stats = { 0 };

    sar_arena_reset(&job->split_arena);
    if (record->method == counted)
        perf_study_require(
            sar_partition_split(&job->map, &job->desc, &job->vec, &job->split_arena, job->part));
    else if (record->method == by_index)
        perf_study_require(
            perf_index_hash_split(job->index_hash, &job->desc, &job->vec, &job->split_arena, job->part));
    else
        perf_study_require(sar_partition_hierarchical(NULL, &job->map, &job->desc, &job->vec,
                                                      &job->split_arena, NULL, job->part, &stats));
    sar_parallel_end(former);
    return stats;
}

/* Hashes once. The result lives in the arena until the next call. */
static struct sar_hash_output hash(struct job *job, const struct record *record, bool ample)
{
    struct sar_hash_output out;

    sar_arena_reset(&job->arena);
    if (record->method == lossy) {
        struct lossy_hash parameters = { job->map.parts, job->seed, cells_of(job, record->memory) };
        perf_study_require(lossy_hash_run(&parameters, &job->input, &job->arena, &out));
    } else {
        struct sar_hierarchical_params parameters = parameters_of(job, record, ample);
        perf_study_require(sar_hierarchical_hash(&parameters, &job->map, &job->input, &job->arena, &out));
    }
    return out;
}

/* Returns the occurrences that are missing, in a wrong part, or with a wrong value. */
static long long count_lost(const struct job *job, const struct record *record,
                            const struct sar_hash_output *out)
{
    const struct sar_hash_input *input = &job->input;
    char *found = perf_alloc(input->nnz, 1);
    long long left = 0;

    for (uint32_t p = 0; p < job->map.parts; p++)
        for (size_t i = out->first[p]; i < out->first[p + 1]; i++) {
            size_t at = out->position[i];
            uint64_t index = sar_hash_index(input, at);
            bool owned = record->method == lossy || sar_partition_map_locate(&job->map, index).part == p;
            bool same = sar_index_get(out->index, input->index_size, i) == index &&
                        memcmp((const char *)out->value + i * input->value_size,
                               (const char *)input->value + at * input->value_size, input->value_size) == 0;
            left += owned && same && found[at] == 0;
            found[at] = 1;
        }
    free(found);
    return (long long)input->nnz - left;
}

/* Returns the elements that are not in their place of their part. */
static long long count_misplaced(const struct job *job)
{
    size_t *next = perf_alloc(job->map.parts, sizeof *next), bytes = job->input.value_size, good = 0;

    for (size_t i = 0; i < job->vec.nnz; i++) {
        struct sar_slot at = sar_partition_map_locate(&job->map, sar_hash_index(&job->input, i));
        const struct sar_spvec *part = &job->part[at.part];
        size_t k = next[at.part]++;
        good += k < part->nnz && ((const uint32_t *)part->index)[k] == at.slot &&
                memcmp((const char *)part->value + k * bytes, (const char *)job->vec.value + i * bytes,
                       bytes) == 0;
    }
    free(next);
    return (long long)(job->vec.nnz - good);
}

static void measure_split(struct job *job, struct record *record)
{
    struct sar_hash_stats stats = split(job, record);

    record->lost =
        record->method == by_index
            ? (long long)perf_index_hash_misplaced(job->index_hash, &job->desc, &job->vec, job->part)
            : count_misplaced(job);
    record->loss = (double)record->lost / (double)job->input.nnz;
    record->reruns = record->method == hashed ? (long long)stats.reruns : -1;
    record->serial_share = record->method == hashed ? (double)stats.serial / (double)job->input.nnz : NAN;
}

/* Sets the figures that need no clock. */
static void measure_losses(struct job *job, struct record *record)
{
    if (is_split(record)) {
        measure_split(job, record);
        return;
    }
    struct sar_hash_output out = hash(job, record, false);

    record->lost = count_lost(job, record, &out);
    record->loss = (double)record->lost / (double)job->input.nnz;
    record->expected_loss = record->method == lossy ? lossy_hash_loss(record->memory) : 0;
    record->reruns = record->method == lossy ? -1 : (long long)out.reruns;
    record->serial_share = NAN;
    if (record->method != lossy)
        record->serial_share = (double)hash(job, record, true).serial_count / (double)job->input.nnz;
}

/* Times the records of splits, or the others, in turn. */
static void time_turns(struct job *job, bool splits, int iterations, double *seconds)
{
    for (int i = -WARMUP; i < iterations; i++)
        for (int k = 0; k < job->records; k++) {
            if (is_split(&job->record[k]) != splits)
                continue;
            double start = MPI_Wtime();
            if (splits)
                split(job, &job->record[k]);
            else
                hash(job, &job->record[k], false);
            seconds[k * iterations + (i < 0 ? 0 : i)] = MPI_Wtime() - start;
        }
}

static void time_all(struct job *job, int iterations)
{
    double *seconds = perf_alloc((size_t)(job->records * iterations), sizeof *seconds), best = INFINITY;

    time_turns(job, false, iterations, seconds);
    time_turns(job, true, iterations, seconds);
    for (int k = 0; k < job->records; k++) {
        struct record *record = &job->record[k];
        record->seconds = perf_times_of(seconds + k * iterations, iterations).median;
        record->nanoseconds = record->seconds * 1e9 / (double)job->input.nnz;
        if (record->method != lossy)
            best = fmin(best, record->seconds);
    }
    for (int k = 0; k < job->records; k++)
        job->record[k].relative = job->record[k].seconds / best;
    free(seconds);
}

static struct record *add(struct job *job, const struct record *first, const char *method, double memory,
                          int hashes)
{
    struct record *record = &job->record[job->records++];

    *record = *first;
    record->method = method;
    record->memory = memory;
    record->hashes = hashes;
    record->threads = 1;
    return record;
}

/* The library's partitions, hierarchical hashing with the paper's memory and number of hash functions. */
static void add_splits(struct job *job, const struct record *first)
{
    struct sar_hierarchical_params params = sar_hierarchical_params_make(job->input.nnz, job->map.parts, 0);
    double memory = (double)params.parallel_cells * job->map.parts / (double)job->input.nnz;
    int limit = sar_parallel_limit(0);

    if (job->index_hash != NULL)
        add(job, first, by_index, 0, 1);
    for (int threads = 1; threads <= limit && threads <= THREADS; threads *= 2) {
        add(job, first, counted, 0, -1)->threads = threads;
        add(job, first, hashed, memory, (int)params.hashes)->threads = threads;
    }
}

static void add_records(struct job *job, const struct record *first)
{
    for (int variant = 0; variant < 2; variant++)
        for (size_t m = 0; m < sizeof memories / sizeof *memories; m++)
            for (int k = 1; k <= HASHES; k++)
                add(job, first, variant == 0 ? levels : paper, memories[m], k);
    for (size_t m = 0; m < sizeof lossy_memories / sizeof *lossy_memories; m++)
        if ((double)(cells_of(job, lossy_memories[m]) * job->map.parts) < UINT32_MAX)
            add(job, first, lossy, lossy_memories[m], 1);
    add_splits(job, first);
}

static void run_case(struct perf_study *study, const struct perf_case *c)
{
    struct perf_set set = perf_workload_draw(c, study->source, 0, 1);
    struct job *job = perf_alloc(1, sizeof *job);
    struct record first = { .study = perf_study_name(PERF_HASH),
                            .parts = study->options->parts,
                            .count = (long long)c->count,
                            .density = c->density,
                            .nnz = (long long)set.n };

    job->map = perf_study_map(study, c->count, set.n);
    job->vec = perf_study_vector_make(c, &set);
    job->part = perf_alloc(job->map.parts, sizeof *job->part);
    job->desc = (struct sar_vec_desc){ .count = c->count,
                                       .row_len = c->row_len,
                                       .element_size = c->element_bytes,
                                       .index_size = sar_index_size(c->count) };
    job->seed = (uint32_t)study->options->seed;
    job->input = (struct sar_hash_input){ job->vec.index, job->vec.value, sar_index_size(c->count),
                                          c->element_bytes, set.n };
    job->max_load = max_part_load(job);
    if (c->count <= INDEX_HASH_MAX && job->map.parts <= UINT16_MAX)
        job->index_hash = perf_index_hash_make(c->count, job->map.parts, job->seed);
    add_records(job, &first);
    for (int k = 0; k < job->records; k++)
        measure_losses(job, &job->record[k]);
    time_all(job, (int)study->options->iterations);
    for (int k = 0; k < job->records; k++) {
        study->wrong += job->record[k].method == lossy ? 0 : job->record[k].lost;
        perf_study_add(study, &job->record[k]);
    }
    sar_arena_free(&job->arena);
    sar_arena_free(&job->split_arena);
    free(job->part);
    perf_index_hash_free(job->index_hash);
    perf_study_vector_free(&job->vec);
    perf_set_free(&set);
    free(job);
}

void perf_study_hash(struct perf_study *study)
{
    static const struct perf_world one_rank = { .rank = 0, .ranks = 1 };
    struct perf_counts counts = perf_study_counts(study, COUNT);
    struct perf_reals at = perf_study_densities(study, densities, 1);
    struct perf_case c;

    if (study->world->rank != 0)
        return;
    perf_study_table(study, &schema);
    perf_case_make(&c, &one_rank, study->options, study->options->type.at[0], PERF_SUM);
    for (int i = 0; i < counts.n; i++)
        for (int d = 0; d < at.n; d++) {
            perf_case_size(&c, (size_t)counts.at[i], at.at[d]);
            if (perf_workload_max(&c, study->source) > 0)
                run_case(study, &c);
        }
    perf_case_free(&c);
}
