/* SPDX-License-Identifier: BSD-3-Clause */
/* The right result, from MPI_Allreduce on the dense form of step 0, against what the library made of it. */
#ifndef PERF_ORACLE_H
#define PERF_ORACLE_H

#include <mpix_sparse.h>

#include "case.h"
#include "tensor.h"

/* What a row says the result is. */
struct perf_claim {
    MPIX_Sparse_result result; /* COO interface */
    const void *dense;         /* dense interface */
    long long wrong;           /* elements found wrong on this rank */
};

/* Collective. Compares bit by bit, a piece of the vector at a time. */
void perf_oracle_check(const struct perf_case *c, const struct perf_tensor *tensor, struct perf_claim *claims,
                       int n);

#endif
