/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _DEFAULT_SOURCE
#define _DEFAULT_SOURCE /* _SC_PHYS_PAGES */
#endif

#include "base.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What is left over is for MPI, the library and the system. */
static const double MEMORY_SHARE = 0.75;

void perf_world_find(struct perf_world *world)
{
    MPI_Comm node;
    int node_ranks;
    double pages = (double)sysconf(_SC_PHYS_PAGES), page = (double)sysconf(_SC_PAGESIZE);

    MPI_Comm_rank(MPI_COMM_WORLD, &world->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world->ranks);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, world->rank, MPI_INFO_NULL, &node);
    MPI_Comm_size(node, &node_ranks);
    MPI_Comm_free(&node);
    world->memory = MEMORY_SHARE * pages * page / node_ranks;
    MPI_Allreduce(MPI_IN_PLACE, &world->memory, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
}

static size_t common_divisor(size_t a, size_t b)
{
    return b == 0 ? a : common_divisor(b, a % b);
}

size_t perf_coprime(size_t least, size_t n)
{
    while (common_divisor(least, n) != 1)
        least++;
    return least;
}

void *perf_alloc(size_t count, size_t size)
{
    void *memory = calloc(count == 0 ? 1 : count, size == 0 ? 1 : size);
    if (memory == NULL) {
        fprintf(stderr, "mpix_sparse_perf: no memory for %zu times %zu bytes\n", count, size);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return memory;
}

struct perf_block perf_block_make(size_t bytes, size_t lines)
{
    struct perf_block block;
    uintptr_t skip;

    block.memory = perf_alloc(bytes + (lines + 1) * PERF_LINE, 1);
    skip = PERF_LINE - (uintptr_t)block.memory % PERF_LINE;
    block.data = (char *)block.memory + skip + lines * PERF_LINE;
    return block;
}

struct perf_block perf_block_written(size_t bytes)
{
    struct perf_block block = perf_block_make(bytes, 0);

    memset(block.data, 1, bytes);
    return block;
}

void perf_block_free(struct perf_block *block)
{
    free(block->memory);
    block->memory = block->data = NULL;
}
