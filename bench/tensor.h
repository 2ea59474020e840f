/* SPDX-License-Identifier: BSD-3-Clause */
/* The buffers of a case: what a rank hands to the library in each step, and what MPI_Allreduce needs. */
#ifndef PERF_TENSOR_H
#define PERF_TENSOR_H

#include <stdbool.h>

#include "case.h"
#include "workload.h"

enum { PERF_STEPS = 8, PERF_SHIFTS = 8 };

/* What a call is handed: the blocks below, or copies of them in device memory. */
struct perf_arrays {
    void *index, *values, *dense;
};

/* One of several tensors that take turns, so that no call finds its input in a cache. */
struct perf_step {
    size_t nnz;
    struct perf_block index, values; /* COO interface */
    struct perf_block dense;         /* dense interface */
    struct perf_arrays handed;
};

struct perf_tensor {
    int steps;
    struct perf_step step[PERF_STEPS];
    struct perf_set first;     /* what is present in step 0 */
    struct perf_block send;    /* COO interface: dense form of step 0, without data where memory is short */
    struct perf_block recv;    /* a dense result; without data where memory is short */
    void *device_recv;         /* where calls on device memory put that, or NULL */
    struct perf_block between; /* what a rank writes before each call, or without data */
    double bytes;              /* of all these on this rank */
};

/* False where the case does not fit into memory. The same on all ranks. */
bool perf_tensor_make(struct perf_tensor *tensor, const struct perf_case *c,
                      const struct perf_source *source);
void perf_tensor_free(struct perf_tensor *tensor);

/* Where the i-th call puts a dense result: some cache lines apart. NULL where memory is short. */
void *perf_tensor_recv(const struct perf_tensor *tensor, int i);

/* Where the i-th call itself puts it: the same, or device memory. */
void *perf_tensor_target(const struct perf_tensor *tensor, int i);

/* Write what this rank has of elements low to high - 1 in step 0 to a vector that begins with element low. */
void perf_tensor_scatter(const struct perf_tensor *tensor, const struct perf_case *c, size_t low, size_t high,
                         void *vector);

#endif
