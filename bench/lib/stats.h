/* SPDX-License-Identifier: BSD-3-Clause */
/* Statistics of times, and of the index sets of a case over all ranks. */
#ifndef PERF_STATS_H
#define PERF_STATS_H

#include "bench/lib/case.h"
#include "bench/lib/workload.h"

/** Quantiles of n samples. */
struct perf_times {
    int n;
    double median, min, p99; /**< seconds; NaN without samples */
};

/** Returns the quantiles and sorts the samples. */
struct perf_times perf_times_of(double *seconds, int n);

/** Returns the least bytes of index for each element of a set of n out of count: log2(C(count, n)) / 8 / n.
 */
double perf_index_bytes(double count, double n);

/** Statistics of the index sets of step 0. */

struct perf_tensor_stats {
    long long nnz_in_max;
    double nnz_in_mean;
    long long nnz_out; /**< elements of the union */
    double overlap;    /**< mean over pairs of ranks of |I1 & I2| / min(|I1|, |I2|); NaN without pairs */
    double head_share; /**< fraction of the elements in the first eighth of the range; NaN without elements */
};

/** Returns the size of the union of all ranks' sets. Writes the elements to `at`, ascending, unless `at` is
 * NULL. Collective. */
long long perf_set_union(const struct perf_case *c, const struct perf_set *set, uint64_t *at);

/** Computes the statistics from the sets. Collective. */
void perf_tensor_stats_find(struct perf_tensor_stats *stats, const struct perf_case *c,
                            const struct perf_set *set);

#endif
