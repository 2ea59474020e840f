/* SPDX-License-Identifier: BSD-3-Clause */
/* Finding the nodes costs an MPI_Comm_split_type, an allreduce within each node and an allgather of one
 * int. */

#include "comm/nodes.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "comm/mpi_util.h"
#include "comm/topology.h"

enum sar_status sar_nodes_alloc(int ranks, struct sar_nodes *nodes)
{
    size_t n = (size_t)ranks;
    int *memory = calloc(4 * n + 1, sizeof *memory);
    if (memory == NULL)
        return SAR_NO_MEMORY;
    *nodes = (struct sar_nodes){
        .node = memory, .local_rank = memory + n, .ranks = memory + 2 * n, .first = memory + 3 * n
    };
    return SAR_OK;
}

void sar_nodes_free(struct sar_nodes *nodes)
{
    free(nodes->node);
    *nodes = (struct sar_nodes){ 0 };
}

/* On entry nodes->node[r] is the lowest rank on the node of rank r; on return it is the number of that
 * node. */
static void index_nodes(struct sar_nodes *nodes, int ranks)
{
    nodes->n = 0;
    for (int r = 0; r < ranks; r++)
        nodes->node[r] = nodes->node[r] == r ? nodes->n++ : nodes->node[nodes->node[r]];
    memset(nodes->first, 0, ((size_t)ranks + 1) * sizeof *nodes->first);
    for (int r = 0; r < ranks; r++)
        nodes->local_rank[r] = nodes->first[nodes->node[r] + 1]++;
    nodes->max_ranks = 0;
    for (int j = 0; j < nodes->n; j++) {
        nodes->max_ranks = nodes->first[j + 1] > nodes->max_ranks ? nodes->first[j + 1] : nodes->max_ranks;
        nodes->first[j + 1] += nodes->first[j];
    }
    for (int r = 0; r < ranks; r++)
        nodes->ranks[nodes->first[nodes->node[r]] + nodes->local_rank[r]] = r;
}

/* Summed over the ranks of a node. */
struct node_info {
    uint32_t min_rank;                     /* set by the lowest rank of the node, 0 on its other ranks */
    uint32_t users[64 * SAR_CPUSET_WORDS]; /* ranks that may use each processor */
};

static bool has_cpu(const struct sar_cpuset *set, int cpu)
{
    return (set->bits[cpu / 64] >> cpu % 64 & 1) != 0;
}

static enum sar_status sum_node_info(MPI_Comm node, int rank, const struct sar_cpuset *own,
                                     struct node_info *all)
{
    enum { WORDS = sizeof *all / sizeof(uint32_t) };
    int local_rank;
    PMPI_Comm_rank(node, &local_rank);
    all->min_rank = local_rank == 0 ? (uint32_t)rank : 0;
    for (int cpu = 0; cpu < 64 * SAR_CPUSET_WORDS; cpu++)
        all->users[cpu] = has_cpu(own, cpu);
    return sar_mpi(PMPI_Allreduce(MPI_IN_PLACE, all, WORDS, MPI_UINT32_T, MPI_SUM, node));
}

static int cap_by_cgroup(int cpus)
{
    int cgroup_cpus = sar_topology_cgroup_cpus();
    return cgroup_cpus > 0 && cgroup_cpus < cpus ? cgroup_cpus : cpus;
}

/* The parent process is the launcher of all ranks of the node, and is not bound as they are. Assumes that
 * ranks which share memory are in one control group. A processor of several ranks counts as a fraction for
 * each of them. */
static void count_processors(const struct sar_cpuset *own, const struct node_info *all,
                             struct sar_nodes *nodes)
{
    struct sar_cpuset job_cpus;
    int comm_cpus = 0, job = 0;
    double share = 0;
    sar_topology_cpuset(getppid(), &job_cpus);
    for (int cpu = 0; cpu < 64 * SAR_CPUSET_WORDS; cpu++) {
        comm_cpus += all->users[cpu] != 0;
        job += all->users[cpu] != 0 || has_cpu(&job_cpus, cpu);
        share += has_cpu(own, cpu) ? 1.0 / all->users[cpu] : 0;
    }
    nodes->comm_cpus = cap_by_cgroup(comm_cpus);
    nodes->job_cpus = cap_by_cgroup(job);
    share *= (double)nodes->comm_cpus / (comm_cpus > 0 ? comm_cpus : 1);
    nodes->own_cpus = share < 1 ? 1 : (int)(share + 1e-6);
}

enum sar_status sar_nodes_find(MPI_Comm comm, struct sar_nodes *nodes)
{
    MPI_Comm node;
    struct sar_cpuset own;
    struct node_info all;
    int rank, ranks, min_rank;
    PMPI_Comm_rank(comm, &rank);
    PMPI_Comm_size(comm, &ranks);
    sar_topology_cpuset(0, &own);
    SAR_TRY(sar_mpi(PMPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node)));
    enum sar_status status = sum_node_info(node, rank, &own, &all);
    PMPI_Comm_free(&node);
    SAR_TRY(status);
    min_rank = (int)all.min_rank;
    SAR_TRY(sar_mpi(PMPI_Allgather(&min_rank, 1, MPI_INT, nodes->node, 1, MPI_INT, comm)));
    index_nodes(nodes, ranks);
    count_processors(&own, &all, nodes);
    nodes->real_ranks = sar_nodes_size(nodes, nodes->node[rank]);
    nodes->real_rank = nodes->local_rank[rank];
    return SAR_OK;
}

void sar_nodes_override(struct sar_nodes *nodes, int ranks, int n)
{
    int min_rank = 0, n_nodes = n < ranks ? n : ranks;
    for (int r = 0; r < ranks; r++) {
        if ((int64_t)r * n_nodes / ranks != (int64_t)min_rank * n_nodes / ranks)
            min_rank = r;
        nodes->node[r] = min_rank;
    }
    index_nodes(nodes, ranks);
}

int sar_nodes_size(const struct sar_nodes *nodes, int node)
{
    return nodes->first[node + 1] - nodes->first[node];
}

int sar_nodes_partner(const struct sar_nodes *nodes, int node, int other)
{
    int size = sar_nodes_size(nodes, node), other_node = nodes->node[other];
    int number = nodes->first[other_node] + nodes->local_rank[other] - (other_node > node ? size : 0);
    return nodes->ranks[nodes->first[node] + number % size];
}
