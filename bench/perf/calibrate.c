/* SPDX-License-Identifier: BSD-3-Clause */
/* Options --calibrate and --costs.
 *
 * --calibrate repeats the measurement that the library makes when a communicator is first used. The least of
 * many rounds is closest to the machine's constants.
 *
 * --costs runs many kinds of calls on a few tensors, with each number of threads. The trace reports the time
 * and the quantities of each piece of work. The least time of identical calls counts, because other processes
 * may have had the processor. A nonnegative least squares fit of relative errors, over all tensors, splits
 * the times on one thread among pieces, elements, bytes and slots. */

#include "bench/perf/calibrate.h"

#include <errno.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/parallel.h"
#include "bench/perf/cost_reductions.h"
#include "bench/perf/cost_samples.h"
#include "bench/perf/row.h"
#include "comm/collective.h"
#include "comm/calibration.h"
#include "comm/machine.h"
#include "comm/topology.h"

static void keep_least(struct sar_machine *least, const struct sar_machine *m)
{
#define KEEP(constant, key) least->constant = fmin(least->constant, m->constant);
    SAR_MACHINE_CONSTANTS(KEEP)
}

static enum sar_status measure_constants(const struct sar_comm *comm, int rounds,
                                         struct sar_calibration *calibration)
{
    SAR_TRY(sar_fingerprint_make(comm, &calibration->fingerprint));
    SAR_TRY(sar_machine_measure(comm, &calibration->machine));
    for (int i = 1; i < rounds; i++) {
        struct sar_machine again;
        sar_machine_forget();
        SAR_TRY(sar_machine_measure(comm, &again));
        keep_least(&calibration->machine, &again);
    }
    return SAR_OK;
}

static const char *plural(int n)
{
    return n == 1 ? "" : "s";
}

static void print_constants(const char *path, const struct sar_calibration *c)
{
    const struct sar_fingerprint *f = &c->fingerprint;
    const struct sar_machine *m = &c->machine;

    printf("# %s, %d rank%s on %d node%s, %s, %d processor%s\n", f->mpi, f->ranks, plural(f->ranks), f->nodes,
           plural(f->nodes), f->cpu, f->processors, plural(f->processors));
    printf("alpha %.3g s, overhead %.3g s, beta %.3g s/B, gamma %.3g s/element, memory %.3g s/B\n", m->alpha,
           m->overhead, m->beta, m->gamma, m->memory);
    printf("dense_alpha %.3g s, dense_beta %.3g s/B, near_alpha %.3g s, near_overhead %.3g s, "
           "near_beta %.3g s/B\n# written to %s\n",
           m->dense_alpha, m->dense_beta, m->intra_alpha, m->intra_overhead, m->intra_beta, path);
}

/* Rank 0 only. */
static enum sar_status save_calibration(const char *path, const struct sar_calibration *calibration)
{
    char why[256] = "out of memory";
    enum sar_status status = sar_calibration_write(path, calibration, why, sizeof why);

    if (status == SAR_OK)
        print_constants(path, calibration);
    else
        fprintf(stderr, "mpix_sparse_perf: option --calibrate: %s\n", why);
    return status;
}

bool perf_calibrate(const char *path, int rounds)
{
    struct sar_calibration calibration;
    struct sar_comm comm;
    enum sar_status status = sar_comm_open(MPI_COMM_WORLD, &comm);

    if (status != SAR_OK)
        return false;
    memset(&calibration, 0, sizeof calibration);
    status = measure_constants(&comm, rounds, &calibration);
    if (status == SAR_OK && comm.rank == 0)
        status = save_calibration(path, &calibration);
    status = sar_comm_max_status(&comm, status);
    sar_comm_close(&comm);
    return status == SAR_OK;
}

enum { CALLS = 50, WARMUP = 2, NO_CALL = -1 };
enum { SUMMED = 1 << 20 /* bytes */, MAX_SAMPLES = 2048 /* samples of a number of threads */ };

/* A tensor of floats, with row_len floats an element. */
struct tensor {
    size_t count, row_len;
    double density;
    const char *columns; /* in which rows are divided, for balanced; else NULL */
};

