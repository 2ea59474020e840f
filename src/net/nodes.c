/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/nodes.h"

#include <stdlib.h>
#include <string.h>

#include "net/net.h"
#include "net/topology.h"

enum sar_status sar_nodes_take(int ranks, struct sar_nodes *nodes)
{
    size_t n = (size_t)ranks;
    int *memory = calloc(4 * n + 1, sizeof *memory);
    if (memory == NULL)
        return SAR_NO_MEMORY;
    *nodes = (struct sar_nodes){
        .node = memory, .place = memory + n, .ranks = memory + 2 * n, .first = memory + 3 * n
    };
    return SAR_OK;
}

void sar_nodes_free(struct sar_nodes *nodes)
{
    free(nodes->node);
    *nodes = (struct sar_nodes){ 0 };
}

/* Make the lowest rank on its node, which each rank's entry in nodes->node is, the number of that node. */
static void number_nodes(struct sar_nodes *nodes, int ranks)
{
    nodes->n = 0;
    for (int r = 0; r < ranks; r++)
        nodes->node[r] = nodes->node[r] == r ? nodes->n++ : nodes->node[nodes->node[r]];
}

static void arrange(struct sar_nodes *nodes, int ranks)
{
    number_nodes(nodes, ranks);
    memset(nodes->first, 0, ((size_t)ranks + 1) * sizeof *nodes->first);
    for (int r = 0; r < ranks; r++)
        nodes->place[r] = nodes->first[nodes->node[r] + 1]++;
    nodes->most = 0;
    for (int j = 0; j < nodes->n; j++) {
        nodes->most = nodes->first[j + 1] > nodes->most ? nodes->first[j + 1] : nodes->most;
        nodes->first[j + 1] += nodes->first[j];
    }
    for (int r = 0; r < ranks; r++)
        nodes->ranks[nodes->first[nodes->node[r]] + nodes->place[r]] = r;
}

/* What the ranks of a node find out together, bit by bit. */
struct meeting {
    uint64_t lowest; /* rank of them; of the others 0 */
    struct sar_processors processors;
};

static enum sar_status meet(MPI_Comm node, int rank, struct meeting *all)
{
    enum { WORDS = sizeof *all / sizeof(uint64_t) };
    int place;
    PMPI_Comm_rank(node, &place);
    all->lowest = place == 0 ? (uint64_t)rank : 0;
    sar_topology_mine(&all->processors);
    return sar_mpi(PMPI_Allreduce(MPI_IN_PLACE, all, WORDS, MPI_UINT64_T, MPI_BOR, node));
}

static int within_quota(int processors)
{
    int quota = sar_topology_quota();
    return quota > 0 && quota < processors ? quota : processors;
}

/* Ranks that share memory are taken to share their quota, too. */
static void count_processors(const struct sar_processors *ours, struct sar_nodes *nodes)
{
    struct sar_processors any;
    sar_topology_launcher(&any);
    for (int i = 0; i < SAR_PROCESSOR_WORDS; i++)
        any.bits[i] |= ours->bits[i];
    nodes->own = within_quota(sar_processors_count(ours));
    nodes->usable = within_quota(sar_processors_count(&any));
}

enum sar_status sar_nodes_find(MPI_Comm comm, struct sar_nodes *nodes)
{
    MPI_Comm node;
    struct meeting all;
    int rank, ranks, lowest;
    PMPI_Comm_rank(comm, &rank);
    PMPI_Comm_size(comm, &ranks);
    SAR_TRY(sar_mpi(PMPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node)));
    enum sar_status status = meet(node, rank, &all);
    PMPI_Comm_free(&node);
    SAR_TRY(status);
    lowest = (int)all.lowest;
    SAR_TRY(sar_mpi(PMPI_Allgather(&lowest, 1, MPI_INT, nodes->node, 1, MPI_INT, comm)));
    arrange(nodes, ranks);
    count_processors(&all.processors, nodes);
    return SAR_OK;
}

void sar_nodes_pretend(struct sar_nodes *nodes, int ranks, int n)
{
    int lowest = 0, wanted = n < ranks ? n : ranks;
    for (int r = 0; r < ranks; r++) {
        if ((int64_t)r * wanted / ranks != (int64_t)lowest * wanted / ranks)
            lowest = r;
        nodes->node[r] = lowest;
    }
    arrange(nodes, ranks);
}

int sar_nodes_size(const struct sar_nodes *nodes, int node)
{
    return nodes->first[node + 1] - nodes->first[node];
}

int sar_nodes_partner(const struct sar_nodes *nodes, int node, int other)
{
    int size = sar_nodes_size(nodes, node), home = nodes->node[other];
    int number = nodes->first[home] + nodes->place[other] - (home > node ? size : 0);
    return nodes->ranks[nodes->first[node] + number % size];
}
