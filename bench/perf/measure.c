/* SPDX-License-Identifier: BSD-3-Clause */
/* Measures the rows of a case, and the phases of their calls (option --profile). The time of nested phases
 * is subtracted, so that the phases of a call add up to the call. */

#include "bench/perf/measure.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/lib/device_buffers.h"
#include "bench/perf/interleave.h"
#include "bench/perf/result_check.h"
#include "bench/sim/sim_work.h"
#include "core/select.h"
#include "scheme/scheme.h"

/* A phase that has ended. A later, enclosing phase subtracts its time. */
struct interval {
    int64_t from, lasted;
};

/* Phases that have ended and are not yet enclosed by another one. */
static struct {
    struct interval *ended;
    int n, capacity;
} nesting;

static struct perf_phase *find_phase(struct perf_phases *phases, const char *name)
{
    for (int i = 0; i < phases->n; i++)
        if (strcmp(phases->at[i].name, name) == 0)
            return &phases->at[i];
    if (phases->n == PERF_PHASES)
        return &phases->at[PERF_PHASES - 1];
    snprintf(phases->at[phases->n].name, PERF_PHASE_NAME, "%s", name);
    return &phases->at[phases->n++];
}

/* Time outside of all phases is the "rest" of the call. */
static void name_phase(const struct sar_span *span, const struct sar_span_context *context, char *name)
{
    if (context->stage_index >= 0)
        snprintf(name, PERF_PHASE_NAME, "stage %d %s", context->stage_index, span->name);
    else if (strcmp(span->name, "call") == 0 || sar_scheme_find(span->name) != NULL)
        snprintf(name, PERF_PHASE_NAME, "rest");
    else
        snprintf(name, PERF_PHASE_NAME, "%s", span->name);
}

static void push_interval(struct interval interval)
{
    if (nesting.n == nesting.capacity) {
        struct interval *more = perf_alloc(2 * (size_t)nesting.capacity + 64, sizeof *more);
        if (nesting.n > 0)
            memcpy(more, nesting.ended, (size_t)nesting.n * sizeof *more);
        free(nesting.ended);
        nesting.ended = more;
        nesting.capacity = 2 * nesting.capacity + 64;
    }
    nesting.ended[nesting.n++] = interval;
}

static void on_span_end(void *data, const struct sar_span *span, const struct sar_span_context *context,
                        int64_t until)
{
    struct perf_phases *phases = data;
    char name[PERF_PHASE_NAME];
    int64_t within = 0;

    while (nesting.n > 0 && nesting.ended[nesting.n - 1].from >= span->start_ns)
        within += nesting.ended[--nesting.n].lasted;
    push_interval((struct interval){ span->start_ns, until - span->start_ns });
    name_phase(span, context, name);
    find_phase(phases, name)->max += (double)(until - span->start_ns - within) * 1e-9;
}

/* From here to phases_end, calls on this rank add seconds to `max` of their phases. */
static void phases_begin(struct perf_phases *phases)
{
    static struct sar_trace_hook hook = { NULL, on_span_end, NULL, perf_sim_work_on_work };

    nesting.n = 0;
    hook.data = phases;
    sar_trace_set_hook(&hook);
}

static void phases_end(void)
{
    perf_sim_work_trace();
}

/* Turns sums over `calls` calls into maximum and mean over ranks. Collective. */
static void phases_collect(struct perf_phases *phases, int calls)
{
    int ranks;
    struct perf_phases all = { 0 }, *each;

    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    each = perf_alloc((size_t)ranks, sizeof *each);
    MPI_Allgather(phases, (int)sizeof *phases, MPI_BYTE, each, (int)sizeof *each, MPI_BYTE, MPI_COMM_WORLD);
    for (int r = 0; r < ranks; r++)
        for (int i = 0; i < each[r].n; i++) {
            struct perf_phase *phase = find_phase(&all, each[r].at[i].name);
            double seconds = each[r].at[i].max / calls;
            phase->max = seconds > phase->max ? seconds : phase->max;
            phase->mean += seconds / ranks;
        }
    free(each);
    *phases = all;
}

