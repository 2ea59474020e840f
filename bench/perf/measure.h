/* SPDX-License-Identifier: BSD-3-Clause */
/* Times the rows of a case. */
#ifndef PERF_MEASURE_H
#define PERF_MEASURE_H

#include "bench/lib/case.h"
#include "bench/perf/report.h"
#include "bench/lib/tensor.h"
#include "bench/perf/row.h"

/** Measures n rows on the tensor of a case, each on a communicator of its own, and fills in their results.
 * Rows are interleaved: an iteration calls each row once, in the order of interleave.h, so that a slow
 * moment of the machine and the caches affect all rows alike. A barrier precedes each call; the time of an
 * iteration is that of the slowest rank. Collective. */
void perf_measure(const struct perf_case *c, const struct perf_tensor *tensor, struct perf_row *rows, int n,
                  struct perf_progress *progress);

#endif
