/* SPDX-License-Identifier: BSD-3-Clause */
#include "nodes.h"

#include <mpi.h>

#include "knobs.h"

struct sar_nodes perf_nodes_find(void)
{
    struct sar_config config = perf_knobs_config();
    struct sar_nodes nodes;
    int ranks;

    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (sar_nodes_take(ranks, &nodes) != SAR_OK || sar_nodes_find(MPI_COMM_WORLD, &nodes) != SAR_OK)
        MPI_Abort(MPI_COMM_WORLD, 1);
    if (config.nodes != 0)
        sar_nodes_pretend(&nodes, ranks, (int)config.nodes);
    return nodes;
}

void perf_nodes_note(struct perf_world *world)
{
    struct sar_nodes nodes = perf_nodes_find();

    world->pretended = perf_knobs_config().nodes != 0;
    world->nodes = nodes.n;
    world->node = nodes.node[world->rank];
    world->node_ranks = sar_nodes_size(&nodes, world->node);
    sar_nodes_free(&nodes);
}