/* Rows of two lengths, so that the fit separates elements from bytes; whole rows and slices are handled by
 * different code. Small tensors tell what a piece costs, sparse ones what a slot does. */
static const struct tensor tensors[] = {
    { 8000000, 1, 0.01, NULL },   { 4000000, 1, 0.02, NULL }, { 4000000, 1, 0.04, NULL },
    { 1500000, 1, 0.15, NULL },   { 400000, 1, 0.4, NULL },   { 8000000, 1, 0.0005, NULL },
    { 60000, 64, 0.05, "1" },     { 60000, 64, 0.05, "2" },   { 20000, 512, 0.05, "1" },
    { 20000, 512, 0.05, "2" },    { 100000, 1, 0.05, NULL },  { 4000, 64, 0.05, "1" },
    { 8000000, 1, 0.0001, NULL },
};

/* A kind of call. */
struct call {
    const char *scheme, *wire;
    int interface, order, index;
    bool in_place;
};

/* clang-format off */
static const struct call calls[] = {
    { "balanced", "coo", PERF_COO, PERF_SORTED, PERF_INDEX_AUTO, false },
    { "balanced", "packed", PERF_COO, PERF_SORTED, PERF_INDEX_AUTO, false },
    { "balanced", "elias_fano", PERF_COO, PERF_SORTED, PERF_INDEX_AUTO, false },
    { "balanced", "bitmap", PERF_COO, PERF_SORTED, PERF_INDEX_AUTO, false },
    { "balanced", "hash_bitmap", PERF_COO, PERF_SORTED, PERF_INDEX_AUTO, false },
    { "balanced", "block", PERF_COO, PERF_SORTED, PERF_INDEX_AUTO, false },
    { "balanced", "dense", PERF_COO, PERF_SORTED, PERF_INDEX_AUTO, false },
    { "balanced", "auto", PERF_COO, PERF_SHUFFLED, PERF_INDEX_AUTO, false },
    { "balanced", "auto", PERF_COO, PERF_SORTED, PERF_INT64, false },
    { "balanced", "auto", PERF_DENSE, PERF_SORTED, PERF_INDEX_AUTO, false },
    { "balanced", "auto", PERF_DENSE, PERF_SORTED, PERF_INDEX_AUTO, true },
    { "oktopk", "auto", PERF_COO, PERF_SORTED, PERF_INDEX_AUTO, false },
    { "split_allgather", "auto", PERF_COO, PERF_SORTED, PERF_INDEX_AUTO, false },
    { "recursive_doubling", "auto", PERF_COO, PERF_SORTED, PERF_INDEX_AUTO, false },
    { "shared", "auto", PERF_COO, PERF_SORTED, PERF_INDEX_AUTO, false },
    { "shared", "auto", PERF_DENSE, PERF_SORTED, PERF_INDEX_AUTO, false },
    { "shared", "auto", PERF_DENSE, PERF_SORTED, PERF_INDEX_AUTO, true },
    { "dense", "auto", PERF_COO, PERF_SORTED, PERF_INDEX_AUTO, false },
};
/* clang-format on */

/* Makes a row that runs one scheme. */
static void prepare_row(struct perf_row *row, const struct tensor *on, const struct call *call, int threads)
{
    memset(row, 0, sizeof *row);
    row->kind = PERF_ROW_SPARSE;
    snprintf(row->settings.at[PERF_SETTING_SCHEME], PERF_NAME_MAX, "%s", call->scheme);
    snprintf(row->settings.at[PERF_SETTING_WIRE], PERF_NAME_MAX, "%s", call->wire);
    if (on->columns != NULL)
        snprintf(row->settings.at[PERF_SETTING_COLUMNS], PERF_NAME_MAX, "%s", on->columns);
    snprintf(row->settings.at[PERF_SETTING_THREADS], PERF_NAME_MAX, "%d", threads);
}

static int calls_of(const struct perf_options *options)
{
    return options->iterations < CALLS ? (int)options->iterations : CALLS;
}

