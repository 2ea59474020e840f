/* SPDX-License-Identifier: BSD-3-Clause */
/* Overlap with computing. The computing is a fixed number of additions that need no memory, calibrated by
 * timing them alone. If a progress thread takes the processor, they take longer, like a program's own
 * computing. The three times are measured alternately, so that a slow moment of the machine affects all of
 * them. */

#include "bench/perf/overlap.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/perf/row.h"

enum { CALIBRATION = 200000 /* additions */, TRIES = 5 };

static const char *const modes[PERF_PROGRESS_MODES] = {
    [PERF_PROGRESS_WAIT] = "wait", [PERF_PROGRESS_THREAD] = "thread"
};

/* The measurement of one row in one mode. */
struct timing {
    const struct perf_case *c;
    const struct perf_tensor *tensor;
    struct perf_row row;
    long long additions; /* additions that take as long as a call */
    int n;
    double *call, *compute, *both; /* n times in seconds */
};

/* Each addition depends on the previous one. `ends` is volatile, so that no addition moves out of the timed
 * region. */
static void compute(long long additions)
{
    volatile double ends = 1;
    double sum = ends;

    for (long long i = 0; i < additions; i++)
        sum = sum * 0.999999 + 1e-6;
    ends = sum;
}

static double compute_seconds(long long additions)
{
    double start = MPI_Wtime();

    compute(additions);
    return MPI_Wtime() - start;
}

/* Returns the additions that take the slowest rank `seconds`. */
static long long additions_in(double seconds)
{
    double least = INFINITY;

    for (int i = 0; i < TRIES; i++)
        least = fmin(least, compute_seconds(CALIBRATION));
    MPI_Allreduce(MPI_IN_PLACE, &least, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return (long long)(seconds / least * CALIBRATION) + 1;
}

static double call(struct timing *t, int i, long long additions)
{
    int step = i % t->tensor->steps;
    MPI_Request request;
    double start = perf_row_start(&t->row, t->c, t->tensor, step, i, &request);

    compute(additions);
    perf_row_wait(&t->row, &request);
    return MPI_Wtime() - start;
}

static double compute_alone(const struct timing *t)
{
    MPI_Barrier(MPI_COMM_WORLD);
    return compute_seconds(t->additions);
}

/* Returns the median of n iterations, each of which counts with its slowest rank. */
static double median(double *seconds, int n)
{
    MPI_Allreduce(MPI_IN_PLACE, seconds, n, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return perf_times_of(seconds, n).median;
}

static struct perf_overlap measure_times(struct timing *t)
{
    double seconds;

    for (int i = 0; i < t->n; i++)
        t->call[i] = call(t, i, 0);
    seconds = median(t->call, t->n);
    MPI_Bcast(&seconds, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    t->additions = additions_in(seconds);
    for (int i = 0; i < t->n; i++) {
        t->call[i] = call(t, i, 0);
        t->compute[i] = compute_alone(t);
        t->both[i] = call(t, i, t->additions);
    }
    return (struct perf_overlap){ median(t->call, t->n), median(t->compute, t->n), median(t->both, t->n) };
}

/* Runs the scheme that the selector chose, so that it tries no other one. */
static void open_row(struct timing *t, const struct perf_row *row, const char *mode)
{
    t->row = *row;
    snprintf(t->row.settings.at[PERF_SETTING_SCHEME], PERF_NAME_MAX, "%s", row->report.scheme);
    snprintf(t->row.settings.at[PERF_SETTING_PROGRESS], PERF_NAME_MAX, "%s", mode);
    perf_row_open(&t->row, t->c, t->tensor);
}

static struct perf_overlap measure(const struct perf_case *c, const struct perf_tensor *tensor,
                                   const struct perf_row *row, const char *mode)
{
    struct perf_overlap overlap = { NAN, NAN, NAN };
    struct timing t = { .c = c, .tensor = tensor, .n = row->times.n };
    double *seconds = perf_alloc(3 * (size_t)t.n, sizeof *seconds);

    t.call = seconds;
    t.compute = t.call + t.n;
    t.both = t.compute + t.n;
    open_row(&t, row, mode);
    for (int i = 0; i < (int)c->options->warmup && !t.row.failed; i++)
        call(&t, i, 0);
    if (!t.row.failed)
        overlap = measure_times(&t);
    perf_row_agree_failure(&t.row);
    if (t.row.failed)
        overlap = (struct perf_overlap){ NAN, NAN, NAN };
    perf_row_close(&t.row);
    free(seconds);
    return overlap;
}

void perf_overlap_measure(const struct perf_case *c, const struct perf_tensor *tensor, struct perf_row *row)
{
    int level;

    MPI_Query_thread(&level);
    for (int mode = 0; mode < PERF_PROGRESS_MODES; mode++)
        if (mode != PERF_PROGRESS_THREAD || level == MPI_THREAD_MULTIPLE)
            row->overlap[mode] = measure(c, tensor, row, modes[mode]);
}

double perf_overlap_ratio(const struct perf_overlap *overlap)
{
    return overlap->both / fmax(overlap->call, overlap->compute);
}
