/* SPDX-License-Identifier: BSD-3-Clause */
/* The nodes of a communicator: which of its ranks share memory. Found once, when the communicator is
 * opened. */

#ifndef SAR_COMM_NODES_H
#define SAR_COMM_NODES_H

#include <mpi.h>

#include "base/status.h"

/** Nodes are numbered in the order of their lowest ranks. All members but the last five are equal on all
 * ranks. */
struct sar_nodes {
    int n;           /**< number of nodes */
    int max_ranks;   /**< ranks of the largest node */
    int *node;       /**< node of each rank */
    int *local_rank; /**< number of each rank within its node, in the order of ranks */
    int *first;      /**< the ranks of node j are ranks[first[j]] to ranks[first[j + 1] - 1] */
    int *ranks;      /**< ranks in the order of nodes */
    int comm_cpus;   /**< processors that the ranks of this node may use, all ranks together */
    int job_cpus;    /**< comm_cpus and the processors that the launcher may use on this node */
    int own_cpus;    /**< this rank's fair share of its processors, at least 1 */
    int real_ranks;  /**< ranks of this node, as found: sar_nodes_override does not change them */
    int real_rank;   /**< this rank's number among them */
};

/** Allocates the arrays for a communicator of `ranks` ranks; sar_nodes_free frees them. Local. */
enum sar_status sar_nodes_alloc(int ranks, struct sar_nodes *nodes);

/** Frees the arrays; allowed if there are none. Local. */
void sar_nodes_free(struct sar_nodes *nodes);

/** Fills in the nodes by MPI_COMM_TYPE_SHARED, and counts processors. Collective over comm. */
enum sar_status sar_nodes_find(MPI_Comm comm, struct sar_nodes *nodes);

/** Replaces the nodes by min(n, ranks) nodes of consecutive ranks, of sizes that differ by at most 1. For
 * tests. Local, with equal arguments on all ranks. */
void sar_nodes_override(struct sar_nodes *nodes, int ranks, int n);

/** Returns the number of ranks of a node. */
int sar_nodes_size(const struct sar_nodes *nodes, int node);

/** Returns the rank of `node` that exchanges messages with rank `other` of another node. The other ranks are
 * spread evenly over the ranks of `node`. If all nodes have the same size, partners have the same
 * local_rank. */
int sar_nodes_partner(const struct sar_nodes *nodes, int node, int other);

#endif
