/* SPDX-License-Identifier: BSD-3-Clause */
/* The two trees of a pipelined broadcast (Sanders, Speck and Traeff 2009). Each tree broadcasts every other
 * piece of a message. The nodes are vertices of the trees, and the ranks of a node hand the pieces on in a
 * chain. In each tree a node has at most two children, and each node is a leaf in one tree: so a node sends
 * and receives each piece about once, as in a chain, but log2(nodes) steps from the root. */

#ifndef SAR_COMM_BCAST_TREE_H
#define SAR_COMM_BCAST_TREE_H

#include "comm/nodes.h"

/** Trees of a broadcast; and most children of a rank: two nodes, and the next rank of its own node. */
enum { SAR_BCAST_TREES = 2, SAR_BCAST_CHILDREN = 3 };

/** Neighbours of a rank in a tree. */
struct sar_bcast_links {
    int parent; /**< -1: the rank is the root */
    int n_children;
    int children[SAR_BCAST_CHILDREN]; /**< in the order of sends */
};

/** Sets the neighbours of a rank. Local.
 * @param tree  0 or 1 */
void sar_bcast_tree_links(const struct sar_nodes *nodes, int rank, int root, int tree,
                          struct sar_bcast_links *links);

/** Returns the steps from the root to the farthest node, of so many nodes. */
int sar_bcast_tree_depth(int nodes);

#endif
