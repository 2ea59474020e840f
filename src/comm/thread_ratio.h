/* SPDX-License-Identifier: BSD-3-Clause */
/* How much faster work is on several threads, for the cost model. */

#ifndef SAR_COMM_THREAD_RATIO_H
#define SAR_COMM_THREAD_RATIO_H

#include "comm/comm.h"
#include "vector/spvec.h"

/** Measures the time of a reduction on so many threads over its time on one thread, in some milliseconds, or
 * takes what was measured before. *ratio is the largest of all ranks, at most 1. No thread is left behind.
 * Collective over comm. Blocks.
 * @param threads  threads of this rank, at least 1 */
enum sar_status sar_thread_ratio_measure(const struct sar_comm *comm, int threads, double *ratio);

/** Returns the time of work on so many elements over its time on one thread. Small work is not split, and
 * work of few pieces is split among as many threads.
 * @param ratio  of sar_thread_ratio_measure */
double sar_thread_ratio_of(double ratio, const struct sar_vec_desc *desc, double nnz);

#endif
