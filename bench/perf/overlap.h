/* SPDX-License-Identifier: BSD-3-Clause */
/* Overlap of a nonblocking call with computing (option --overlap-compute). */
#ifndef PERF_OVERLAP_H
#define PERF_OVERLAP_H

/** Who makes progress: the waiting caller, or a thread (values of MPIX_SPARSE_PROGRESS). */
enum perf_progress_mode { PERF_PROGRESS_WAIT, PERF_PROGRESS_THREAD, PERF_PROGRESS_MODES };

/** Median times in seconds; NaN if not measured. */
struct perf_overlap {
    double call;    /**< a nonblocking call and its wait */
    double compute; /**< computing alone, which takes about as long */
    double both;    /**< the call, with the computing before the wait */
};

struct perf_case;
struct perf_tensor;
struct perf_row;

/** Fills in row->overlap for both modes, each on a communicator of its own. Requires row->times. Collective.
 */
void perf_overlap_measure(const struct perf_case *c, const struct perf_tensor *tensor, struct perf_row *row);

/** Returns both / max(call, compute): 1 for full overlap, about 2 for none. */
double perf_overlap_ratio(const struct perf_overlap *overlap);

#endif
