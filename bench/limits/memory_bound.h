/* SPDX-License-Identifier: BSD-3-Clause */
/* The bound on memory traffic, row `memory`: each rank only reads its input once and writes its output once.
 * A dense result is written whole; in place, only the lines with elements of the union are written. In row
 * `memory_node` the ranks of a node write one result of the COO interface together. A single rank copies its
 * coordinates. A trial decides between ordinary and non-temporal stores. */
#ifndef PERF_MEMORY_BOUND_H
#define PERF_MEMORY_BOUND_H

#include "bench/lib/case.h"
#include "bench/lib/tensor.h"

struct perf_memory_bound {
    size_t bytes;           /**< of an index and an element together */
    size_t nnz_out;         /**< elements of the union */
    bool copies_input;      /**< true if the input is the output */
    struct perf_block part; /**< COO interface: this rank's share of the result */
    uint64_t *lines;        /**< in place: one bit a line, set if it has elements of the union */
    size_t words;           /**< words of `lines` */
    size_t written;         /**< bytes that this rank writes */
    bool nt_stores;         /**< stores are non-temporal; equal on all ranks */
    unsigned long long max_read, max_written; /**< bytes, maximum over ranks in step 0 */
};

/** Prepares the bound for a case. `sharers` ranks, including this one, write one result of the COO interface
 * together. Collective. */
void perf_memory_bound_open(struct perf_memory_bound *memory, const struct perf_case *c,
                            const struct perf_tensor *tensor, int sharers);
void perf_memory_bound_close(struct perf_memory_bound *memory);

/** Runs the row once. `recv` is the dense result, and in place also the input. Local. */
void perf_memory_bound_run(const struct perf_memory_bound *memory, const struct perf_case *c,
                           const struct perf_step *step, void *recv);

/** Its two halves, for a bound that does not copy the input. */
void perf_memory_bound_read(const struct perf_case *c, const struct perf_step *step, const void *recv);
void perf_memory_bound_write(const struct perf_memory_bound *memory, const struct perf_case *c, void *recv);

/** Returns the largest size in bytes of indices and values of a step. */
size_t perf_memory_bound_step_bytes(const struct perf_case *c, const struct perf_tensor *tensor);

#endif
