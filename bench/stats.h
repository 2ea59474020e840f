/* SPDX-License-Identifier: BSD-3-Clause */
/* Figures of samples, and the entropy of a set. */
#ifndef PERF_STATS_H
#define PERF_STATS_H

struct perf_times {
    int n;
    double median, min, p99; /* seconds; NaN without samples */
};

/* Sorts the samples. */
struct perf_times perf_times_of(double *seconds, int n);

/* Least bytes of index that an element of a set costs: log2 of the number of such sets, over 8 and over n. */
double perf_index_bytes(double count, double n);

#endif
