/* SPDX-License-Identifier: BSD-3-Clause */
/* The ranks, memory, and files that rank 0 reads for all ranks. */

#ifndef _DEFAULT_SOURCE
#define _DEFAULT_SOURCE /* _SC_PHYS_PAGES */
#endif

#include "bench/lib/base.h"

#include <errno.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* MPI, the library and the system need the rest. */
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

    block.memory = perf_alloc(bytes + (lines + 1) * PERF_CACHE_LINE, 1);
    skip = PERF_CACHE_LINE - (uintptr_t)block.memory % PERF_CACHE_LINE;
    block.data = (char *)block.memory + skip + lines * PERF_CACHE_LINE;
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

/* Reads a whole file into *content, which grows by realloc. Returns false on an error. */
static bool read_all(FILE *file, char **content, size_t *bytes)
{
    size_t capacity = 1 << 16;

    for (*bytes = 0;;) {
        char *larger = realloc(*content, (capacity *= 2) + 1);
        if (larger == NULL)
            return false;
        *content = larger;
        *bytes += fread(larger + *bytes, 1, capacity - *bytes, file);
        if (*bytes < capacity) {
            larger[*bytes] = '\0';
            return !ferror(file);
        }
    }
}

/* Returns the content of a file, for free(), or NULL with errno set. */
static char *read_file(const char *path, size_t *bytes)
{
    FILE *file = fopen(path, "rb");
    char *content = NULL;
    int error = 0;

    if (file == NULL)
        return NULL;
    if (!read_all(file, &content, bytes)) {
        error = errno;
        free(content);
        content = NULL;
    }
    fclose(file);
    errno = error;
    return content;
}

static void broadcast(char *content, size_t bytes)
{
    const size_t piece = 1 << 30;

    for (size_t at = 0; at < bytes; at += piece)
        MPI_Bcast(content + at, (int)(bytes - at < piece ? bytes - at : piece), MPI_BYTE, 0, MPI_COMM_WORLD);
}

char *perf_file_load(const char *path, size_t *bytes, const struct perf_world *world)
{
    char *content = NULL;
    long long length = -1;

    if (world->rank == 0) {
        content = read_file(path, bytes);
        if (content != NULL)
            length = (long long)*bytes;
        else
            fprintf(stderr, "mpix_sparse_perf: cannot read '%s': %s\n", path, strerror(errno));
    }
    MPI_Bcast(&length, 1, MPI_LONG_LONG, 0, MPI_COMM_WORLD);
    if (length < 0)
        return NULL;
    *bytes = (size_t)length;
    if (world->rank != 0)
        content = perf_alloc(*bytes + 1, 1);
    broadcast(content, *bytes);
    return content;
}
