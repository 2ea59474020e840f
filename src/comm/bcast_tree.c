/* SPDX-License-Identifier: BSD-3-Clause */
/* The m = nodes - 1 vertices behind the root's node have k units of capacity each, for k trees. A tree has
 * m - 1 edges between them, and takes the next m - 1 units: so the vertices with children in a tree are
 * consecutive. All k capacities of a vertex go to one tree, unless two trees meet there. In a tree the
 * vertices with k children come first, in the order of levels, then those with fewer, then the leaves. */

#include "comm/bcast_tree.h"

#include <stdbool.h>
#include <stdint.h>

/* Vertices with fewer than k children, at most: those that share a unit with the tree before and behind. */
enum { PARTIAL_MAX = 2 };

/* A tree. Vertices are 0 to m - 1. The place of a vertex in the order of levels counts from 0, too. */
struct tree {
    int m, k;
    int full_first, n_full;                                     /* vertices with k children */
    int n_partial, partial[PARTIAL_MAX], children[PARTIAL_MAX]; /* in their order */
    int leaves_first; /* the first leaf; the others follow it, after m - 1 comes 0 */
};

static void add_partial(struct tree *t, int vertex, int children)
{
    if (children == 0)
        return;
    t->partial[t->n_partial] = vertex;
    t->children[t->n_partial++] = children;
}

static struct tree tree_make(int m, int k, int number)
{
    int edges = m > 0 ? m - 1 : 0;
    int64_t first = (int64_t)number * edges, end = first + edges;
    int one = (int)(first / k), other = (int)(end / k);
    int missing = (int)(first % k), rest = (int)(end % k);
    struct tree t = { .m = m, .k = k, .full_first = missing > 0 ? one + 1 : one };
    t.n_full = other > t.full_first ? other - t.full_first : 0;
    t.leaves_first = other + (rest > 0 || (one == other && missing > 0));
    if (one == other) {
        add_partial(&t, one, rest - missing);
    } else if (rest > k - missing || missing == 0) {
        add_partial(&t, other, rest);
        add_partial(&t, one, missing > 0 ? k - missing : 0);
    } else {
        add_partial(&t, one, k - missing);
        add_partial(&t, other, rest);
    }
    return t;
}

static int vertex_at(const struct tree *t, int place)
{
    if (place < t->n_full)
        return t->full_first + place;
    place -= t->n_full;
    return place < t->n_partial ? t->partial[place] : (t->leaves_first + place - t->n_partial) % t->m;
}

static int place_of(const struct tree *t, int vertex)
{
    for (int i = 0; i < t->n_partial; i++)
        if (t->partial[i] == vertex)
            return t->n_full + i;
    if (vertex >= t->full_first && vertex < t->full_first + t->n_full)
        return vertex - t->full_first;
    return t->n_full + t->n_partial + (vertex - t->leaves_first + t->m) % t->m;
}

static int children_at(const struct tree *t, int place)
{
    int partial = place - t->n_full;
    return partial < 0 ? t->k : partial < t->n_partial ? t->children[partial] : 0;
}

/* The place of a vertex's first child. */
static int first_child(const struct tree *t, int place)
{
    bool second = place > t->n_full;
    return 1 + (second ? t->n_full * t->k + t->children[0] : place * t->k);
}

/* The place of the parent, for places above 0. */
static int parent_of(const struct tree *t, int place)
{
    int parent = (place - 1) / t->k;
    if (parent < t->n_full)
        return parent;
    return t->n_full + (place - 1 - t->n_full * t->k >= t->children[0]);
}

/* The numbers of a node's neighbours, behind the root's node, which is 0. */
struct neighbours {
    int parent, n_children, children[SAR_BCAST_TREES_MAX];
};

static struct neighbours neighbours_of(int number, const struct tree *t)
{
    struct neighbours found = { .parent = 0 };
    if (number == 0) {
        found.n_children = t->m > 0;
        found.children[0] = t->m > 0 ? 1 + vertex_at(t, 0) : 0;
        return found;
    }
    int place = place_of(t, number - 1);
    found.n_children = children_at(t, place);
    for (int i = 0; i < found.n_children; i++)
        found.children[i] = 1 + vertex_at(t, first_child(t, place) + i);
    if (place > 0)
        found.parent = 1 + vertex_at(t, parent_of(t, place));
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

void sar_bcast_tree_links(const struct sar_nodes *nodes, int rank, int root, struct sar_bcast_tree tree,
                          struct sar_bcast_links *links)
{
    int first = nodes->node[root], node = nodes->node[rank], leader = leader_of(nodes, node, root);
    *links = (struct sar_bcast_links){ .parent = -1 };
    if (rank != leader) {
        links->parent = previous_in_chain(nodes, rank, leader);
    } else {
        struct tree t = tree_make(nodes->n - 1, tree.trees, tree.number);
        struct neighbours near = neighbours_of((node - first + nodes->n) % nodes->n, &t);
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

int sar_bcast_tree_depth(int nodes, int trees)
{
    int deepest = 0;
    for (int number = 0; number < trees && nodes > 1; number++) {
        struct tree t = tree_make(nodes - 1, trees, number);
        int depth = 1;
        for (int place = t.m - 1; place > 0; place = parent_of(&t, place))
            depth++;
        deepest = depth > deepest ? depth : deepest;
    }
    return deepest;
}
