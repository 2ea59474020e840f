/* SPDX-License-Identifier: BSD-3-Clause */
#include "charge.h"

#include <math.h>
#include <mpi.h>
#include <stdio.h>

/* bench/smpi.h has others, for simulations. */
#ifndef PERF_LET_PASS
#define PERF_LET_PASS(seconds) ((void)(seconds))
#define PERF_CHARGE_SUMS(seconds) ((void)(seconds))
#endif

static struct {
    struct perf_cost_list costs;
    double scale;
    bool speaks; /* of what the file lacks */
    struct perf_charges charges;
} file;

static const struct sar_follower follower = { NULL, NULL, NULL, perf_charge_work };

/* A cost of nothing, so that it is told once. */
static const struct perf_cost *miss(const char *kind, const char *format)
{
    struct perf_cost cost = { .kind = "" };

    if (file.speaks)
        fprintf(stderr, "mpix_sparse_perf: option --charge: the file has no cost of '%s %s'\n", kind, format);
    snprintf(cost.kind, sizeof cost.kind, "%s", kind);
    snprintf(cost.format, sizeof cost.format, "%s", format);
    perf_cost_append(&file.costs, &cost);
    return perf_cost_find(&file.costs, cost.kind, cost.format);
}

bool perf_charge_open(const char *path, double scale, const struct perf_world *world)
{
    const struct perf_cost *sum;

    file.speaks = world->rank == 0;
    file.scale = scale;
    if (!perf_cost_read(&file.costs, path, world)) {
        perf_cost_free(&file.costs);
        return false;
    }
    sum = perf_cost_find(&file.costs, PERF_SUM_KIND, "-");
    PERF_CHARGE_SUMS(sum == NULL ? 0 : sum->byte * scale);
    perf_charge_follow();
    return true;
}

void perf_charge_follow(void)
{
    sar_trace_follow(file.costs.n > 0 ? &follower : NULL);
}

void perf_charge_work(void *data, const struct sar_span *span, int64_t until)
{
    const struct sar_work *work = &span->work;
    const char *format = work->format == NULL ? "-" : work->format;
    const struct perf_cost *cost;
    double seconds;

    (void)data;
    if (file.costs.n == 0)
        return;
    cost = perf_cost_find(&file.costs, work->kind, format);
    if (cost == NULL)
        cost = miss(work->kind, format);
    seconds = file.scale * (cost->element * (double)work->elements + cost->byte * (double)work->bytes +
                            cost->slot * (double)work->slots) +
              cost->piece;
    file.charges.work += (double)(until - span->from) * 1e-9;
    file.charges.charged += seconds;
    PERF_LET_PASS(seconds);
}

void perf_charge_forget(void)
{
    file.charges = (struct perf_charges){ 0, 0 };
}

void perf_charge_add(struct perf_charges *charges)
{
    charges->work += file.charges.work;
    charges->charged += file.charges.charged;
}

void perf_charge_collect(struct perf_charges *charges, int calls)
{
    double sums[2] = { charges->work, charges->charged };
    int ranks;

    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    charges->work = file.costs.n > 0 ? sums[0] / ranks / calls : NAN;
    charges->charged = file.costs.n > 0 ? sums[1] / ranks / calls : NAN;
}
