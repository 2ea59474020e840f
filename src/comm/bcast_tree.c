/* SPDX-License-Identifier: BSD-3-Clause */
/* The first tree is a search tree of the positions 1 to m, m = nodes - 1, behind the root's node: odd
 * positions are leaves. The second one has the same shape with other nodes in it. If m is even, it is
 * mirrored: position i becomes m + 1 - i. If m is odd, it is rotated: position i becomes i - 1, and 1
 * becomes m. In both cases the inner nodes of one tree are leaves of the other. */

#include "comm/bcast_tree.h"

/* The largest power of two that is at most n. */
static int power_below(int n)
{
    int power = 1;
    while (power <= n / 2)
        power *= 2;
    return power;
}

/* The search tree of the positions above `base`, at most base + n. Its root is at base + power_below(n). */
struct subtree {
    int base, n;
};

static int root_of(struct subtree t)
{
    return t.base + power_below(t.n);
}

static struct subtree left_of(struct subtree t)
{
    return (struct subtree){ t.base, power_below(t.n) - 1 };
}

static struct subtree right_of(struct subtree t)
{
    int root = power_below(t.n);
    return (struct subtree){ t.base + root, t.n - root };
}

/* The neighbours of a position; 0 is the root's node. */
struct neighbours {
    int parent, n_children, children[2];
};

static struct neighbours find(int position, int m)
{
    struct neighbours found = { .parent = 0 };
    struct subtree t = { 0, m };
    while (root_of(t) != position) {
        found.parent = root_of(t);
        t = position < found.parent ? left_of(t) : right_of(t);
    }
    if (left_of(t).n > 0)
        found.children[found.n_children++] = root_of(left_of(t));
    if (right_of(t).n > 0)
        found.children[found.n_children++] = root_of(right_of(t));
    return found;
}

/* From a node's number behind the root to its position in the second tree, and back. */
static int to_second(int number, int m)
{
    return m % 2 == 0 ? m + 1 - number : number > 1 ? number - 1 : m;
}

static int from_second(int position, int m)
{
    return m % 2 == 0 ? m + 1 - position : position < m ? position + 1 : 1;
}

/* The numbers of a node's neighbours; 0 is the root's node. */
static struct neighbours neighbours_of(int number, int m, int tree)
{
    struct neighbours found = { .parent = 0 };
    if (number == 0 && m > 0) {
        found.n_children = 1;
        found.children[0] = root_of((struct subtree){ 0, m });
    } else if (number > 0) {
        found = find(tree == 0 ? number : to_second(number, m), m);
    }
    if (tree == 0)
        return found;
    found.parent = found.parent == 0 ? 0 : from_second(found.parent, m);
    for (int i = 0; i < found.n_children; i++)
        found.children[i] = from_second(found.children[i], m);
    return found;
}

/* The rank of a node that other nodes send to. */
static int leader_of(const struct sar_nodes *nodes, int node, int root)
{
    return nodes->node[root] == node ? root : nodes->ranks[nodes->first[node]];
}

/* The chain of a node begins with its leader, and goes on with the other ranks in their order. */
static int next_in_chain(const struct sar_nodes *nodes, int rank, int leader)
{
    int node = nodes->node[rank], begin = rank == leader ? 0 : nodes->local_rank[rank] + 1;
    for (int at = nodes->first[node] + begin; at < nodes->first[node + 1]; at++)
        if (nodes->ranks[at] != leader)
            return nodes->ranks[at];
    return -1;
}

static int previous_in_chain(const struct sar_nodes *nodes, int rank, int leader)
{
    int node = nodes->node[rank];
    for (int at = nodes->first[node] + nodes->local_rank[rank] - 1; at >= nodes->first[node]; at--)
        if (nodes->ranks[at] != leader)
            return nodes->ranks[at];
    return leader;
}

void sar_bcast_tree_links(const struct sar_nodes *nodes, int rank, int root, int tree,
                          struct sar_bcast_links *links)
{
    int first = nodes->node[root], node = nodes->node[rank], leader = leader_of(nodes, node, root);
    *links = (struct sar_bcast_links){ .parent = -1 };
    if (rank != leader) {
        links->parent = previous_in_chain(nodes, rank, leader);
    } else {
        struct neighbours near = neighbours_of((node - first + nodes->n) % nodes->n, nodes->n - 1, tree);
        for (int i = 0; i < near.n_children; i++)
            links->children[links->n_children++] =
                leader_of(nodes, (near.children[i] + first) % nodes->n, root);
        if (rank != root)
            links->parent = leader_of(nodes, (near.parent + first) % nodes->n, root);
    }
    int next = next_in_chain(nodes, rank, leader);
    if (next >= 0)
        links->children[links->n_children++] = next;
}

int sar_bcast_tree_depth(int nodes)
{
    int depth = 0;
    for (int m = nodes - 1; m > 0; m /= 2)
        depth++;
    return depth;
}
