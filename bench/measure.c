/* SPDX-License-Identifier: BSD-3-Clause */
#include "measure.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "oracle.h"
#include "plan/select.h"
#include "turns.h"

enum {
    LEAST_ITERATIONS = 5,
};

/* Most seconds that calls of one row may take together. */
static const double WARMUP_SECONDS = 2.5, MEASURE_SECONDS = 5;

struct run {
    const struct perf_case *c;
    const struct perf_tensor *tensor;
    struct perf_row *rows;
    int n;
    bool check;
    bool learns; /* whether the library tries schemes */
    int iterations;
    double *seconds; /* iterations of row 0, of row 1, … */
};

/* Check the results that n rows from `first` on have from their last call, the i-th of all, on step 0. */
static void check(const struct run *run, int first, int n, int i)
{
    struct perf_claim *claims;
    int m = 0;

    if (!run->check)
        return;
    if (run->tensor->device_recv != NULL)
        perf_device_copy(perf_tensor_recv(run->tensor, i), run->tensor->device_recv, perf_case_bytes(run->c));
    claims = perf_alloc((size_t)n, sizeof *claims);
    for (int r = first; r < first + n; r++)
        if (perf_row_is_ours(&run->rows[r]) && !run->rows[r].refused)
            claims[m++] = (struct perf_claim){ run->rows[r].result, perf_tensor_recv(run->tensor, i), 0 };
    if (m > 0)
        perf_oracle_check(run->c, run->tensor, claims, m);
    m = 0;
    for (int r = first; r < first + n; r++)
        if (perf_row_is_ours(&run->rows[r]) && !run->rows[r].refused)
            run->rows[r].wrong = claims[m++].wrong + (run->rows[r].wrong > 0 ? run->rows[r].wrong : 0);
    free(claims);
}

/* Dense results share one buffer and are checked at once; COO results wait for each other. */
static bool shares_buffer(const struct run *run)
{
    return run->c->options->interface == PERF_DENSE;
}

static void open_rows(const struct run *run)
{
    for (int r = 0; r < run->n; r++) {
        perf_row_open(&run->rows[r], run->c, run->tensor);
        if (shares_buffer(run))
            check(run, r, 1, 0);
    }
    if (!shares_buffer(run))
        check(run, 0, run->n, 0);
}

