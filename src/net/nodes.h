/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_NET_NODES_H
#define SAR_NET_NODES_H

#include <mpi.h>

#include "base/status.h"

/** Which ranks of a communicator are on one node. Nodes count in the order of their lowest ranks, the ranks
 * of a node in theirs; equal on all ranks. */
struct sar_nodes {
    int n;      /**< nodes */
    int most;   /**< ranks of the one that has the most */
    int *node;  /**< of each rank */
    int *place; /**< of each rank among those of its node */
    int *first; /**< node j has ranks[first[j]] to ranks[first[j + 1] - 1] */
    int *ranks; /**< node by node */
    int own;    /**< processors that the ranks of this one's node may have, taken together */
    int usable; /**< by those, and by others that the same launcher has started there */
};

/** Memory for a communicator of so many ranks. Local. */
enum sar_status sar_nodes_take(int ranks, struct sar_nodes *nodes);

/** Nothing to free does no harm. */
void sar_nodes_free(struct sar_nodes *nodes);

/** Ask MPI which ranks can share memory. Collective. */
enum sar_status sar_nodes_find(MPI_Comm comm, struct sar_nodes *nodes);

/** Pretend that the ranks are on so many nodes, as equal as they can be, each with ranks in sequence; no more
 * nodes than there are ranks. */
void sar_nodes_pretend(struct sar_nodes *nodes, int ranks, int n);

/** Ranks of a node. */
int sar_nodes_size(const struct sar_nodes *nodes, int node);

/** The rank of a node that speaks with a rank of another node: of each of its own ranks equally many others,
 * and where nodes have equally many ranks, the one in the same place. */
int sar_nodes_partner(const struct sar_nodes *nodes, int node, int other);

#endif
