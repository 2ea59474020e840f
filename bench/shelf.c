/* SPDX-License-Identifier: BSD-3-Clause */
#include "shelf.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "touch.h"

/* The segments of the others, or none on any rank. */
static bool find_others(struct perf_shelf *shelf, MPI_Comm node, const struct sar_segment_name *mine,
                        bool made)
{
    struct sar_segment_name *names = perf_alloc((size_t)shelf->ranks, sizeof *names);
    int good = made;

    MPI_Allgather(mine, (int)sizeof *mine, MPI_BYTE, names, (int)sizeof *mine, MPI_BYTE, node);
    MPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_MIN, node);
    for (int i = 1; i < shelf->ranks && good; i++)
        good = sar_segment_map(&names[(shelf->rank + i) % shelf->ranks], &shelf->segments[i]) == SAR_OK;
    MPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_MIN, node);
    free(names);
    return good;
}

static void unmap(struct perf_shelf *shelf)
{
    for (int i = 0; i < shelf->ranks; i++)
        sar_segment_unmap(&shelf->segments[i]);
}

static void do_without(struct perf_shelf *shelf, size_t bytes)
{
    unmap(shelf);
    shelf->alone = perf_block_written(bytes);
    shelf->segments[0] = (struct sar_segment){ .memory = shelf->alone.data, .bytes = bytes };
    shelf->rank = 0;
    shelf->ranks = 1;
}

void perf_shelf_open(struct perf_shelf *shelf, const struct perf_world *world, size_t bytes)
{
    struct sar_segment_name name = { 0 };
    MPI_Comm node;
    bool made;

    *shelf = (struct perf_shelf){ 0 };
    MPI_Comm_split(MPI_COMM_WORLD, world->node, world->rank, &node);
    MPI_Comm_rank(node, &shelf->rank);
    MPI_Comm_size(node, &shelf->ranks);
    shelf->segments = perf_alloc((size_t)shelf->ranks, sizeof *shelf->segments);
    made = sar_segment_make(bytes + 1, &shelf->segments[0], &name) == SAR_OK;
    if (made)
        memset(shelf->segments[0].memory, 1, bytes + 1);
    if (!find_others(shelf, node, &name, made))
        do_without(shelf, bytes);
    sar_segment_seal(&name);
    MPI_Comm_free(&node);
}

void *perf_shelf_data(const struct perf_shelf *shelf)
{
    return shelf->segments[0].memory;
}

/* From some place on, and again from the beginning. */
static void read_part(const char *data, size_t have, size_t from, size_t bytes)
{
    for (size_t n; bytes > 0 && have > 0; bytes -= n, from = 0) {
        from = from < have ? from / PERF_LINE * PERF_LINE : 0;
        n = bytes < have - from ? bytes : have - from;
        perf_read(data + from, n);
    }
}

void perf_shelf_read(const struct perf_shelf *shelf, size_t bytes, size_t written)
{
    size_t ranks = (size_t)shelf->ranks, share = bytes / ranks, place = (size_t)shelf->rank * share;

    for (size_t i = 0; i < ranks; i++) {
        const struct sar_segment *theirs = &shelf->segments[i];
        size_t have = written > 0 && written < theirs->bytes ? written : theirs->bytes;

        read_part(theirs->memory, have, place, i == 0 ? bytes - (ranks - 1) * share : share);
    }
}

void perf_shelf_close(struct perf_shelf *shelf)
{
    if (shelf->alone.memory != NULL)
        perf_block_free(&shelf->alone);
    else if (shelf->segments != NULL)
        unmap(shelf);
    free(shelf->segments);
    *shelf = (struct perf_shelf){ 0 };
}
