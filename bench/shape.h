/* SPDX-License-Identifier: BSD-3-Clause */
/* What the sets of step 0 look like over all ranks, found from the sets themselves. */
#ifndef PERF_SHAPE_H
#define PERF_SHAPE_H

#include "case.h"
#include "workload.h"

struct perf_shape {
    long long nnz_in_max;
    double nnz_in_mean;
    long long nnz_out; /* elements of the union */
    double overlap;    /* mean over pairs of |I1 & I2| / min(|I1|, |I2|); NaN without pairs */
    double head;       /* share of the elements in the first eighth of the range; NaN without elements */
};

/* Elements of the union of all ranks' sets, which go to `at` unless it is NULL. Collective. */
long long perf_shape_union(const struct perf_case *c, const struct perf_set *set, uint64_t *at);

/* Collective. */
void perf_shape_find(struct perf_shape *shape, const struct perf_case *c, const struct perf_set *set);

#endif
