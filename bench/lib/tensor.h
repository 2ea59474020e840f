/* SPDX-License-Identifier: BSD-3-Clause */
/* The buffers of a case: the inputs of each step, and the vectors that MPI_Allreduce needs. */
#ifndef PERF_TENSOR_H
#define PERF_TENSOR_H

#include <stdbool.h>

#include "bench/lib/case.h"
#include "bench/lib/workload.h"

enum { PERF_STEPS = 8, PERF_SHIFTS = 8 };

/** Arguments of a call: the blocks of a step, or copies of them in device memory. */
struct perf_call_buffers {
    void *index, *values, *dense;
};

/** One of several inputs. Calls use them in turn, so that no call finds its input in a cache. */
struct perf_step {
    size_t nnz;
    struct perf_block index, values; /**< COO interface */
    struct perf_block dense;         /**< dense interface */
    struct perf_call_buffers buffers;
};

/** All buffers of a case on this rank. perf_tensor_make sets all fields. */
struct perf_tensor {
    int steps;
    struct perf_step step[PERF_STEPS];
    struct perf_set first;     /**< elements of this rank in step 0 */
    struct perf_block send;    /**< COO interface: dense form of step 0; data are NULL if memory is short */
    struct perf_block recv;    /**< result of a dense call; data are NULL if memory is short */
    void *device_recv;         /**< result of a dense call in device memory, or NULL */
    struct perf_block between; /**< block written before each call (option --between); data may be NULL */
    double bytes;              /**< size of all buffers */
};

/** Allocates and fills the buffers. Returns false on all ranks if the case does not fit into memory. */
bool perf_tensor_make(struct perf_tensor *tensor, const struct perf_case *c,
                      const struct perf_source *source);
void perf_tensor_free(struct perf_tensor *tensor);

/** Returns the host address of the i-th call's dense result; addresses differ by some cache lines. NULL if
 * memory is short. */
void *perf_tensor_recv(const struct perf_tensor *tensor, int i);

/** Returns the address that the i-th call writes to: perf_tensor_recv(tensor, i), or device memory. */
void *perf_tensor_target(const struct perf_tensor *tensor, int i);

/** Writes this rank's elements low to high - 1 of step 0 to a vector that begins with element low. */
void perf_tensor_scatter(const struct perf_tensor *tensor, const struct perf_case *c, size_t low, size_t high,
                         void *vector);

#endif
