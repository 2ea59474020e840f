/* SPDX-License-Identifier: BSD-3-Clause */
/* Samples of work and the fit of costs. */

#include "bench/perf/cost_samples.h"

#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/lib/stats.h"
#include "bench/sim/thread_cost.h"

struct perf_samples perf_samples_make(int capacity)
{
    return (struct perf_samples){ 0, capacity, perf_alloc((size_t)capacity, sizeof(struct perf_sample)) };
}

void perf_samples_free(struct perf_samples *samples)
{
    free(samples->at);
    *samples = (struct perf_samples){ 0 };
}

static bool same_kind(const char *kind, const char *format, const struct perf_sample *sample)
{
    return strcmp(kind, sample->kind) == 0 && strcmp(format, sample->format) == 0;
}

/* Returns the sample of this kind, format and ordinal, or NULL. */
static struct perf_sample *find(const struct perf_samples *samples, const struct perf_sample *like)
{
    for (int i = 0; i < samples->n; i++)
        if (same_kind(like->kind, like->format, &samples->at[i]) && like->place == samples->at[i].place)
            return &samples->at[i];
    return NULL;
}

void perf_samples_append(struct perf_samples *samples, const struct perf_sample *sample)
{
    if (samples->n < samples->capacity)
        samples->at[samples->n++] = *sample;
}

