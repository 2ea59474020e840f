/* SPDX-License-Identifier: BSD-3-Clause */
/* The modelled time of work on several threads. */
#ifndef PERF_THREAD_COST_H
#define PERF_THREAD_COST_H

#include "base/trace.h"
#include "bench/sim/work_cost.h"

/** Returns an estimate of the bytes that a piece of work reads and writes, with indices of 4 bytes, and dense
 * values of 4 bytes. */
double perf_work_moved(const struct sar_span_work *work);

/** Returns the threads, of so many, among which the library splits work that moves so many bytes. */
int perf_work_splits(double moved, int threads);

/** Threads of work, and what limits them. */
struct perf_thread_limits {
    int threads;      /**< threads that the library may use */
    double scale;     /**< factor of elements, bytes and slots */
    double bandwidth; /**< bytes of memory that this rank can move in a second; 0: no limit */
};

/** The modelled time of a piece of work. */
struct perf_thread_time {
    double seconds;
    bool extrapolated; /**< no cost was measured with as many threads */
};

/** Models work that has a cost on one thread. The number of threads is that of perf_work_splits. Work on T
 * threads costs what was measured with T threads, or with the next smaller number where a larger one was
 * measured as well. Beyond the largest number M that was measured,
 *
 *     seconds(T) = seconds(M) (f + (1 - f) / T) / (f + (1 - f) / M)
 *
 * which is Amdahl's law. The serial share f follows from the costs on one thread and on the least number of
 * threads above one, as a rule two. The time is not less than moved bytes / bandwidth, unless seconds(M) is.
 * Work without a cost on several threads takes as long as on one. Of work->parts pieces that threads share,
 * each thread does one at a time, as efficiently as the least number of threads above one. */
struct perf_thread_time perf_thread_time_of(const struct perf_work_cost_list *list,
                                            const struct sar_span_work *work,
                                            const struct perf_thread_limits *limits);

#endif
