/* SPDX-License-Identifier: BSD-3-Clause */
#include "phases.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "charge.h"
#include "scheme/scheme.h"

/* A phase that has ended, and may turn out to lie within another. */
struct stretch {
    int64_t from, lasted;
};

static struct {
    struct stretch *ended;
    int n, room;
} listening;

static struct perf_phase *find(struct perf_phases *phases, const char *name)
{
    for (int i = 0; i < phases->n; i++)
        if (strcmp(phases->at[i].name, name) == 0)
            return &phases->at[i];
    if (phases->n == PERF_PHASES)
        return &phases->at[PERF_PHASES - 1];
    snprintf(phases->at[phases->n].name, PERF_PHASE_NAME, "%s", name);
    return &phases->at[phases->n++];
}

/* What lies in no phase is the rest of the call, whatever scheme runs. */
static void name_phase(const struct sar_span *span, const struct sar_scene *scene, char *name)
{
    if (scene->place >= 0)
        snprintf(name, PERF_PHASE_NAME, "stage %d %s", scene->place, span->name);
    else if (strcmp(span->name, "call") == 0 || sar_scheme_find(span->name) != NULL)
        snprintf(name, PERF_PHASE_NAME, "rest");
    else
        snprintf(name, PERF_PHASE_NAME, "%s", span->name);
}

static void remember(struct stretch stretch)
{
    if (listening.n == listening.room) {
        struct stretch *more = perf_alloc(2 * (size_t)listening.room + 64, sizeof *more);
        if (listening.n > 0)
            memcpy(more, listening.ended, (size_t)listening.n * sizeof *more);
        free(listening.ended);
        listening.ended = more;
        listening.room = 2 * listening.room + 64;
    }
    listening.ended[listening.n++] = stretch;
}

static void hear(void *data, const struct sar_span *span, const struct sar_scene *scene, int64_t until)
{
    struct perf_phases *phases = data;
    char name[PERF_PHASE_NAME];
    int64_t within = 0;

    while (listening.n > 0 && listening.ended[listening.n - 1].from >= span->from)
        within += listening.ended[--listening.n].lasted;
    remember((struct stretch){ span->from, until - span->from });
    name_phase(span, scene, name);
    find(phases, name)->max += (double)(until - span->from - within) * 1e-9;
}

void perf_phases_begin(struct perf_phases *phases)
{
    static struct sar_follower follower = { NULL, hear, NULL, perf_charge_work };

    listening.n = 0;
    follower.data = phases;
    sar_trace_follow(&follower);
}

void perf_phases_end(void)
{
    perf_charge_follow();
}

void perf_phases_collect(struct perf_phases *phases, int calls)
{
    int ranks;
    struct perf_phases all = { 0 }, *each;

    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    each = perf_alloc((size_t)ranks, sizeof *each);
    MPI_Allgather(phases, (int)sizeof *phases, MPI_BYTE, each, (int)sizeof *each, MPI_BYTE, MPI_COMM_WORLD);
    for (int r = 0; r < ranks; r++)
        for (int i = 0; i < each[r].n; i++) {
            struct perf_phase *phase = find(&all, each[r].at[i].name);
            double seconds = each[r].at[i].max / calls;
            phase->max = seconds > phase->max ? seconds : phase->max;
            phase->mean += seconds / ranks;
        }
    free(each);
    *phases = all;
}
