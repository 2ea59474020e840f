/* SPDX-License-Identifier: BSD-3-Clause */
#include "copies.h"

#include <string.h>

static bool is_dense(const struct perf_case *c)
{
    return c->options->interface == PERF_DENSE;
}

void perf_copies_open(struct perf_copies *copies, const struct perf_case *c, const struct perf_tensor *tensor)
{
    unsigned long long inputs = tensor->first.n;
    size_t ranks = (size_t)c->world->ranks;

    *copies = (struct perf_copies){ 0 };
    perf_memory_open(&copies->memory, c, tensor, c->world->ranks);
    MPI_Allreduce(MPI_IN_PLACE, &inputs, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    copies->own_bytes = tensor->first.n * copies->memory.bytes;
    copies->share_bytes = (size_t)inputs * copies->memory.bytes / ranks;
    copies->part_bytes = copies->memory.nnz_out * copies->memory.bytes / ranks;
    copies->all_bytes = is_dense(c) ? copies->memory.nnz_out * copies->memory.bytes : copies->share_bytes;
    if (copies->all_bytes < copies->share_bytes)
        copies->all_bytes = copies->share_bytes;
    copies->own = perf_block_written(copies->own_bytes);
    copies->shelf = perf_block_written(copies->own_bytes);
    copies->all = perf_block_written(copies->all_bytes);
    copies->part = perf_block_written(copies->part_bytes);
}

static void meet_over_elements(const struct perf_copies *copies)
{
    memcpy(copies->shelf.data, copies->own.data, copies->own_bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    perf_read(copies->all.data, copies->share_bytes);
    memset(copies->part.data, 0, copies->part_bytes);
    MPI_Barrier(MPI_COMM_WORLD);
}

void perf_copies_pass(const struct perf_copies *copies, const struct perf_case *c,
                      const struct perf_step *step, void *recv)
{
    if (is_dense(c))
        perf_memory_read(c, step, recv);
    if (c->world->ranks > 1)
        meet_over_elements(copies);
    else
        memcpy(copies->shelf.data, copies->own.data, copies->own_bytes);
    if (!is_dense(c))
        return;
    if (c->world->ranks > 1)
        perf_read(copies->all.data, copies->memory.nnz_out * copies->memory.bytes);
    perf_memory_write(&copies->memory, c, recv);
}

void perf_copies_close(struct perf_copies *copies)
{
    perf_memory_close(&copies->memory);
    perf_block_free(&copies->own);
    perf_block_free(&copies->shelf);
    perf_block_free(&copies->all);
    perf_block_free(&copies->part);
}