static void sample_calls(const struct perf_case *c, const struct perf_tensor *tensor, const struct tensor *on,
                         const struct call *call, int threads, struct perf_samples *least)
{
    struct perf_samples now = perf_samples_make(PERF_SAMPLES);
    const struct sar_trace_hook hook = { &now, NULL, NULL, perf_samples_on_work };
    struct perf_row *row = perf_alloc(1, sizeof *row);

    prepare_row(row, on, call, threads);
    perf_row_open(row, c, tensor);
    for (int i = 0; i < WARMUP + calls_of(c->options) && !row->failed; i++) {
        now.n = 0;
        sar_trace_set_hook(i < WARMUP ? NULL : &hook);
        perf_row_call(row, c, tensor, i % tensor->steps, 0);
        sar_trace_set_hook(NULL);
        perf_samples_keep_least(least, &now);
    }
    perf_row_close(row);
    free(row);
    perf_samples_free(&now);
}

/* The state of --costs. */
struct costs {
    const struct perf_world *world;
    const struct perf_source *source;
    struct perf_options options; /* options of the next calls */
    int call, threads;           /* of the next calls; see struct perf_sample */
    double copy_rate;            /* bytes a second that a copy by one thread reads and writes */
    struct perf_samples all;     /* rank 0 only */
};

static void sample_tensor_calls(struct costs *costs, const struct tensor *on, const struct call *call)
{
    struct perf_samples least = perf_samples_make(PERF_SAMPLES);
    struct perf_options *options = &costs->options;
    struct perf_tensor tensor;
    struct perf_case c;

    options->row_len = (long long)on->row_len;
    options->interface = call->interface;
    options->order = call->order;
    options->index = call->index;
    options->in_place = call->in_place;
    perf_case_make(&c, costs->world, options, options->type.at[0], PERF_SUM);
    perf_case_size(&c, on->count / (size_t)options->scale, on->density);
    if (perf_tensor_make(&tensor, &c, costs->source)) {
        sample_calls(&c, &tensor, on, call, costs->threads, &least);
        perf_tensor_free(&tensor);
    }
    perf_samples_collect(costs->world, &least, costs->call, costs->threads, &costs->all);
    perf_case_free(&c);
    perf_samples_free(&least);
}

/* Samples MPI_Reduce_local, which adds like MPI_Allreduce. */
static void sample_sums(struct costs *costs)
{
    struct perf_samples least = perf_samples_make(PERF_SAMPLES), now = perf_samples_make(1);
    struct perf_block in = perf_block_written(SUMMED), out = perf_block_written(SUMMED);

    for (int i = 0; i < WARMUP + calls_of(&costs->options); i++) {
        struct perf_sample sample = { .kind = PERF_SUM_KIND,
                                      .format = "-",
                                      .quantity = { [PERF_QUANTITY_BYTES] = SUMMED } };
        double start = MPI_Wtime();
        MPI_Reduce_local(in.data, out.data, SUMMED / (int)sizeof(float), MPI_FLOAT, MPI_SUM);
        sample.seconds = MPI_Wtime() - start;
        now.n = 0;
        perf_samples_append(&now, &sample);
        perf_samples_keep_least(&least, &now);
    }
    perf_samples_collect(costs->world, &least, NO_CALL, 1, &costs->all);
    perf_block_free(&in);
    perf_block_free(&out);
    perf_samples_free(&now);
    perf_samples_free(&least);
}

/* Samples the work of the library's measurement of machine constants. */
static bool sample_machine(struct costs *costs)
{
    struct perf_samples least = perf_samples_make(PERF_SAMPLES), now = perf_samples_make(PERF_SAMPLES);
    const struct sar_trace_hook hook = { &now, NULL, NULL, perf_samples_on_work };
    struct sar_machine machine;
    struct sar_comm comm;
    enum sar_status status = sar_comm_open(MPI_COMM_WORLD, &comm);
    bool open = status == SAR_OK;

    for (int i = 0; i < calls_of(&costs->options) && status == SAR_OK; i++) {
        now.n = 0;
        sar_machine_forget();
        sar_trace_set_hook(&hook);
        status = sar_machine_measure(&comm, &machine);
        sar_trace_set_hook(NULL);
        perf_samples_keep_least(&least, &now);
    }
    if (open)
        sar_comm_close(&comm);
    perf_samples_collect(costs->world, &least, NO_CALL, 1, &costs->all);
    perf_samples_free(&now);
    perf_samples_free(&least);
    return status == SAR_OK;
}

