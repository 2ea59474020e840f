/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests the trees of a broadcast: links of two ranks agree, every rank is reached, no node but the root's has
 * more children in all trees than there are trees, and the depth is logarithmic. */

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
                        int root, int trees)
{
    int children = 0, depth = sar_bcast_tree_depth(nodes->n, trees);
    for (int r = 0; r < ranks; r++) {
        children += links[r].n_children;
        assert_true(links[r].n_children <= SAR_BCAST_CHILDREN);
        for (int i = 0; i < links[r].n_children; i++)
            assert_int_equal(links[links[r].children[i]].parent, r);
        assert_true((links[r].parent < 0) == (r == root));
        assert_true(node_steps(nodes, links, r) <= depth);
    }
    assert_int_equal(children, ranks - 1);
}

/* Returns the children of a node's ranks in other nodes. */
static int children_of(const struct sar_nodes *nodes, const struct sar_bcast_links *links, int ranks,
                       int node)
{
    int children = 0;
    for (int r = 0; r < ranks; r++)
        for (int i = 0; nodes->node[r] == node && i < links[r].n_children; i++)
            children += nodes->node[links[r].children[i]] != node;
    return children;
}

static void check_trees(int ranks, int n_nodes, int root, int trees)
{
    struct sar_bcast_links links[MOST];
    int children[MOST] = { 0 };
    struct sar_nodes nodes;
    assert_int_equal(sar_nodes_alloc(ranks, &nodes), SAR_OK);
    sar_nodes_override(&nodes, ranks, n_nodes);
    for (int tree = 0; tree < trees; tree++) {
        for (int r = 0; r < ranks; r++)
            sar_bcast_tree_links(&nodes, r, root, (struct sar_bcast_tree){ tree, trees }, &links[r]);
        check_links(&nodes, links, ranks, root, trees);
        for (int node = 0; node < nodes.n; node++)
            children[node] += children_of(&nodes, links, ranks, node);
    }
    for (int node = 0; node < nodes.n; node++)
        assert_true(children[node] <= trees);
    sar_nodes_free(&nodes);
}

static void test_trees(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= MOST; ranks++)
        for (int n_nodes = 1; n_nodes <= ranks; n_nodes++)
            for (int root = 0; root < ranks; root += 1 + ranks / 3)
                for (int trees = 1; trees <= SAR_BCAST_TREES_MAX; trees++)
                    check_trees(ranks, n_nodes, root, trees);
}

/* The largest complete trees of each depth, and one node more. */
static void test_depth(void **state)
{
    (void)state;
    assert_int_equal(sar_bcast_tree_depth(1, 4), 0);
    assert_int_equal(sar_bcast_tree_depth(2, 4), 1);
    assert_int_equal(sar_bcast_tree_depth(64, 2), 6);
    assert_int_equal(sar_bcast_tree_depth(65, 2), 7);
    assert_int_equal(sar_bcast_tree_depth(16, 4), 3);
    assert_int_equal(sar_bcast_tree_depth(22, 4), 3);
    assert_int_equal(sar_bcast_tree_depth(64, 4), 4);
    assert_int_equal(sar_bcast_tree_depth(9, 1), 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_trees), cmocka_unit_test(test_depth) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
