/* SPDX-License-Identifier: BSD-3-Clause */
/* The row `memory`: each rank reads its input once and writes its output once, and does nothing else. A
 * dense result is written whole, in place only where the union has elements. In the row `memory_node` ranks
 * of a node write one result of the COO interface together. */
#ifndef PERF_MEMORY_H
#define PERF_MEMORY_H

#include "case.h"
#include "tensor.h"

struct perf_memory {
    size_t bytes;           /* of an index and an element */
    size_t nnz_out;         /* elements of the union */
    struct perf_block part; /* COO interface: what this rank writes of the result */
    size_t part_bytes;
    uint64_t *present; /* in place: the elements of the union, in ascending order */
};

/* For a case whose step 0 is on the tensor; so many ranks write a result of the COO interface together.
 * Collective. */
void perf_memory_open(struct perf_memory *memory, const struct perf_case *c, const struct perf_tensor *tensor,
                      int sharers);
/* Those of a node. */
int perf_memory_sharers(const struct perf_case *c);
void perf_memory_close(struct perf_memory *memory);

/* The two halves of the row. `recv` is where a dense result goes, and in place the input. */
void perf_memory_read(const struct perf_case *c, const struct perf_step *step, const void *recv);
void perf_memory_write(const struct perf_memory *memory, const struct perf_case *c, void *recv);

/* Read so many bytes, at the speed of memory. */
void perf_read(const void *data, size_t bytes);

#endif
