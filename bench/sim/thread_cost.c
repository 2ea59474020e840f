/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/sim/thread_cost.h"

#include <math.h>
#include <string.h>

#include "base/parallel.h"

/* Bytes moved for each element, beside its value; how often values are moved; and bytes for each slot. */
struct traffic {
    const char *kind, *format; /* NULL: any */
    double element, values, slot;
};

static const double INDEX = 4, DENSE = 4, BIT = 1.0 / 8;

/* Most work reads and writes elements, and a bit for each slot. The last line is for it. */
static struct traffic traffic_of(const struct sar_span_work *work)
{
    const struct traffic table[] = {
        { "ingest", "sorted", INDEX, 0, 0 },
        { "ingest", "resized", 3 * INDEX, 0, 0 },
        { "rebase", NULL, 2 * INDEX, 0, 0 },
        { "count", NULL, INDEX, 0, BIT },
        { "wipe", NULL, 0, 1, 0 },
        { "compact", NULL, INDEX, 1, DENSE },
        { "densify", NULL, INDEX, 1, DENSE },
        { "sparsify", NULL, INDEX, 1, DENSE },
        { "encode", "dense", INDEX, 1, DENSE },
        { "decode", "dense", INDEX, 1, DENSE },
        { "write", "expand", INDEX, 1, DENSE },
        { "write", "fold", INDEX, 1, DENSE },
        { "write", NULL, INDEX, 2, 0 },
        { NULL, NULL, 2 * INDEX, 2, BIT },
    };
    const struct traffic *line = table;

    while (line->kind != NULL &&
           (strcmp(line->kind, work->kind) != 0 ||
            (line->format != NULL && (work->format == NULL || strcmp(line->format, work->format) != 0))))
        line++;
    return *line;
}

double perf_work_moved(const struct sar_span_work *work)
{
    struct traffic traffic = traffic_of(work);

    return traffic.element * (double)work->elements + traffic.values * (double)work->bytes +
           traffic.slot * (double)work->slots;
}

/* As sar_parallel_pieces and sar_parallel_for. */
int perf_work_splits(double moved, int threads)
{
    double pieces = floor(moved / SAR_PIECE_BYTES);

    return pieces < 2 ? 1 : pieces < threads ? (int)pieces : threads;
}

static double seconds_of(const struct perf_work_cost *cost, const struct sar_span_work *work, double scale)
{
    return scale * (cost->element * (double)work->elements + cost->byte * (double)work->bytes +
                    cost->slot * (double)work->slots) +
           cost->piece;
}

static double amdahl(double serial, int threads)
{
    return serial + (1 - serial) / threads;
}

/* The costs of a kind and a format that count. */
struct measured {
    const struct perf_work_cost *one;   /* on one thread */
    const struct perf_work_cost *least; /* on the least number above one */
    const struct perf_work_cost *below; /* on the largest up to the wanted */
    const struct perf_work_cost *most;  /* on the largest */
};

static struct measured find_measured(const struct perf_work_cost_list *list, const struct sar_span_work *work,
                                     int threads)
{
    const char *format = work->format == NULL ? "-" : work->format;
    struct measured found = { NULL, NULL, NULL, NULL };

    for (size_t i = 0; i < list->n; i++) {
        const struct perf_work_cost *cost = &list->at[i];
        if (strcmp(cost->kind, work->kind) != 0 || strcmp(cost->format, format) != 0)
            continue;
        if (cost->threads == 1)
            found.one = cost;
        else if (found.least == NULL || cost->threads < found.least->threads)
            found.least = cost;
        if (cost->threads <= threads && (found.below == NULL || cost->threads > found.below->threads))
            found.below = cost;
        if (found.most == NULL || cost->threads > found.most->threads)
            found.most = cost;
    }
    return found;
}

/* Returns the share of the time on one thread that more threads do not shorten. */
static double serial_share(const struct measured *costs, const struct sar_span_work *work, double scale)
{
    double one = seconds_of(costs->one, work, scale), several = seconds_of(costs->least, work, scale);
    double n = costs->least->threads, share = one > 0 ? (n * several / one - 1) / (n - 1) : 1;

    return fmin(fmax(share, 0), 1);
}

/* As sar_task_decode_parts: true if threads share the messages, rather than the work on each. */
static bool shares_parts(const struct sar_span_work *work, const struct perf_thread_limits *limits)
{
    double parts = (double)work->parts, moved = parts * limits->scale * perf_work_moved(work);

    return limits->threads > 1 && parts > 1 && 2 * parts > limits->threads &&
           perf_work_splits(moved, limits->threads) > 1;
}

/* Returns a part's share of the time in which threads do all parts, each on one thread. */
static struct perf_thread_time part_time(const struct measured *costs, const struct sar_span_work *work,
                                         const struct perf_thread_limits *limits)
{
    double parts = (double)work->parts, rounds = ceil(parts / limits->threads);
    double one = seconds_of(costs->one, work, limits->scale), seconds = one * rounds / parts;

    if (costs->least == NULL)
        return (struct perf_thread_time){ one, false };
    seconds *= fmax(costs->least->threads * seconds_of(costs->least, work, limits->scale) / one, 1);
    if (limits->bandwidth > 0)
        seconds = fmax(seconds, limits->scale * perf_work_moved(work) / limits->bandwidth);
    return (struct perf_thread_time){ fmin(seconds, one), costs->most->threads < limits->threads };
}

struct perf_thread_time perf_thread_time_of(const struct perf_work_cost_list *list,
                                            const struct sar_span_work *work,
                                            const struct perf_thread_limits *limits)
{
    double moved = limits->scale * perf_work_moved(work), most, share, seconds;
    int threads = perf_work_splits(moved, limits->threads);
    struct measured costs = find_measured(list, work, threads);

    if (shares_parts(work, limits) && costs.one != NULL)
        return part_time(&costs, work, limits);
    if (costs.below != costs.most || costs.most->threads == threads || costs.least == NULL)
        return (struct perf_thread_time){ seconds_of(costs.below, work, limits->scale), false };
    most = seconds_of(costs.most, work, limits->scale);
    share = serial_share(&costs, work, limits->scale);
    seconds = most * amdahl(share, threads) / amdahl(share, costs.most->threads);
    if (limits->bandwidth > 0)
        seconds = fmax(seconds, moved / limits->bandwidth);
    return (struct perf_thread_time){ fmin(seconds, most), true };
}
