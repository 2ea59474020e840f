/* SPDX-License-Identifier: BSD-3-Clause */
/* Contiguous parts with boundaries computed from the data: the Zen paper's data-dependent strawman, as the
 * scheme oktopk computes them. */
#ifndef PERF_BOUNDS_H
#define PERF_BOUNDS_H

#include "workload.h"

/* Part p begins with element bound[p]; bound[parts] is the end. Each of `ranks` sets is cut into `parts`
 * equal shares, and a boundary is the mean of theirs. Elements are below count. */
void perf_bounds_find(const struct perf_set *sets, int ranks, uint64_t count, uint32_t parts,
                      uint64_t *bound);

/* The part of an element. */
uint32_t perf_bounds_part(const uint64_t *bound, uint32_t parts, uint64_t index);

#endif