void perf_samples_on_work(void *data, const struct sar_span *span, int64_t until)
{
    const struct sar_span_work *work = &span->work;
    struct perf_sample sample = { .seconds = (double)(until - span->start_ns) * 1e-9 };

    snprintf(sample.kind, sizeof sample.kind, "%s", work->kind);
    snprintf(sample.format, sizeof sample.format, "%s", work->format == NULL ? "-" : work->format);
    sample.quantity[PERF_QUANTITY_PIECES] = 1;
    sample.quantity[PERF_QUANTITY_ELEMENTS] = (double)work->elements;
    sample.quantity[PERF_QUANTITY_BYTES] = (double)work->bytes;
    sample.quantity[PERF_QUANTITY_SLOTS] = (double)work->slots;
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

/* Adds to the sum of this kind and format. */
static void add(struct perf_samples *sums, struct perf_sample *more)
{
    struct perf_sample *sum;

    more->place = 0;
    sum = find(sums, more);
    if (sum == NULL) {
        perf_samples_append(sums, more);
        return;
    }
    for (int i = 0; i < PERF_QUANTITIES; i++)
        sum->quantity[i] += more->quantity[i];
    sum->seconds += more->seconds;
}

/* True if the mean piece is split among so many threads. */
static bool is_split(const struct perf_sample *sum, int threads)
{
    double pieces = sum->quantity[PERF_QUANTITY_PIECES];
    struct sar_span_work work = { .kind = sum->kind,
                                  .format = sum->format,
                                  .elements = (uint64_t)sum->quantity[PERF_QUANTITY_ELEMENTS],
                                  .bytes = (uint64_t)sum->quantity[PERF_QUANTITY_BYTES],
                                  .slots = (uint64_t)sum->quantity[PERF_QUANTITY_SLOTS] };

    return threads == 1 || perf_work_splits(perf_work_moved(&work) / pieces, threads) == threads;
}

void perf_samples_collect(const struct perf_world *world, const struct perf_samples *own, int call,
                          int threads, struct perf_samples *all)
{
    int bytes = PERF_SAMPLES * (int)sizeof *own->at;
    struct perf_samples every = perf_samples_make(world->ranks * PERF_SAMPLES);
    struct perf_samples sums = perf_samples_make(PERF_SAMPLES);

    MPI_Gather(own->at, bytes, MPI_BYTE, every.at, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
    for (int i = 0; i < every.capacity && world->rank == 0; i++)
        if (every.at[i].kind[0] != '\0')
            add(&sums, &every.at[i]);
    for (int i = 0; i < sums.n; i++) {
        sums.at[i].call = call;
        sums.at[i].threads = threads;
        if (is_split(&sums.at[i], threads))
            perf_samples_append(all, &sums.at[i]);
    }
    perf_samples_free(&sums);
    perf_samples_free(&every);
}

/* Returns the relative error of a fit: (time - fit) / time. */
static double misfit(const struct perf_sample *sample, const double x[PERF_QUANTITIES])
{
    double sum = 0;

    for (int i = 0; i < PERF_QUANTITIES; i++)
        sum += x[i] * sample->quantity[i];
    return 1 - sum / sample->seconds;
}

static bool is_of(const struct perf_work_cost *cost, const struct perf_sample *sample)
{
    return cost->threads == sample->threads && same_kind(cost->kind, cost->format, sample);
}

/* Returns copies of the samples of a cost, for perf_samples_free. */
static struct perf_samples samples_of(const struct perf_samples *all, const struct perf_work_cost *cost)
{
    struct perf_samples own = perf_samples_make(all->n);

    for (int i = 0; i < all->n; i++)
        if (is_of(cost, &all->at[i]))
            perf_samples_append(&own, &all->at[i]);
    return own;
}

/* Sets the j-th coefficient to its optimum with all others fixed. */
static void improve(const struct perf_samples *own, double x[PERF_QUANTITIES], int j)
{
    double above = 0, below = 0;

    for (int i = 0; i < own->n; i++) {
        const struct perf_sample *sample = &own->at[i];
        double share = sample->quantity[j] / sample->seconds;
        above += share * (misfit(sample, x) + x[j] * share);
        below += share * share;
    }
    x[j] = below > 0 && above > 0 ? above / below : 0;
}

double perf_samples_fit(const struct perf_samples *all, struct perf_work_cost *cost)
{
    enum { ROUNDS = 20000 }; /* elements and bytes are nearly collinear, so convergence is slow */
    double x[PERF_QUANTITIES] = { 0 }, worst = 0;
    struct perf_samples own = samples_of(all, cost);

    for (int i = 0; i < ROUNDS; i++)
        for (int j = 0; j < PERF_QUANTITIES; j++)
            improve(&own, x, j);
    for (int i = 0; i < own.n; i++)
        worst = fmax(worst, fabs(misfit(&own.at[i], x)));
    perf_samples_free(&own);
    cost->piece = x[PERF_QUANTITY_PIECES];
    cost->element = x[PERF_QUANTITY_ELEMENTS];
    cost->byte = x[PERF_QUANTITY_BYTES];
    cost->slot = x[PERF_QUANTITY_SLOTS];
    return worst;
}

/* Returns the sample of the same work in the same call on one thread, or NULL. */
static const struct perf_sample *on_one_thread(const struct perf_samples *all,
                                               const struct perf_sample *sample)
{
    for (int i = 0; i < all->n; i++)
        if (all->at[i].threads == 1 && all->at[i].call == sample->call &&
            same_kind(sample->kind, sample->format, &all->at[i]))
            return &all->at[i];
    return NULL;
}

double perf_samples_fit_threads(const struct perf_samples *all, const struct perf_work_cost *one,
                                struct perf_work_cost *cost)
{
    double *ratio = perf_alloc((size_t)all->n, sizeof *ratio), factor, misfit;
    int n = 0;

    for (int i = 0; i < all->n; i++) {
        const struct perf_sample *sample = &all->at[i],
                                 *serial = is_of(cost, sample) ? on_one_thread(all, sample) : NULL;
        if (serial != NULL)
            ratio[n++] = sample->seconds / serial->seconds;
    }
    factor = n > 0 ? perf_times_of(ratio, n).median : 1;
    misfit = n > 0 ? fmax(ratio[n - 1] / factor - 1, 1 - ratio[0] / factor) : 0; /* they are sorted */
    free(ratio);
    cost->piece = factor * one->piece;
    cost->element = factor * one->element;
    cost->byte = factor * one->byte;
    cost->slot = factor * one->slot;
    return misfit;
}
