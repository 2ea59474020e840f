/* SPDX-License-Identifier: BSD-3-Clause */
/* The row `memory`: each rank reads its input once and writes its output once, and does nothing else. A
 * dense result is written whole, in place only the lines where the union has elements. In the row
 * `memory_node` ranks of a node write one result of the COO interface together. One rank copies its
 * coordinates. Zeros are written by ordinary stores or past the caches, whichever took less in a trial. */
#ifndef PERF_MEMORY_H
#define PERF_MEMORY_H

#include "case.h"
#include "tensor.h"

struct perf_memory {
    size_t bytes;           /* of an index and an element */
    size_t nnz_out;         /* elements of the union */
    bool copies;            /* the input is the output */
    struct perf_block part; /* COO interface: what this rank writes of the result */
    uint64_t *lines;        /* in place: a bit for each line of the vector that has elements of the union */
    size_t words;           /* of these */
    size_t written;         /* bytes */
    bool streams;           /* they go past the caches; equal on all ranks */
    unsigned long long most_read, most_written; /* bytes of any rank, on step 0 */
};

/* For a case whose step 0 is on the tensor; so many ranks, this one among them, write a result of the COO
 * interface together. Collective. */
void perf_memory_open(struct perf_memory *memory, const struct perf_case *c, const struct perf_tensor *tensor,
                      int sharers);
void perf_memory_close(struct perf_memory *memory);

/* The row. `recv` is where a dense result goes, and in place the input. */
void perf_memory_pass(const struct perf_memory *memory, const struct perf_case *c,
                      const struct perf_step *step, void *recv);

/* Its two halves where it does not copy. */
void perf_memory_read(const struct perf_case *c, const struct perf_step *step, const void *recv);
void perf_memory_write(const struct perf_memory *memory, const struct perf_case *c, void *recv);

/* Bytes of the indices and values of the step that has the most. */
size_t perf_memory_room(const struct perf_case *c, const struct perf_tensor *tensor);

#endif
