/* SPDX-License-Identifier: BSD-3-Clause */
/* Time rows side by side. */
#ifndef PERF_MEASURE_H
#define PERF_MEASURE_H

#include "case.h"
#include "progress.h"
#include "row.h"
#include "tensor.h"

/* Measure rows on the tensor of a case, each on a communicator of its own, and fill in how it went.
 * Collective.
 *
 * The rows take turns: an iteration calls each row once, in the order of turns.h, so that a slow moment of
 * the machine hits all of them alike, and so does what a row leaves in the caches. A barrier stands before
 * each call; its time is that of the slowest rank. */
void perf_measure(const struct perf_case *c, const struct perf_tensor *tensor, struct perf_row *rows, int n,
                  struct perf_progress *progress);

#endif