/* Samples sums of many vectors on every tensor. Calls below NO_CALL stand for them, one a tensor. */
static void sample_reductions(struct costs *costs)
{
    for (size_t t = 0; t < sizeof tensors / sizeof *tensors; t++) {
        struct perf_samples least = perf_samples_make(PERF_SAMPLES);
        struct perf_reductions like = { tensors[t].count / (size_t)costs->options.scale, tensors[t].row_len,
                                        tensors[t].density };
        struct sar_parallel former = sar_parallel_begin((struct sar_parallel){ .threads = costs->threads });
        perf_sample_reductions(&like, WARMUP + calls_of(&costs->options), &least);
        sar_parallel_end(former);
        perf_samples_collect(costs->world, &least, NO_CALL - 1 - (int)t, costs->threads, &costs->all);
        perf_samples_free(&least);
    }
}

/* Rank 0 copies memory that no cache holds, while the others wait. */
static void measure_copy(struct costs *costs)
{
    const size_t bytes = ((size_t)256 << 20) / (size_t)costs->options.scale;
    double least = INFINITY;

    if (costs->world->rank == 0) {
        struct perf_block from = perf_block_written(bytes), to = perf_block_written(bytes);
        for (int i = 0; i < WARMUP + calls_of(&costs->options); i++) {
            double start = MPI_Wtime();
            memcpy(to.data, from.data, bytes);
            least = fmin(least, MPI_Wtime() - start);
        }
        costs->copy_rate = 2 * (double)bytes / least;
        perf_block_free(&from);
        perf_block_free(&to);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void write_head(FILE *file, const struct costs *costs)
{
    char day[32], mpi[SAR_FINGERPRINT_CHARS];
    time_t now = time(NULL);

    strftime(day, sizeof day, "%Y-%m-%d", gmtime(&now));
    sar_fingerprint_mpi_version(mpi);
    fprintf(file, "{\n\"cpu\": \"%s\",\n\"processors\": %d,\n\"mpi\": \"%s\",\n\"date\": \"%s\",\n",
            sar_topology_cpu_model(), sar_topology_cpus(), mpi, day);
    fprintf(file, "\"command\": \"mpirun -n %d mpix_sparse_perf --costs FILE -n %d", costs->world->ranks,
            calls_of(&costs->options));
    for (int i = 0; i < costs->options.threads.n && costs->options.threads_given; i++)
        fprintf(file, "%s%s", i == 0 ? " --threads " : ",", costs->options.threads.at[i]);
    fprintf(file, "\",\n\"copy_gbs\": %.4g,\n\"costs\": [\n", costs->copy_rate / 1e9);
}

/* True if no earlier sample has this kind, format and number of threads. */
static bool is_new(const struct perf_samples *all, int i)
{
    for (int j = 0; j < i; j++)
        if (all->at[i].threads == all->at[j].threads && strcmp(all->at[i].kind, all->at[j].kind) == 0 &&
            strcmp(all->at[i].format, all->at[j].format) == 0)
            return false;
    return true;
}

/* Sets the numbers of a cost, whose names and threads are set. Returns the largest relative error. */
static double fit(const struct perf_samples *all, struct perf_work_cost *cost)
{
    struct perf_work_cost one = *cost;
    double misfit;

    one.threads = 1;
    misfit = perf_samples_fit(all, &one);
    if (cost->threads > 1)
        return perf_samples_fit_threads(all, &one, cost);
    *cost = one;
    return misfit;
}

static void write_costs(FILE *file, const struct perf_samples *all)
{
    for (int i = 0; i < all->n; i++) {
        struct perf_work_cost cost = { .threads = all->at[i].threads };
        if (!is_new(all, i))
            continue;
        memcpy(cost.kind, all->at[i].kind, sizeof cost.kind);
        memcpy(cost.format, all->at[i].format, sizeof cost.format);
        double misfit = fit(all, &cost);
        fprintf(file, i == 0 ? "" : ",\n");
        perf_work_cost_write(file, &cost, misfit);
        printf("%-10s %-12s %8.0f ns a piece, %7.3f an element, %7.4f a byte, %7.4f a slot by %d thread%s; "
               "within %.0f %%\n",
               cost.kind, cost.format, cost.piece * 1e9, cost.element * 1e9, cost.byte * 1e9, cost.slot * 1e9,
               cost.threads, plural(cost.threads), misfit * 100);
    }
    fprintf(file, "\n]\n}\n");
}

static bool print_write_error(const char *path)
{
    fprintf(stderr, "mpix_sparse_perf: option --costs: cannot write '%s': %s\n", path, strerror(errno));
    return false;
}

/* Called before minutes of measuring. Leaves an existing file alone. */
static bool is_writable(const char *path)
{
    struct stat status;
    bool is_new = lstat(path, &status) != 0;
    FILE *file = fopen(path, "a");

    if (file == NULL)
        return print_write_error(path);
    fclose(file);
    if (is_new)
        unlink(path);
    return true;
}

/* Rank 0 only. */
static bool save_costs(const char *path, const struct costs *costs)
{
    FILE *file = fopen(path, "w");
    bool written = file != NULL;

    if (written) {
        write_head(file, costs);
        write_costs(file, &costs->all);
        written = !ferror(file);
        written &= fclose(file) == 0;
    }
    return written || print_write_error(path);
}

static bool broadcast_bool(int good)
{
    MPI_Bcast(&good, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return good;
}

/* Samples all calls, each with all numbers of threads in turn. */
static void sample_all(struct costs *costs, const struct perf_counts *threads)
{
    enum { TENSORS = sizeof tensors / sizeof *tensors, CALLS_OF_TENSOR = sizeof calls / sizeof *calls };

    for (int n = 0; n < threads->n; n++) {
        costs->threads = (int)threads->at[n];
        sample_reductions(costs);
    }
    for (int t = 0; t < TENSORS; t++)
        for (int i = 0; i < CALLS_OF_TENSOR; i++)
            for (int n = 0; n < threads->n; n++) {
                costs->call = t * CALLS_OF_TENSOR + i;
                costs->threads = (int)threads->at[n];
                sample_tensor_calls(costs, &tensors[t], &calls[i]);
            }
}

/* Returns 1 and the other numbers of threads that the options ask for. */
static struct perf_counts numbers_of_threads(const struct perf_options *options)
{
    struct perf_counts threads = { 1, { 1 } };

    for (int i = 0; i < options->threads.n && options->threads_given; i++) {
        int asked = atoi(options->threads.at[i]), j = 0;
        while (j < threads.n && threads.at[j] != asked)
            j++;
        if (j == threads.n && j < PERF_LIST_MAX)
            threads.at[threads.n++] = asked;
    }
    return threads;
}

/* Threads that wait for a processor make costs too high. */
static void warn_of_few_processors(const struct perf_counts *threads, const struct perf_world *world)
{
    long long most = 1;

    for (int i = 0; i < threads->n; i++)
        most = threads->at[i] > most ? threads->at[i] : most;
    if (world->rank == 0 && most > 1 && most * world->node_ranks > sar_topology_cpus())
        fprintf(stderr,
                "mpix_sparse_perf: warning: option --threads: %lld of each of %d ranks are more than the "
                "%d processors\n",
                most, world->node_ranks, sar_topology_cpus());
}

bool perf_measure_costs(const char *path, const struct perf_options *options,
                        const struct perf_source *source, const struct perf_world *world)
{
    struct perf_counts threads = numbers_of_threads(options);
    struct costs *costs;
    bool good;

    if (!broadcast_bool(world->rank != 0 || is_writable(path)))
        return false;
    costs = perf_alloc(1, sizeof *costs);
    *costs =
        (struct costs){ world, source, *options, NO_CALL, 1, 0, perf_samples_make(threads.n * MAX_SAMPLES) };
    warn_of_few_processors(&threads, world);
    good = sample_machine(costs);
    sample_sums(costs);
    measure_copy(costs);
    if (good)
        sample_all(costs, &threads);
    if (good && world->rank == 0)
        good = save_costs(path, costs);
    perf_samples_free(&costs->all);
    free(costs);
    return broadcast_bool(good);
}
