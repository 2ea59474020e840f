/* SPDX-License-Identifier: BSD-3-Clause */
/* Samples of work as reported by the library's trace, and the costs that fit them. */
#ifndef PERF_COST_SAMPLES_H
#define PERF_COST_SAMPLES_H

#include "base/trace.h"
#include "bench/sim/work_cost.h"

enum { PERF_SAMPLES = 256 /**< most pieces of work in a call */ };

/** The quantities that the time of work is proportional to. If two cannot be separated, the fit uses the
 * first. */
enum perf_quantity {
    PERF_QUANTITY_ELEMENTS,
    PERF_QUANTITY_BYTES,
    PERF_QUANTITY_SLOTS,
    PERF_QUANTITY_PIECES,
    PERF_QUANTITIES
};

/** One piece of work, or the sum of several pieces of one kind. */
struct perf_sample {
    char kind[PERF_KIND_MAX], format[PERF_KIND_MAX];
    int call;    /**< number of the kind of call and its tensor; of sums over ranks only */
    int threads; /**< threads that the library might use; of sums over ranks only */
    int place;   /**< ordinal of the piece among those of its kind in a call */
    double quantity[PERF_QUANTITIES];
    double seconds;
};

/** A list of samples, for perf_samples_free. */
struct perf_samples {
    int n, capacity;
    struct perf_sample *at;
};

struct perf_samples perf_samples_make(int capacity);
void perf_samples_free(struct perf_samples *samples);

/** Appends a copy; drops the sample if the list is full. */
void perf_samples_append(struct perf_samples *samples, const struct perf_sample *sample);

/** The member `on_work` of trace hooks: appends a piece of work to `data`, the struct perf_samples of a call.
 */
void perf_samples_on_work(void *data, const struct sar_span *span, int64_t until);

/** Keeps the least time of each piece of work over identical calls. */
void perf_samples_keep_least(struct perf_samples *least, const struct perf_samples *now);

/** Sums each kind of work over all ranks, and appends the sums on rank 0 to `all`, with this call and number
 * of threads. Leaves out work whose pieces are too small for so many threads. `own` has capacity
 * PERF_SAMPLES. Collective. */
void perf_samples_collect(const struct perf_world *world, const struct perf_samples *own, int call,
                          int threads, struct perf_samples *all);

/** Fits the cost of a kind and a format on one thread to all samples of it, by nonnegative least squares of
 * relative errors. Returns the largest relative error. */
double perf_samples_fit(const struct perf_samples *all, struct perf_work_cost *cost);

/** Sets the cost on cost->threads threads, of the kind and format of `one`, to a multiple of `one`. The
 * factor is the median, over calls, of the times on these threads over those on one. Returns the
 * largest relative error of that factor. */
double perf_samples_fit_threads(const struct perf_samples *all, const struct perf_work_cost *one,
                                struct perf_work_cost *cost);

#endif
