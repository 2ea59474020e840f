/* SPDX-License-Identifier: BSD-3-Clause */
/* How much of a nonblocking call hides behind computing. */
#ifndef PERF_OVERLAP_H
#define PERF_OVERLAP_H

/* What moves the call: whoever waits, or a thread (MPIX_SPARSE_PROGRESS). */
enum perf_mode { PERF_WAIT, PERF_THREAD, PERF_MODES };

/* Medians in seconds; NaN where nothing was measured. */
struct perf_overlap {
    double call;    /* a nonblocking call and the wait for it */
    double compute; /* computing that lasts about as long */
    double both;    /* the call, with the computing before the wait */
};

struct perf_case;
struct perf_tensor;
struct perf_row;

/* Measure in both modes, each on a communicator of its own. row->times are there; row->overlap is filled in.
 * Collective. */
void perf_overlap_measure(const struct perf_case *c, const struct perf_tensor *tensor, struct perf_row *row);

/* Seconds of call and computing over those of the longer one: 1 where the shorter one hides, about 2 where
 * one comes after the other. */
double perf_overlap_ratio(const struct perf_overlap *overlap);

#endif
