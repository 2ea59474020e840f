/* SPDX-License-Identifier: BSD-3-Clause */
/* mpix_sparse_perf: times the sparse allreduce against MPI_Allreduce and the allgather scheme, or another
 * collective. */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L /* sigaction, alarm */
#endif

#include <math.h>
#include <mpi.h>
#include <mpix_sparse.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/lib/nodes.h"
#include "bench/lib/device_buffers.h"
#include "bench/lib/options.h"
#include "bench/perf/calibrate.h"
#include "bench/perf/collective.h"
#include "bench/perf/measure.h"
#include "bench/perf/report.h"
#include "bench/perf/row_plan.h"
#include "bench/sim/sim_work.h"
#include "bench/studies/study.h"

enum { EXIT_WRONG = 1, EXIT_USAGE = 2, EXIT_TIMEOUT = 3 };

/* The state of a run. */
struct bench {
    struct perf_world world;
    struct perf_options options;
    struct perf_source source;
    struct perf_report report; /* rank 0 only */
    struct perf_progress progress;
    long long rows, wrong;
};

static double median_of(const struct perf_row_plan *plan, int row)
{
    return row < 0 || plan->row[row].failed ? NAN : plan->row[row].times.median;
}

/* Returns the message replay of a row, or -1. */
static int replay_of(const struct perf_row_plan *plan, int row)
{
    return row + 1 < plan->rows && plan->row[row + 1].original == &plan->row[row] ? row + 1 : -1;
}

static void note_failed(struct bench *bench, const struct perf_row *row)
{
    if (bench->world.rank == 0)
        perf_report_note(&bench->report, "skipped %s, wire %s, partition %s, columns %s, threads %s: %s",
                         row->settings.at[PERF_SETTING_SCHEME], row->settings.at[PERF_SETTING_WIRE],
                         row->settings.at[PERF_SETTING_PARTITION], row->settings.at[PERF_SETTING_COLUMNS],
                         row->settings.at[PERF_SETTING_THREADS], row->error);
}

/* Makes the records of all rows that are to be reported, and prints them. Collective. */
static void report_rows(struct bench *bench, const struct perf_case *c, const struct perf_tensor_stats *stats,
                        const struct perf_row_plan *plan, double cacheline_seconds)
{
    struct perf_case_result result = { perf_alloc((size_t)plan->rows, sizeof *result.record), 0, NULL };

    for (int g = 0; g < plan->groups; g++) {
        const struct perf_row_group *group = &plan->group[g];
        for (int i = group->begin; i < group->end; i++) {
            const struct perf_row *row = &plan->row[i];
            struct perf_baselines baselines = {
                median_of(plan, group->dense),
                median_of(plan, group->allgather),
                median_of(plan, group->memory),
                median_of(plan, replay_of(plan, i)),
                cacheline_seconds,
            };
            if (row->failed && perf_row_is_sparse(row))
                note_failed(bench, row);
            if (row->hidden || row->failed)
                continue;
            perf_record_make(&result.record[result.records++], c, stats, row, baselines);
            bench->rows++;
            bench->wrong += row->wrong > 0 ? row->wrong : 0;
        }
    }
    if (plan->pick >= 0 && !plan->row[plan->pick].failed)
        result.pick = &plan->row[plan->pick].report;
    if (bench->world.rank == 0)
        perf_report_case(&bench->report, &result);
    free(result.record);
}

/* Baselines need only their blocking calls. */
static void overlap_rows(const struct bench *bench, const struct perf_case *c,
                         const struct perf_tensor *tensor, const struct perf_row_plan *plan)
{
    for (int i = 0; i < plan->rows && bench->options.overlap_compute; i++)
        if (perf_row_is_sparse(&plan->row[i]) && !plan->row[i].hidden && !plan->row[i].failed)
            perf_overlap_measure(c, tensor, &plan->row[i]);
}

/* MPIX_Sparse_reduce_scatter takes no other lengths. */
static bool has_equal_parts(const struct perf_case *c)
{
    bool dense = c->options->collective == SAR_REDUCE_SCATTER && c->options->interface == PERF_DENSE;

    return !dense || c->count % (size_t)c->world->ranks == 0;
}

