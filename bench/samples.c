/* SPDX-License-Identifier: BSD-3-Clause */
#include "samples.h"

#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct perf_samples perf_samples_make(int room)
{
    return (struct perf_samples){ 0, room, perf_alloc((size_t)room, sizeof(struct perf_sample)) };
}

void perf_samples_free(struct perf_samples *samples)
{
    free(samples->at);
    *samples = (struct perf_samples){ 0 };
}

static bool are_alike(const char *kind, const char *format, const struct perf_sample *sample)
{
    return strcmp(kind, sample->kind) == 0 && strcmp(format, sample->format) == 0;
}

/* The first of that kind and place, or NULL. */
static struct perf_sample *find(const struct perf_samples *samples, const struct perf_sample *like)
{
    for (int i = 0; i < samples->n; i++)
        if (are_alike(like->kind, like->format, &samples->at[i]) && like->place == samples->at[i].place)
            return &samples->at[i];
    return NULL;
}

void perf_samples_append(struct perf_samples *samples, const struct perf_sample *sample)
{
    if (samples->n < samples->room)
        samples->at[samples->n++] = *sample;
}

void perf_samples_hear(void *data, const struct sar_span *span, int64_t until)
{
    const struct sar_work *work = &span->work;
    struct perf_sample sample = { .seconds = (double)(until - span->from) * 1e-9 };

    snprintf(sample.kind, sizeof sample.kind, "%s", work->kind);
    snprintf(sample.format, sizeof sample.format, "%s", work->format == NULL ? "-" : work->format);
    sample.measure[PERF_PIECES] = 1;
    sample.measure[PERF_ELEMENTS] = (double)work->elements;
    sample.measure[PERF_BYTES] = (double)work->bytes;
    sample.measure[PERF_SLOTS] = (double)work->slots;
    while (find(data, &sample) != NULL)
        sample.place++;
    perf_samples_append(data, &sample);
}

void perf_samples_keep_least(struct perf_samples *least, const struct perf_samples *now)
{
    for (int i = 0; i < now->n; i++) {
        struct perf_sample *best = find(least, &now->at[i]);
        if (best == NULL)
            perf_samples_append(least, &now->at[i]);
        else if (now->at[i].seconds < best->seconds)
            *best = now->at[i];
    }
}

/* Add to the sample of this kind. */
static void add(struct perf_samples *sums, struct perf_sample *more)
{
    struct perf_sample *sum;

    more->place = 0;
    sum = find(sums, more);
    if (sum == NULL) {
        perf_samples_append(sums, more);
        return;
    }
    for (int i = 0; i < PERF_MEASURES; i++)
        sum->measure[i] += more->measure[i];
    sum->seconds += more->seconds;
}

void perf_samples_collect(const struct perf_world *world, const struct perf_samples *mine,
                          struct perf_samples *all)
{
    int bytes = PERF_SAMPLES * (int)sizeof *mine->at;
    struct perf_samples every = perf_samples_make(world->ranks * PERF_SAMPLES);
    struct perf_samples sums = perf_samples_make(PERF_SAMPLES);

    MPI_Gather(mine->at, bytes, MPI_BYTE, every.at, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
    for (int i = 0; i < every.room && world->rank == 0; i++)
        if (every.at[i].kind[0] != '\0')
            add(&sums, &every.at[i]);
    for (int i = 0; i < sums.n; i++)
        perf_samples_append(all, &sums.at[i]);
    perf_samples_free(&sums);
    perf_samples_free(&every);
}

/* By how much of itself a sample's time is more than a cost says. */
static double misfit(const struct perf_sample *sample, const double x[PERF_MEASURES])
{
    double sum = 0;

    for (int i = 0; i < PERF_MEASURES; i++)
        sum += x[i] * sample->measure[i];
    return 1 - sum / sample->seconds;
}

/* Make the j-th factor what is best beside the others. */
static void improve(const struct perf_samples *all, const struct perf_cost *cost, double x[PERF_MEASURES],
                    int j)
{
    double above = 0, below = 0;

    for (int i = 0; i < all->n; i++) {
        const struct perf_sample *sample = &all->at[i];
        double share = sample->measure[j] / sample->seconds;
        if (!are_alike(cost->kind, cost->format, sample))
            continue;
        above += share * (misfit(sample, x) + x[j] * share);
        below += share * share;
    }
    x[j] = below > 0 && above > 0 ? above / below : 0;
}

double perf_samples_fit(const struct perf_samples *all, struct perf_cost *cost)
{
    enum { ROUNDS = 20000 }; /* elements and bytes differ in few samples, so that it takes many */
    double x[PERF_MEASURES] = { 0 }, worst = 0;

    for (int i = 0; i < ROUNDS; i++)
        for (int j = 0; j < PERF_MEASURES; j++)
            improve(all, cost, x, j);
    for (int i = 0; i < all->n; i++)
        if (are_alike(cost->kind, cost->format, &all->at[i]))
            worst = fmax(worst, fabs(misfit(&all->at[i], x)));
    cost->piece = x[PERF_PIECES];
    cost->element = x[PERF_ELEMENTS];
    cost->byte = x[PERF_BYTES];
    cost->slot = x[PERF_SLOTS];
    return worst;
}
