/* SPDX-License-Identifier: BSD-3-Clause */
/* Buffers that the ranks of a node share. Without shared memory, each rank reads a private block instead. */

#include "bench/limits/shm_buffer.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "bench/limits/membw.h"

/* Maps the buffers of all peers. Returns false on all ranks if one rank fails. */
static bool map_peers(struct perf_shm_buffer *buffer, MPI_Comm node, const struct sar_shm_handle *mine,
                      bool made)
{
    struct sar_shm_handle *names = perf_alloc((size_t)buffer->ranks, sizeof *names);
    int good = made;

    MPI_Allgather(mine, (int)sizeof *mine, MPI_BYTE, names, (int)sizeof *mine, MPI_BYTE, node);
    MPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_MIN, node);
    for (int i = 1; i < buffer->ranks && good; i++)
        good = sar_shm_region_map(&names[(buffer->rank + i) % buffer->ranks], &buffer->regions[i]) == SAR_OK;
    MPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_MIN, node);
    free(names);
    return good;
}

static void unmap(struct perf_shm_buffer *buffer)
{
    for (int i = 0; i < buffer->ranks; i++)
        sar_shm_region_unmap(&buffer->regions[i]);
}

static void use_private_block(struct perf_shm_buffer *buffer, size_t bytes)
{
    unmap(buffer);
    buffer->private_block = perf_block_written(bytes);
    buffer->regions[0] = (struct sar_shm_region){ .memory = buffer->private_block.data, .bytes = bytes };
    buffer->rank = 0;
    buffer->ranks = 1;
}

void perf_shm_buffer_open(struct perf_shm_buffer *buffer, const struct perf_world *world, size_t bytes)
{
    struct sar_shm_handle name = { 0 };
    MPI_Comm node;
    bool made;

    *buffer = (struct perf_shm_buffer){ 0 };
    MPI_Comm_split(MPI_COMM_WORLD, world->node, world->rank, &node);
    MPI_Comm_rank(node, &buffer->rank);
    MPI_Comm_size(node, &buffer->ranks);
    buffer->regions = perf_alloc((size_t)buffer->ranks, sizeof *buffer->regions);
    made = sar_shm_region_create(bytes + 1, &buffer->regions[0], &name) == SAR_OK;
    if (made)
        memset(buffer->regions[0].memory, 1, bytes + 1);
    if (!map_peers(buffer, node, &name, made))
        use_private_block(buffer, bytes);
    sar_shm_handle_close_fd(&name);
    MPI_Comm_free(&node);
}

void *perf_shm_buffer_data(const struct perf_shm_buffer *buffer)
{
    return buffer->regions[0].memory;
}

/* Reads `bytes` bytes from position `from` on, and wraps around. */
static void read_part(const char *data, size_t have, size_t from, size_t bytes)
{
    for (size_t n; bytes > 0 && have > 0; bytes -= n, from = 0) {
        from = from < have ? from / PERF_CACHE_LINE * PERF_CACHE_LINE : 0;
        n = bytes < have - from ? bytes : have - from;
        perf_membw_read(data + from, n);
    }
}

void perf_shm_buffer_read(const struct perf_shm_buffer *buffer, size_t bytes, size_t written)
{
    size_t ranks = (size_t)buffer->ranks, share = bytes / ranks, place = (size_t)buffer->rank * share;

    for (size_t i = 0; i < ranks; i++) {
        const struct sar_shm_region *theirs = &buffer->regions[i];
        size_t have = written > 0 && written < theirs->bytes ? written : theirs->bytes;

        read_part(theirs->memory, have, place, i == 0 ? bytes - (ranks - 1) * share : share);
    }
}

void perf_shm_buffer_close(struct perf_shm_buffer *buffer)
{
    if (buffer->private_block.memory != NULL)
        perf_block_free(&buffer->private_block);
    else if (buffer->regions != NULL)
        unmap(buffer);
    free(buffer->regions);
    *buffer = (struct perf_shm_buffer){ 0 };
}
