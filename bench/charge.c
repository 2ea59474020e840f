/* SPDX-License-Identifier: BSD-3-Clause */
#include "charge.h"

#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "file.h"

enum { COSTS = 64 };

/* bench/smpi.h has others, for simulations. */
#ifndef PERF_LET_PASS
#define PERF_LET_PASS(seconds) ((void)(seconds))
#define PERF_CHARGE_SUMS(seconds) ((void)(seconds))
#endif

static struct {
    struct perf_cost at[COSTS];
    int n;
    double scale;
    bool speaks; /* of what the file lacks */
    struct perf_charges charges;
} file;

static const struct sar_follower follower = { NULL, NULL, NULL, perf_charge_work };

/* One cost a line; lines of anything else are passed over. */
static void read_costs(const char *content)
{
    for (const char *line = content; line != NULL && file.n < COSTS; line = strchr(line, '\n')) {
        struct perf_cost *cost = &file.at[file.n];
        line += *line == '\n';
        if (sscanf(line, PERF_COST_SCAN, cost->kind, cost->format, &cost->piece, &cost->element, &cost->byte,
                   &cost->slot) == PERF_COST_FIELDS)
            file.n++;
    }
}

static struct perf_cost *find(const char *kind, const char *format)
{
    for (int i = 0; i < file.n; i++)
        if (strcmp(file.at[i].kind, kind) == 0 && strcmp(file.at[i].format, format) == 0)
            return &file.at[i];
    return NULL;
}

/* A cost of nothing, so that it is told once. */
static struct perf_cost *miss(const char *kind, const char *format)
{
    struct perf_cost *cost = &file.at[file.n < COSTS ? file.n++ : COSTS - 1];

    if (file.speaks)
        fprintf(stderr, "mpix_sparse_perf: option --charge: the file has no cost of '%s %s'\n", kind, format);
    memset(cost, 0, sizeof *cost);
    snprintf(cost->kind, sizeof cost->kind, "%s", kind);
    snprintf(cost->format, sizeof cost->format, "%s", format);
    return cost;
}

bool perf_charge_open(const char *path, double scale, const struct perf_world *world)
{
    const struct perf_cost *sum;
    size_t bytes;
    char *content = perf_file_load(path, &bytes, world);

    if (content == NULL)
        return false;
    file.speaks = world->rank == 0;
    file.scale = scale;
    read_costs(content);
    free(content);
    if (file.n == 0 && world->rank == 0)
        fprintf(stderr, "mpix_sparse_perf: option --charge: '%s' has no costs of --costs in it\n", path);
    if (file.n == 0)
        return false;
    sum = find(PERF_SUM_KIND, "-");
    PERF_CHARGE_SUMS(sum == NULL ? 0 : sum->byte * scale);
    perf_charge_follow();
    return true;
}

void perf_charge_follow(void)
{
    sar_trace_follow(file.n > 0 ? &follower : NULL);
}

void perf_charge_work(void *data, const struct sar_span *span, int64_t until)
{
    const struct sar_work *work = &span->work;
    const char *format = work->format == NULL ? "-" : work->format;
    const struct perf_cost *cost;
    double seconds;

    (void)data;
    if (file.n == 0)
        return;
    cost = find(work->kind, format);
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
    charges->work = file.n > 0 ? sums[0] / ranks / calls : NAN;
    charges->charged = file.n > 0 ? sums[1] / ranks / calls : NAN;
}
