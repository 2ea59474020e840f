/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests the emulation of nodes: sizes, order, and partners of ranks. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include "comm/nodes.h"

enum { MOST = 40 };

/* Each rank has its position within its node, nodes are in order, and their sizes differ by at most one. */
static void check_order(const struct sar_nodes *nodes, int ranks)
{
    int least = ranks;
    assert_int_equal(nodes->first[nodes->n], ranks);
    for (int j = 0; j < nodes->n; j++)
        least = sar_nodes_size(nodes, j) < least ? sar_nodes_size(nodes, j) : least;
    assert_true(least > 0 && nodes->max_ranks - least <= 1);
    for (int r = 0; r < ranks; r++) {
        assert_int_equal(nodes->ranks[r], r);
        assert_int_equal(nodes->first[nodes->node[r]] + nodes->local_rank[r], r);
        assert_true(nodes->local_rank[r] < sar_nodes_size(nodes, nodes->node[r]));
    }
}

/* Every rank of a node has as many partners as its neighbours, or one more, and the rank of equal position
 * where possible. */
static void check_partners(const struct sar_nodes *nodes, int ranks)
{
    for (int j = 0; j < nodes->n; j++) {
        int speaks_with[MOST] = { 0 }, size = sar_nodes_size(nodes, j), foreign = ranks - size;
        for (int r = 0; r < ranks; r++) {
            if (nodes->node[r] == j)
                continue;
            int partner = sar_nodes_partner(nodes, j, r);
            assert_int_equal(nodes->node[partner], j);
            speaks_with[partner]++;
            if (nodes->n * nodes->max_ranks == ranks)
                assert_int_equal(nodes->local_rank[partner], nodes->local_rank[r]);
        }
        for (int i = nodes->first[j]; i < nodes->first[j + 1]; i++)
            assert_in_range(speaks_with[nodes->ranks[i]], foreign / size, (foreign + size - 1) / size);
    }
}

static void test_pretended_nodes(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= MOST; ranks++) {
        struct sar_nodes nodes;
        assert_int_equal(sar_nodes_alloc(ranks, &nodes), SAR_OK);
        for (int n = 1; n <= ranks + 2; n++) {
            sar_nodes_override(&nodes, ranks, n);
            assert_int_equal(nodes.n, n < ranks ? n : ranks);
            check_order(&nodes, ranks);
            check_partners(&nodes, ranks);
        }
        sar_nodes_free(&nodes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_pretended_nodes) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
