/* SPDX-License-Identifier: BSD-3-Clause */
/* The trace hook that models work. */

#include "bench/sim/sim_work.h"

#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include "base/parallel.h"
#include "bench/sim/thread_cost.h"

/* bench/sim/smpi_work.h defines them for simulations. */
#ifndef PERF_SIM_SLEEP
#define PERF_SIM_SLEEP(seconds) ((void)(seconds))
#define PERF_SIM_THREAD_RATIO(ratio) ((void)(ratio))
#define PERF_SIM_REDUCE_COST(seconds) ((void)(seconds))
#define PERF_SIM_ALIGN() ((void)0)
#endif

static struct {
    struct perf_work_cost_list costs;
    struct perf_thread_limits limits;
    bool is_root; /* prints the costs that are missing in the file */
    struct perf_sim_work total;
} charged = { .limits = { .threads = 1 } };

static const struct sar_trace_hook hook = { NULL, NULL, NULL, perf_sim_work_on_work };

/* Appends a cost of zero, so that the warning is printed once. */
static void add_missing_cost(const char *kind, const char *format)
{
    struct perf_work_cost cost = { .threads = 1 };

    if (charged.is_root)
        fprintf(stderr, "mpix_sparse_perf: option --charge: the file has no cost of '%s %s'\n", kind, format);
    snprintf(cost.kind, sizeof cost.kind, "%s", kind);
    snprintf(cost.format, sizeof cost.format, "%s", format);
    perf_work_cost_append(&charged.costs, &cost);
}

/* Returns the words that follow the name of the file, or NULL. */
static const char *find_problem(const struct perf_charge *charge)
{
    int measured = perf_work_cost_threads(&charged.costs);

    if (charge->threads > 1 && measured < 2)
        return "has costs of one thread only; --costs FILE --threads 2 measures those of two";
    if (charge->threads > measured && charge->memory_bandwidth == 0 && charged.costs.copy_rate == 0)
        return "has no number called copy_gbs, and so needs --memory-bandwidth";
    return NULL;
}

static bool load(const struct perf_charge *charge, const struct perf_world *world)
{
    const char *problem;

    if (!perf_work_cost_read(&charged.costs, charge->path, world))
        return false;
    problem = find_problem(charge);
    if (problem != NULL && charged.is_root)
        fprintf(stderr, "mpix_sparse_perf: option --charge: '%s' %s\n", charge->path, problem);
    return problem == NULL;
}

/* The reduction that src/comm/thread_ratio.c measures, with pieces for each thread. */
static double thread_ratio(int threads)
{
    struct sar_span_work work = sar_span_work_make("reduce", 1 << 24, sizeof(float), 0);
    struct perf_thread_limits limits = { .threads = threads,
                                         .scale = 1,
                                         .bandwidth = charged.limits.bandwidth };
    struct perf_thread_limits one = { .threads = 1, .scale = 1 };

    if (perf_work_cost_find(&charged.costs, work.kind, "-", 1) == NULL)
        return 1;
    return perf_thread_time_of(&charged.costs, &work, &limits).seconds /
           perf_thread_time_of(&charged.costs, &work, &one).seconds;
}

bool perf_sim_work_open(const struct perf_charge *charge, const struct perf_world *world)
{
    const struct perf_work_cost *sum;
    double bandwidth = charge->memory_bandwidth;

    charged.is_root = world->rank == 0;
    charged.limits.scale = charge->scale;
    if (!load(charge, world)) {
        perf_work_cost_free(&charged.costs);
        return false;
    }
    if (bandwidth == 0)
        bandwidth = PERF_BANDWIDTH_OF_COPY * charged.costs.copy_rate;
    charged.limits.bandwidth = bandwidth / world->node_ranks;
    sum = perf_work_cost_find(&charged.costs, PERF_SUM_KIND, "-", 1);
    PERF_SIM_REDUCE_COST(sum == NULL ? 0 : sum->byte * charge->scale);
    PERF_SIM_THREAD_RATIO(thread_ratio);
    perf_sim_work_trace();
    return true;
}

void perf_sim_work_set_threads(int threads)
{
    charged.limits.threads = threads;
}

void perf_sim_work_align(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
    PERF_SIM_ALIGN();
}

void perf_sim_work_trace(void)
{
    sar_trace_set_hook(charged.costs.n > 0 ? &hook : NULL);
}

/* Returns the steps that the calling thread does its work in: pieces of a loop on several threads, or the
 * steps of sar_parallel_steps. */
static int steps_of(const struct sar_span_work *work)
{
    static const char *const whole[] = { "packed", "block", "dense", "runs" }; /* no loops in steps */
    const char *format = work->format == NULL ? "-" : work->format;
    double moved = charged.limits.scale * perf_work_moved(work), pieces = moved / SAR_PIECE_BYTES;
    int threads = perf_work_splits(moved, charged.limits.threads);

    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
        if (strcmp(format, whole[i]) == 0)
            return 1;
    if (threads > 1)
        return (int)fmin(fmax(pieces / threads, 1), SAR_THREAD_PIECES);
    return strcmp(work->kind, "assemble") == 0 ? (int)fmax(pieces / SAR_STEP_PIECES, 1) : 1;
}

/* Takes the modelled time of work. Messages advance between its steps, as they do in the library. */
static void take_time(const struct sar_span_work *work, double seconds)
{
    int steps = steps_of(work);

    for (int i = 0; i < steps; i++) {
        if (i > 0)
            sar_parallel_advance();
        PERF_SIM_SLEEP(seconds / steps);
    }
}

void perf_sim_work_on_work(void *data, const struct sar_span *span, int64_t until)
{
    const struct sar_span_work *work = &span->work;
    const char *format = work->format == NULL ? "-" : work->format;
    struct perf_thread_time time;

    (void)data;
    if (charged.costs.n == 0)
        return;
    if (perf_work_cost_find(&charged.costs, work->kind, format, 1) == NULL)
        add_missing_cost(work->kind, format);
    time = perf_thread_time_of(&charged.costs, work, &charged.limits);
    charged.total.measured += (double)(until - span->start_ns) * 1e-9;
    charged.total.modelled += time.seconds;
    charged.total.extrapolated += time.extrapolated ? time.seconds : 0;
    take_time(work, time.seconds);
}

void perf_sim_work_reset(void)
{
    charged.total = (struct perf_sim_work){ 0 };
}

void perf_sim_work_add(struct perf_sim_work *total)
{
    total->measured += charged.total.measured;
    total->modelled += charged.total.modelled;
    total->extrapolated += charged.total.extrapolated;
}

void perf_sim_work_collect(struct perf_sim_work *total, int calls)
{
    double sums[3] = { total->measured, total->modelled, total->extrapolated };
    int ranks;

    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Allreduce(MPI_IN_PLACE, sums, 3, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    total->measured = charged.costs.n > 0 ? sums[0] / ranks / calls : NAN;
    total->modelled = charged.costs.n > 0 ? sums[1] / ranks / calls : NAN;
    total->extrapolated = charged.costs.n > 0 ? sums[2] / ranks / calls : NAN;
}
