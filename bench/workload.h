/* SPDX-License-Identifier: BSD-3-Clause */
/* Which elements are present on a rank in a step: drawn at random, or the rows of the words of a text. */
#ifndef PERF_WORKLOAD_H
#define PERF_WORKLOAD_H

#include <stdint.h>

#include "case.h"
#include "text.h"

/* Indices in ascending order, each once. */
struct perf_set {
    size_t n;
    uint64_t *at;
};

void perf_set_free(struct perf_set *set);

/* The set of this rank in one of so many steps. `text` is NULL for random sets; these depend on the seed, the
 * rank and the step, but not on the number of ranks. A text has a batch for each rank at least. */
struct perf_set perf_workload_draw(const struct perf_case *c, const struct perf_text *text, int step,
                                   int steps);

/* Elements that a random set has. */
size_t perf_workload_size(const struct perf_case *c);

#endif
