/* SPDX-License-Identifier: BSD-3-Clause */
/* Base of all files of the benchmark: the ranks, memory, bit mixing, and files that all ranks read. */
#ifndef PERF_BASE_H
#define PERF_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** The ranks of MPI_COMM_WORLD. All fields are set once, before the first case. */
struct perf_world {
    int rank, ranks;
    int nodes, node,
        node_ranks;        /**< number of nodes, own node, number of ranks on the own node; see nodes.h */
    bool nodes_overridden; /**< MPIX_SPARSE_NODES overrides the real nodes */
    double memory;         /**< bytes that one rank may use; equal on all ranks */
};

/** Sets all fields but those on nodes. Collective. */
void perf_world_find(struct perf_world *world);

/** Returns the least number from `least` on that is coprime to n. Steps of that size modulo n visit all of n.
 */
size_t perf_coprime(size_t least, size_t n);

/** Allocates `count` zeroed items of `size` bytes, for free(). Ends all ranks if memory is short; never NULL.
 */
void *perf_alloc(size_t count, size_t size);

/** A buffer whose data begin on a cache line. */
struct perf_block {
    void *memory; /**< argument of free() */
    void *data;
};

enum { PERF_CACHE_LINE = 64 };

/** Allocates zeroed data that begin `lines` cache lines into the allocation. */
struct perf_block perf_block_make(size_t bytes, size_t lines);

/** Allocates data that have been written to. Unwritten pages would all be mapped to one zero page. */
struct perf_block perf_block_written(size_t bytes);
void perf_block_free(struct perf_block *block);

/** A bijection on 64 bits. Every bit of the result depends on every bit of x. */
static inline uint64_t perf_mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/** Reads a file on rank 0 and broadcasts its bytes, with a terminating null. Returns memory for free().
 * Returns NULL on all ranks if the file cannot be read; rank 0 has then printed the reason. Collective. */
char *perf_file_load(const char *path, size_t *bytes, const struct perf_world *world);

#endif