enum {
    LEAST_ITERATIONS = 5,
};

/* Most seconds for all calls of one row. */
static const double WARMUP_SECONDS = 2.5, MEASURE_SECONDS = 5;

/* The measurement of a group of rows. */
struct run {
    const struct perf_case *c;
    const struct perf_tensor *tensor;
    struct perf_row *rows;
    int n;
    bool check;
    bool learns; /* true if the library tries several schemes */
    int iterations;
    double *seconds; /* times of row 0, of row 1, …; run.iterations each */
};

/* Checks the results of the last call, number i, of rows first to first + n - 1. The call was made on step
 * 0. */
static void check(const struct run *run, int first, int n, int i)
{
    struct perf_output *outputs;
    int m = 0;

    if (!run->check)
        return;
    if (run->tensor->device_recv != NULL)
        perf_device_copy(perf_tensor_recv(run->tensor, i), run->tensor->device_recv, perf_case_bytes(run->c));
    outputs = perf_alloc((size_t)n, sizeof *outputs);
    for (int r = first; r < first + n; r++)
        if (perf_row_is_sparse(&run->rows[r]) && !run->rows[r].failed)
            outputs[m++] = (struct perf_output){ run->rows[r].result, perf_tensor_recv(run->tensor, i), 0 };
    if (m > 0)
        perf_result_check(run->c, run->tensor, outputs, m);
    m = 0;
    for (int r = first; r < first + n; r++)
        if (perf_row_is_sparse(&run->rows[r]) && !run->rows[r].failed)
            run->rows[r].wrong = outputs[m++].wrong + (run->rows[r].wrong > 0 ? run->rows[r].wrong : 0);
    free(outputs);
}

/* Dense results share one buffer, so each is checked before the next call. COO results are checked together.
 */
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

/* Replaces estimates by their maxima over ranks. */
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

/* Returns how many calls fit into `seconds`, in [least, most]. */
static int calls_within(double seconds, double estimate, int least, int most)
{
    double calls = estimate > 0 ? seconds / estimate : most;

    if (calls < least)
        calls = least;
    return calls < most ? (int)calls : most;
}

/* Returns the calls that `auto` needs for its trials. The number of trials depends on measured times, which
 * may be a tenth of the first estimate. */
static int auto_warmup(double estimate)
{
    int schemes = 0;

    while (sar_schemes[schemes] != NULL)
        schemes++;
    return (int)sar_select_trials(estimate / 10) * schemes + 1;
}

/* Returns the number of warm-up calls, including the first call. */
static int warmup_of(const struct run *run, const struct perf_row *row)
{
    int asked = (int)run->c->options->warmup, calls = calls_within(WARMUP_SECONDS, row->estimate, 2, asked);
    int trials = run->learns ? auto_warmup(row->estimate) : 1;

    if (perf_row_is_sparse(row) && strcmp(row->settings.at[PERF_SETTING_SCHEME], "auto") == 0 &&
        calls < trials)
        calls = trials;
    return calls;
}

/* Makes one more call of each row that has made fewer than enough[row]. Returns false if no row made one. */
static bool warm_up_once(const struct run *run, int done, const int *enough)
{
    bool any = false;

    for (int k = 0; k < run->n; k++) {
        int r = perf_interleave(k, done, run->n);
        struct perf_row *row = &run->rows[r];
        double seconds;

        if (row->failed || done >= enough[r])
            continue;
        seconds = perf_row_call(row, run->c, run->tensor, done % run->tensor->steps, done);
        if (seconds < row->estimate)
            row->estimate = seconds;
        any = true;
    }
    return any;
}