static void run_case(struct bench *bench, const struct perf_case *c)
{
    struct perf_tensor tensor;
    struct perf_tensor_stats stats;
    struct perf_row_plan plan;
    double cacheline_seconds;

    bench->progress.number++;
    if (!has_equal_parts(c)) {
        if (bench->world.rank == 0)
            perf_report_note(&bench->report,
                             "skipped %zu elements: dense parts of %d ranks have equal lengths", c->count,
                             bench->world.ranks);
        return;
    }
    if (!perf_tensor_make(&tensor, c, &bench->source)) {
        if (bench->world.rank == 0)
            perf_report_note(&bench->report,
                             "skipped %zu elements, density %g: more than the %.3g bytes of a rank", c->count,
                             c->density, bench->world.memory);
        return;
    }
    perf_tensor_stats_find(&stats, c, &tensor.first);
    if (bench->options.collective == SAR_ALLGATHER)
        perf_collective_keep_owned(c, &tensor, &stats);
    perf_row_plan_make(&plan, &bench->options, perf_row_plan_max_rows(c, &tensor, &stats),
                       tensor.recv.data != NULL);
    if (bench->world.rank == 0 && tensor.recv.data == NULL)
        perf_report_note(&bench->report,
                         "no MPI_Allreduce and no check on %zu elements: more than the %.3g bytes"
                         " of a rank",
                         c->count, bench->world.memory);
    if (bench->world.rank == 0 && plan.groups > 1)
        perf_report_note(&bench->report, "the rows are measured in %d groups, as memory is short",
                         plan.groups);
    cacheline_seconds = perf_cacheline_seconds(&bench->world);
    for (int g = 0; g < plan.groups; g++)
        perf_measure(c, &tensor, plan.row + plan.group[g].begin, plan.group[g].end - plan.group[g].begin,
                     &bench->progress);
    cacheline_seconds = fmax(cacheline_seconds, perf_cacheline_seconds(&bench->world));
    overlap_rows(bench, c, &tensor, &plan);
    perf_row_plan_mark_choice(&plan, &bench->options);
    perf_progress_erase(&bench->progress);
    report_rows(bench, c, &stats, &plan, cacheline_seconds);
    perf_row_plan_free(&plan);
    perf_tensor_free(&tensor);
}

/* Runs all sizes of one type and reduction. */
static void run_sizes(struct bench *bench, struct perf_case *c)
{
    const struct perf_options *options = &bench->options;

    if (perf_source_size(&bench->source, c)) {
        run_case(bench, c);
        return;
    }
    for (int d = 0; d < options->density.n; d++)
        for (int i = 0; i < options->count.n; i++) {
            perf_case_size(c, (size_t)(options->count.at[i] / options->scale), options->density.at[d]);
            run_case(bench, c);
        }
}

static void run_all(struct bench *bench)
{
    const struct perf_options *options = &bench->options;
    int sizes = bench->source.kind != PERF_RANDOM ? 1 : options->density.n * options->count.n;

    perf_progress_make(&bench->progress, bench->world.rank, sizes * options->type.n * options->op.n);
    for (int t = 0; t < options->type.n; t++)
        for (int o = 0; o < options->op.n; o++) {
            struct perf_case c;
            perf_case_make(&c, &bench->world, options, options->type.at[t], options->op.at[o]);
            run_sizes(bench, &c);
            perf_case_free(&c);
        }
}

static void run_study(struct bench *bench)
{
    struct perf_study study = {
        &bench->world, &bench->options, &bench->source, &bench->report, &bench->progress, 0, 0,
    };

    perf_study_run(&study);
    bench->rows = study.rows;
    bench->wrong = study.wrong;
}

/* MPI_Abort may hang if the signal interrupts MPI. The second signal ends this rank by default. */
static void out_of_time(int number)
{
    enum { GRACE = 5 };
    static const char message[] = "mpix_sparse_perf: out of time (option --timeout)\n";
    ssize_t written = write(STDERR_FILENO, message, sizeof message - 1);

    (void)written;
    signal(number, SIG_DFL);
    alarm(GRACE);
    MPI_Abort(MPI_COMM_WORLD, EXIT_TIMEOUT);
}

static void watch_time(const struct bench *bench)
{
    struct sigaction action;

    memset(&action, 0, sizeof action);
    action.sa_handler = out_of_time;
    action.sa_flags = SA_NODEFER;
    if (bench->options.timeout > 0 && bench->world.rank == 0 && sigaction(SIGALRM, &action, NULL) == 0)
        alarm((unsigned)bench->options.timeout);
}

