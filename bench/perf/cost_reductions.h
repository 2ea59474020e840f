/* SPDX-License-Identifier: BSD-3-Clause */
/* Samples of sums of many vectors, which calls of two ranks have not. */
#ifndef PERF_COST_REDUCTIONS_H
#define PERF_COST_REDUCTIONS_H

#include "bench/perf/cost_samples.h"

/** Parts of the sums that --costs samples. */
struct perf_reductions {
    size_t count, row_len; /**< elements of the index space, and floats of an element */
    double density;        /**< of each vector */
};

/** Sums vectors `calls` times in each way that the library has, and keeps the least time of each. Aborts
 * without memory. */
void perf_sample_reductions(const struct perf_reductions *like, int calls, struct perf_samples *least);

#endif
