/* SPDX-License-Identifier: BSD-3-Clause */
#include "line.h"

#include <math.h>
#include <mpi.h>

#include "net/line.h"
#include "net/topology.h"

/* At the beginning of each rank's part of a window. */
static atomic_uint_least64_t *line_of(const void *window, int rank)
{
    void *memory;
    MPI_Aint bytes;
    int unit;

    MPI_Win_shared_query(*(const MPI_Win *)window, rank, &bytes, &unit, &memory);
    return memory;
}

static double on_node(MPI_Comm node, int rank, int ranks)
{
    enum { PAGE = 4096, TRIES = 20 };
    MPI_Win window;
    struct sar_lines lines = { line_of, &window, rank, ranks, node, TRIES, 0 };
    void *memory;
    double seconds;

    MPI_Win_allocate_shared(PAGE, 1, MPI_INFO_NULL, node, &memory, &window);
    atomic_init(line_of(&window, rank), 0);
    MPI_Barrier(node);
    seconds = sar_line_seconds(&lines);
    MPI_Win_free(&window);
    return seconds;
}

/* One for each rank, on which no other one runs. */
static bool has_processors(MPI_Comm node, int ranks)
{
#if defined(PERF_SMPI_H)
    return node == MPI_COMM_NULL && ranks < 0; /* simulated ones */
#else
    struct sar_processors all;

    sar_topology_mine(&all);
    MPI_Allreduce(MPI_IN_PLACE, all.bits, SAR_PROCESSOR_WORDS, MPI_UINT64_T, MPI_BOR, node);
    return sar_processors_count(&all) >= ranks;
#endif
}

double perf_line_seconds(const struct perf_world *world)
{
    MPI_Comm node;
    double seconds = 0;
    int rank, ranks;

    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, world->rank, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &rank);
    MPI_Comm_size(node, &ranks);
    if (ranks > 1 && has_processors(node, ranks))
        seconds = on_node(node, rank, ranks);
    MPI_Comm_free(&node);
    MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return seconds > 0 ? seconds : NAN;
}