/* Make the estimates those of the slowest rank. */
static void agree_estimates(const struct run *run)
{
    double *estimates = perf_alloc((size_t)run->n, sizeof *estimates);

    for (int r = 0; r < run->n; r++)
        estimates[r] = run->rows[r].estimate;
    MPI_Allreduce(MPI_IN_PLACE, estimates, run->n, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    for (int r = 0; r < run->n; r++)
        run->rows[r].estimate = estimates[r];
    free(estimates);
}

/* Calls that fit into some seconds, in [least, most]. */
static int calls_within(double seconds, double estimate, int least, int most)
{
    double calls = estimate > 0 ? seconds / estimate : most;

    if (calls < least)
        calls = least;
    return calls < most ? (int)calls : most;
}

/* Calls that trials of schemes may last, which may be shorter than the first calls were: the time of each is
 * learned from by the next. */
static int auto_warmup(double estimate)
{
    int schemes = 0;

    while (sar_schemes[schemes] != NULL)
        schemes++;
    return (int)sar_trials(estimate / 10) * schemes + 1;
}

/* Calls of the warm-up, the first one included. */
static int warmup_of(const struct run *run, const struct perf_row *row)
{
    int asked = (int)run->c->options->warmup, calls = calls_within(WARMUP_SECONDS, row->estimate, 2, asked);
    int trials = run->learns ? auto_warmup(row->estimate) : 1;

    if (perf_row_is_ours(row) && strcmp(row->knobs.at[PERF_KNOB_SCHEME], "auto") == 0 && calls < trials)
        calls = trials;
    return calls;
}

/* One more call of each row that has not had enough of them; false when no row has made one. */
static bool warm_once(const struct run *run, int done, const int *enough)
{
    bool any = false;

    for (int k = 0; k < run->n; k++) {
        int r = perf_turn(k, done, run->n);
        struct perf_row *row = &run->rows[r];
        double seconds;

        if (row->refused || done >= enough[r])
            continue;
        seconds = perf_row_call(row, run->c, run->tensor, done % run->tensor->steps, done);
        if (seconds < row->estimate)
            row->estimate = seconds;
        any = true;
    }
    return any;
}

/* The first call may be slow, so the second decides how many more there are. */
static void warm_up(const struct run *run)
{
    int *enough = perf_alloc((size_t)run->n, sizeof *enough);

    for (int r = 0; r < run->n; r++)
        enough[r] = (int)run->c->options->warmup;
    warm_once(run, 1, enough);
    agree_estimates(run);
    for (int r = 0; r < run->n; r++)
        enough[r] = warmup_of(run, &run->rows[r]);
    for (int done = 2; warm_once(run, done, enough); done++)
        ;
    agree_estimates(run);
    free(enough);
}

/* All rows make equally many calls, except that MPI_Allreduce may make fewer. */
static int iterations_of(const struct run *run, bool plain)
{
    int asked = (int)run->c->options->iterations, calls = asked;

    for (int r = 0; r < run->n; r++) {
        const struct perf_row *row = &run->rows[r];
        int own = calls_within(MEASURE_SECONDS, row->estimate, LEAST_ITERATIONS, asked);
        if (!row->refused && (plain || row->way != PERF_BY_MPI) && own < calls)
            calls = own;
    }
    return calls;
}

static double expected_seconds(const struct run *run)
{
    double seconds = 0;

    for (int r = 0; r < run->n; r++)
        seconds += run->rows[r].refused ? 0 : run->rows[r].estimate * run->iterations;
    return seconds;
}

/* Only where somebody asks for phases does the library look at its clock. */
static double measured_call(const struct run *run, struct perf_row *row, int step, int i)
{
    bool follow = run->c->options->profile && perf_row_is_ours(row);
    double seconds;

    perf_charge_forget();
    if (follow)
        perf_phases_begin(&row->phases);
    seconds = perf_row_call(row, run->c, run->tensor, step, i);
    if (follow)
        perf_phases_end();
    perf_charge_add(&row->charges);
    return seconds;
}

/* The last iteration uses step 0, whose right result is known. */
static void iterate(struct run *run, int plain_iterations, struct perf_progress *progress)
{
    double expected = expected_seconds(run);
    int last = run->iterations - 1;

    for (int i = 0; i <= last; i++) {
        bool plain_too =
            (long)i * plain_iterations / (last + 1) != (long)(i + 1) * plain_iterations / (last + 1);

        perf_progress_tick(progress, expected, (double)i / (last + 1));
        for (int k = 0; k < run->n; k++) {
            int r = perf_turn(k, i, run->n);
            struct perf_row *row = &run->rows[r];

            if (row->refused || (row->way == PERF_BY_MPI && !plain_too))
                continue;
            run->seconds[r * run->iterations + row->times.n++] =
                measured_call(run, row, (last - i) % run->tensor->steps, i);
            if (i == last && shares_buffer(run))
                check(run, r, 1, i);
        }
    }
    if (!shares_buffer(run))
        check(run, 0, run->n, last);
}

static void finish(struct run *run)
{
    MPI_Allreduce(MPI_IN_PLACE, run->seconds, run->n * run->iterations, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    for (int r = 0; r < run->n; r++) {
        struct perf_row *row = &run->rows[r];

        row->times = perf_times_of(run->seconds + r * run->iterations, row->times.n);
        if (!row->refused)
            perf_row_agree(row);
        if (!row->refused)
            perf_row_report(row);
        if (run->c->options->profile && !row->refused)
            perf_phases_collect(&row->phases, row->times.n);
        perf_charge_collect(&row->charges, row->times.n);
        if (row->wrong >= 0)
            MPI_Allreduce(MPI_IN_PLACE, &row->wrong, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
        perf_row_close(row);
    }
}

void perf_measure(const struct perf_case *c, const struct perf_tensor *tensor, struct perf_row *rows, int n,
                  struct perf_progress *progress)
{
    struct run run = { .c = c, .tensor = tensor, .rows = rows, .n = n };
    int plain_iterations;

    run.learns = perf_knobs_config().learn;
    run.check = c->options->check && tensor->recv.data != NULL && perf_case_is_exact(c);
    open_rows(&run);
    warm_up(&run);
    run.iterations = iterations_of(&run, false);
    plain_iterations = iterations_of(&run, true);
    run.seconds = perf_alloc((size_t)n * (size_t)run.iterations, sizeof *run.seconds);
    iterate(&run, plain_iterations, progress);
    finish(&run);
    free(run.seconds);
}
