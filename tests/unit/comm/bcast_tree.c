/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests the trees of a broadcast: links of two ranks agree, every rank is reached, no node but the root's is
 * an inner node of both trees, and the depth is logarithmic. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>

#include <cmocka.h>

#include "comm/bcast_tree.h"

enum { MOST = 40 };

/* Returns the steps between nodes from the root to a rank, by the parents. */
static int node_steps(const struct sar_nodes *nodes, const struct sar_bcast_links *links, int rank)
{
    int steps = 0;
    for (int hops = 0; links[rank].parent >= 0; rank = links[rank].parent, hops++) {
        assert_true(hops < MOST);
        steps += nodes->node[rank] != nodes->node[links[rank].parent];
    }
    return steps;
}

static void check_links(const struct sar_nodes *nodes, const struct sar_bcast_links *links, int ranks,
                        int root)
{
    int children = 0;
    for (int r = 0; r < ranks; r++) {
        children += links[r].n_children;
        assert_true(links[r].n_children <= SAR_BCAST_CHILDREN);
        for (int i = 0; i < links[r].n_children; i++)
            assert_int_equal(links[links[r].children[i]].parent, r);
        assert_true((links[r].parent < 0) == (r == root));
        assert_true(node_steps(nodes, links, r) <= sar_bcast_tree_depth(nodes->n));
    }
    assert_int_equal(children, ranks - 1);
}

/* Returns true if a node of the tree has a child in another node. */
static bool is_inner(const struct sar_nodes *nodes, const struct sar_bcast_links *links, int ranks, int node)
{
    for (int r = 0; r < ranks; r++)
        for (int i = 0; nodes->node[r] == node && i < links[r].n_children; i++)
            if (nodes->node[links[r].children[i]] != node)
                return true;
    return false;
}

static void check_trees(int ranks, int n_nodes, int root)
{
    struct sar_bcast_links links[SAR_BCAST_TREES][MOST];
    struct sar_nodes nodes;
    assert_int_equal(sar_nodes_alloc(ranks, &nodes), SAR_OK);
    sar_nodes_override(&nodes, ranks, n_nodes);
    for (int tree = 0; tree < SAR_BCAST_TREES; tree++) {
        for (int r = 0; r < ranks; r++)
            sar_bcast_tree_links(&nodes, r, root, tree, &links[tree][r]);
        check_links(&nodes, links[tree], ranks, root);
    }
    for (int node = 0; node < nodes.n; node++)
        if (node != nodes.node[root])
            assert_false(is_inner(&nodes, links[0], ranks, node) && is_inner(&nodes, links[1], ranks, node));
    sar_nodes_free(&nodes);
}

static void test_trees(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= MOST; ranks++)
        for (int n_nodes = 1; n_nodes <= ranks; n_nodes++)
            for (int root = 0; root < ranks; root += 1 + ranks / 3)
                check_trees(ranks, n_nodes, root);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_trees) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
