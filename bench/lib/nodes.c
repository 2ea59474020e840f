/* SPDX-License-Identifier: BSD-3-Clause */
/* Nodes of the library, and the latency of a cache line within a node. */

#include "bench/lib/nodes.h"

#include <math.h>
#include <mpi.h>

#include "bench/lib/settings.h"
#include "comm/shm/numa_distance.h"
#include "comm/topology.h"

struct sar_nodes perf_nodes_find(void)
{
    struct sar_config config = perf_settings_config();
    struct sar_nodes nodes;
    int ranks;

    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (sar_nodes_alloc(ranks, &nodes) != SAR_OK || sar_nodes_find(MPI_COMM_WORLD, &nodes) != SAR_OK)
        MPI_Abort(MPI_COMM_WORLD, 1);
    if (config.nodes != 0)
        sar_nodes_override(&nodes, ranks, (int)config.nodes);
    return nodes;
}

void perf_nodes_store(struct perf_world *world)
{
    struct sar_nodes nodes = perf_nodes_find();

    world->nodes_overridden = perf_settings_config().nodes != 0;
    world->nodes = nodes.n;
    world->node = nodes.node[world->rank];
    world->node_ranks = sar_nodes_size(&nodes, world->node);
    sar_nodes_free(&nodes);
}

/* The cache line of a rank: the first one of its part of the window. */
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
    struct sar_cacheline_probe lines = { line_of, &window, rank, ranks, node, TRIES, 0 };
    void *memory;
    double seconds;

    MPI_Win_allocate_shared(PAGE, 1, MPI_INFO_NULL, node, &memory, &window);
    atomic_init(line_of(&window, rank), 0);
    MPI_Barrier(node);
    seconds = sar_cacheline_latency_measure(&lines);
    MPI_Win_free(&window);
    return seconds;
}

/* True if the ranks of the node may run on at least one processor each. */
static bool has_processors(MPI_Comm node, int ranks)
{
#if defined(PERF_SMPI_H)
    return node == MPI_COMM_NULL && ranks < 0; /* simulated ranks have no processors */
#else
    struct sar_cpuset all;

    sar_topology_cpuset(0, &all);
    MPI_Allreduce(MPI_IN_PLACE, all.bits, SAR_CPUSET_WORDS, MPI_UINT64_T, MPI_BOR, node);
    return sar_cpuset_count(&all) >= ranks;
#endif
}

double perf_cacheline_seconds(const struct perf_world *world)
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
