/* SPDX-License-Identifier: BSD-3-Clause */
/* Which elements are present on a rank in a step: drawn at random, the rows of the words of a text, or what a
 * trace says. */
#ifndef PERF_WORKLOAD_H
#define PERF_WORKLOAD_H

#include <stdint.h>

#include "case.h"
#include "source.h"

/* Indices in ascending order, each once. */
struct perf_set {
    size_t n;
    uint64_t *at;
};

void perf_set_free(struct perf_set *set);

/* The set of this rank in one of so many steps. What is drawn at random depends on the seed, the rank and the
 * step, but not on the number of ranks. A text has a batch for each rank at least. */
struct perf_set perf_workload_draw(const struct perf_case *c, const struct perf_source *source, int step,
                                   int steps);

/* Elements that a set has at most. */
size_t perf_workload_most(const struct perf_case *c, const struct perf_source *source);

/* Steps in which sets differ, at most. */
size_t perf_workload_steps(const struct perf_case *c, const struct perf_source *source);

#endif
