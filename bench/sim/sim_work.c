/* SPDX-License-Identifier: BSD-3-Clause */
/* The trace hook that models work. */

#include "bench/sim/sim_work.h"

#include <math.h>
#include <mpi.h>
#include <stdio.h>

/* bench/sim/smpi_work.h defines both for simulations. */
#ifndef PERF_SIM_SLEEP
#define PERF_SIM_SLEEP(seconds) ((void)(seconds))
#define PERF_SIM_REDUCE_COST(seconds) ((void)(seconds))
#endif

static struct {
    struct perf_work_cost_list costs;
    double scale;
    bool is_root; /* prints the costs that missing in the file */
    struct perf_sim_work total;
} charged;

static const struct sar_trace_hook hook = { NULL, NULL, NULL, perf_sim_work_on_work };

/* Appends a cost of zero, so that the warning is printed once. */
static const struct perf_work_cost *add_missing_cost(const char *kind, const char *format)
{
    struct perf_work_cost cost = { .kind = "" };

    if (charged.is_root)
        fprintf(stderr, "mpix_sparse_perf: option --charge: the file has no cost of '%s %s'\n", kind, format);
    snprintf(cost.kind, sizeof cost.kind, "%s", kind);
    snprintf(cost.format, sizeof cost.format, "%s", format);
    perf_work_cost_append(&charged.costs, &cost);
    return perf_work_cost_find(&charged.costs, cost.kind, cost.format);
}

bool perf_sim_work_open(const char *path, double scale, const struct perf_world *world)
{
    const struct perf_work_cost *sum;

    charged.is_root = world->rank == 0;
    charged.scale = scale;
    if (!perf_work_cost_read(&charged.costs, path, world)) {
        perf_work_cost_free(&charged.costs);
        return false;
    }
    sum = perf_work_cost_find(&charged.costs, PERF_SUM_KIND, "-");
    PERF_SIM_REDUCE_COST(sum == NULL ? 0 : sum->byte * scale);
    perf_sim_work_trace();
    return true;
}

void perf_sim_work_trace(void)
{
    sar_trace_set_hook(charged.costs.n > 0 ? &hook : NULL);
}

void perf_sim_work_on_work(void *data, const struct sar_span *span, int64_t until)
{
    const struct sar_span_work *work = &span->work;
    const char *format = work->format == NULL ? "-" : work->format;
    const struct perf_work_cost *cost;
    double seconds;

    (void)data;
    if (charged.costs.n == 0)
        return;
    cost = perf_work_cost_find(&charged.costs, work->kind, format);
    if (cost == NULL)
        cost = add_missing_cost(work->kind, format);
    seconds = charged.scale * (cost->element * (double)work->elements + cost->byte * (double)work->bytes +
                               cost->slot * (double)work->slots) +
              cost->piece;
    charged.total.measured += (double)(until - span->start_ns) * 1e-9;
    charged.total.modelled += seconds;
    PERF_SIM_SLEEP(seconds);
}

void perf_sim_work_reset(void)
{
    charged.total = (struct perf_sim_work){ 0, 0 };
}

void perf_sim_work_add(struct perf_sim_work *total)
{
    total->measured += charged.total.measured;
    total->modelled += charged.total.modelled;
}

void perf_sim_work_collect(struct perf_sim_work *total, int calls)
{
    double sums[2] = { total->measured, total->modelled };
    int ranks;

    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    total->measured = charged.costs.n > 0 ? sums[0] / ranks / calls : NAN;
    total->modelled = charged.costs.n > 0 ? sums[1] / ranks / calls : NAN;
}
