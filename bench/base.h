/* SPDX-License-Identifier: BSD-3-Clause */
/* What every file of the benchmark stands on: the ranks, memory that is there or ends the run, bit mixing. */
#ifndef PERF_BASE_H
#define PERF_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The ranks of MPI_COMM_WORLD. */
struct perf_world {
    int rank, ranks;
    int nodes, node, node_ranks; /* that the ranks are taken to be on, this one's, and its ranks (nodes.h) */
    bool pretended;              /* they are not those that the ranks are on */
    double memory;               /* bytes that one rank may use; equal on all ranks */
};

/* All but the nodes. Collective. */
void perf_world_find(struct perf_world *world);

/* The least number from `least` on that has no divisor in common with n: steps of it lead to all of n. */
size_t perf_coprime(size_t least, size_t n);

/* Memory for count things of some size, zeroed. Never NULL: a lack of memory ends all ranks. */
void *perf_alloc(size_t count, size_t size);

/* A buffer whose data begin on a cache line, some lines into the allocation. */
struct perf_block {
    void *memory; /* what free() takes */
    void *data;
};

enum { PERF_LINE = 64 };

struct perf_block perf_block_make(size_t bytes, size_t lines);

/* One that has been written to: pages that nobody has written to are all the same one. */
struct perf_block perf_block_written(size_t bytes);
void perf_block_free(struct perf_block *block);

/* A bijection on 64 bits after which any bits may be used. */
static inline uint64_t perf_mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

#endif
