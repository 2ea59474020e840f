/* SPDX-License-Identifier: BSD-3-Clause */
/* The trees of a pipelined broadcast. Each of k trees broadcasts every k-th piece of a message. The nodes
 * are vertices of the trees, and the ranks of a node hand the pieces on in a chain. A node has at most k
 * children in all trees together: so it sends and receives each piece about once, as in a chain, but
 * log_k(nodes) steps from the root. With k = 2 these are two-tree broadcasts (Sanders, Speck and Traeff
 * 2009). */

#ifndef SAR_COMM_BCAST_TREE_H
#define SAR_COMM_BCAST_TREE_H

#include "comm/nodes.h"

/** Most trees of a broadcast; and most children of a rank: nodes, and the next rank of its own node. */
enum { SAR_BCAST_TREES_MAX = 4, SAR_BCAST_CHILDREN = SAR_BCAST_TREES_MAX + 1 };

/** One of the trees of a broadcast. */
struct sar_bcast_tree {
    int number; /**< 0 to trees - 1 */
    int trees;  /**< k, 1 to SAR_BCAST_TREES_MAX */
};

/** Neighbours of a rank in a tree. */
struct sar_bcast_links {
    int parent; /**< -1: the rank is the root */
    int n_children;
    int children[SAR_BCAST_CHILDREN]; /**< in the order of sends */
};

/** Sets the neighbours of a rank. Local. */
void sar_bcast_tree_links(const struct sar_nodes *nodes, int rank, int root, struct sar_bcast_tree tree,
                          struct sar_bcast_links *links);

/** Returns the steps from the root to the farthest node, of so many nodes, with so many trees. */
int sar_bcast_tree_depth(int nodes, int trees);

#endif