/* Ranks of a node take its devices in turn; if mixed, the first rank alone takes one. */
static bool open_devices(bool mixed)
{
    int local;
    MPI_Comm node;

    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &local);
    MPI_Comm_free(&node);
    return perf_device_open(local, local == 0 || !mixed);
}

static int run(struct bench *bench)
{
    bool one_rank = bench->options.study == PERF_BALANCE;
    size_t readers = one_rank ? (size_t)bench->options.parts : (size_t)bench->world.ranks;
    size_t least = (size_t)bench->options.batch * readers;
    int ready = 1, written = 1;

    if (bench->options.memory > 0)
        bench->world.memory = (double)bench->options.memory;
    if (bench->options.buffers != PERF_HOST && !open_devices(bench->options.buffers == PERF_MIXED))
        return EXIT_USAGE;
    if (!perf_source_load(&bench->source, &bench->options, least, &bench->world))
        return EXIT_USAGE;
    if (bench->world.rank == 0)
        ready = perf_report_open(&bench->report, &bench->options, &bench->world);
    MPI_Bcast(&ready, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (ready) {
        (bench->options.study != PERF_NO_STUDY ? run_study : run_all)(bench);
        if (bench->world.rank == 0)
            written = perf_report_close(&bench->report);
        MPI_Bcast(&written, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    perf_source_free(&bench->source);
    if (!ready)
        return EXIT_USAGE;
    return bench->wrong > 0 || bench->rows == 0 || !written ? EXIT_WRONG : 0;
}

/* Only one thread calls MPI. A progress thread needs MPI_THREAD_MULTIPLE, which makes other calls slightly
 * slower. */
static int threads_for(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--overlap-compute") == 0)
            return MPI_THREAD_MULTIPLE;
    return MPI_THREAD_FUNNELED;
}

static int calibrate(const struct perf_options *options)
{
    enum { ENOUGH = 10 };
    int rounds = options->iterations < ENOUGH ? (int)options->iterations : ENOUGH;

    return perf_calibrate(options->calibrate, rounds) ? 0 : EXIT_USAGE;
}

/* The sets are random, whatever the options say. */
static int measure_costs(const struct bench *bench)
{
    static const struct perf_source random = { .kind = PERF_RANDOM };
    const struct perf_options *options = &bench->options;

    return perf_measure_costs(options->costs, options, &random, &bench->world) ? 0 : EXIT_USAGE;
}

static bool open_charge(const struct bench *bench)
{
    const struct perf_options *options = &bench->options;
    struct perf_charge charge = { options->charge, (double)options->scale, 1,
                                  options->memory_bandwidth * 1e9 };

    for (int i = 0; i < options->threads.n; i++)
        if (atoi(options->threads.at[i]) > charge.threads)
            charge.threads = atoi(options->threads.at[i]);
    return perf_sim_work_open(&charge, &bench->world);
}

/* Does what the options ask for, and returns the exit status. */
static int run_mode(struct bench *bench)
{
    const struct perf_options *options = &bench->options;

    if (options->charge[0] != '\0' && !open_charge(bench))
        return EXIT_USAGE;
    if (options->calibrate[0] != '\0')
        return calibrate(options);
    return options->costs[0] != '\0' ? measure_costs(bench) : run(bench);
}

int main(int argc, char **argv)
{
    struct bench *bench;
    enum perf_options_status action;
    int status = 0, level;

    MPI_Init_thread(&argc, &argv, threads_for(argc, argv), &level);
    bench = perf_alloc(1, sizeof *bench);
    perf_world_find(&bench->world);
    action = perf_options_read(argc, argv, &bench->world, &bench->options);
    if (action == PERF_RUN && !perf_settings_check(&bench->world, bench->options.calibrate[0] == '\0'))
        action = PERF_BAD_USAGE;
    if (action == PERF_BAD_USAGE)
        status = EXIT_USAGE;
    if (action == PERF_RUN) {
        watch_time(bench);
        perf_nodes_store(&bench->world);
        status = run_mode(bench);
    }
    free(bench);
    MPI_Finalize();
    return status;
}
