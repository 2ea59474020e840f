/* SPDX-License-Identifier: BSD-3-Clause */
/* Check of results: compares results with MPI_Allreduce on the dense form of step 0. */
#ifndef PERF_RESULT_CHECK_H
#define PERF_RESULT_CHECK_H

#include <mpix_sparse.h>

#include "bench/lib/case.h"
#include "bench/lib/tensor.h"

/** A result to check. */
struct perf_output {
    MPIX_Sparse_result result; /**< COO interface */
    const void *dense;         /**< dense interface */
    long long wrong;           /**< output: wrong elements on this rank */
};

/** Checks n results bit by bit, a piece of the vector at a time. Collective. */
void perf_result_check(const struct perf_case *c, const struct perf_tensor *tensor,
                       struct perf_output *outputs, int n);

#endif