/* The first call may be slow, so the second one determines the number of warm-up calls. */
static void warm_up(const struct run *run)
{
    int *enough = perf_alloc((size_t)run->n, sizeof *enough);

    for (int r = 0; r < run->n; r++)
        enough[r] = (int)run->c->options->warmup;
    warm_up_once(run, 1, enough);
    agree_estimates(run);
    for (int r = 0; r < run->n; r++)
        enough[r] = warmup_of(run, &run->rows[r]);
    for (int done = 2; warm_up_once(run, done, enough); done++)
        ;
    agree_estimates(run);
    free(enough);
}

/* All rows make equally many calls: as many as asked for, or fewer than the default if these take long. Only
 * MPI_Allreduce may make fewer than the others. */
static int iterations_of(const struct run *run, bool dense)
{
    int asked = (int)run->c->options->iterations, calls = asked;

    for (int r = 0; r < run->n; r++) {
        const struct perf_row *row = &run->rows[r];
        bool is_dense = row->kind == PERF_ROW_DENSE;
        int own = calls_within(MEASURE_SECONDS, row->estimate, LEAST_ITERATIONS, asked);
        if (!row->failed && (dense ? is_dense : !is_dense && !run->c->options->iterations_given) &&
            own < calls)
            calls = own;
    }
    return calls;
}

static double expected_seconds(const struct run *run)
{
    double seconds = 0;

    for (int r = 0; r < run->n; r++)
        seconds += run->rows[r].failed ? 0 : run->rows[r].estimate * run->iterations;
    return seconds;
}

/* The trace hook is set for --profile only, because it makes the library read its clock. */
static double measured_call(const struct run *run, struct perf_row *row, int step, int i)
{
    bool follow = run->c->options->profile && perf_row_is_sparse(row);
    double seconds;

    perf_sim_work_reset();
    if (follow)
        phases_begin(&row->phases);
    seconds = perf_row_call(row, run->c, run->tensor, step, i);
    if (follow)
        phases_end();
    perf_sim_work_add(&row->sim_work);
    return seconds;
}

/* The last iteration is made on step 0, whose correct result is known. */
static void iterate(struct run *run, int dense_iterations, struct perf_progress *progress)
{
    double expected = expected_seconds(run);
    int last = run->iterations - 1;

    for (int i = 0; i <= last; i++) {
        bool dense_too =
            (long)i * dense_iterations / (last + 1) != (long)(i + 1) * dense_iterations / (last + 1);

        perf_progress_tick(progress, expected, (double)i / (last + 1));
        for (int k = 0; k < run->n; k++) {
            int r = perf_interleave(k, i, run->n);
            struct perf_row *row = &run->rows[r];

            if (row->failed || (row->kind == PERF_ROW_DENSE && !dense_too))
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
        if (!row->failed)
            perf_row_agree_failure(row);
        if (!row->failed)
            perf_row_report(row);
        if (run->c->options->profile && !row->failed)
            phases_collect(&row->phases, row->times.n);
        perf_sim_work_collect(&row->sim_work, row->times.n);
        if (row->wrong >= 0)
            MPI_Allreduce(MPI_IN_PLACE, &row->wrong, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
        perf_row_close(row);
    }
}

void perf_measure(const struct perf_case *c, const struct perf_tensor *tensor, struct perf_row *rows, int n,
                  struct perf_progress *progress)
{
    struct run run = { .c = c, .tensor = tensor, .rows = rows, .n = n };
    int dense_iterations;

    run.learns = perf_settings_config().learn;
    run.check = c->options->check && tensor->recv.data != NULL && perf_case_is_exact(c);
    open_rows(&run);
    warm_up(&run);
    run.iterations = iterations_of(&run, false);
    dense_iterations = iterations_of(&run, true);
    run.seconds = perf_alloc((size_t)n * (size_t)run.iterations, sizeof *run.seconds);
    iterate(&run, dense_iterations, progress);
    finish(&run);
    free(run.seconds);
}
