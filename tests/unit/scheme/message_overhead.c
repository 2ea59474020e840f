/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests the price of several messages at once: by hand, and by the choice for short vectors as that price
 * grows. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "agreed.h"
#include "generate.h"
#include "core/select.h"

static const double ALPHA = 10e-6, OVERHEAD = 1e-6, BETA = 3.2e-10;

/* Floats on this many ranks, of which `node_ranks` share a node. */
static struct sar_agreed agreed_make(int ranks, int node_ranks, uint64_t count, double density)
{
    struct sar_machine machine = { .ranks = ranks,
                                   .alpha = ALPHA,
                                   .beta = BETA,
                                   .dense_alpha = 2 * log2(ranks) * ALPHA,
                                   .dense_beta = 2 * BETA,
                                   .intra_alpha = ALPHA / 10,
                                   .intra_beta = BETA / 10,
                                   .overhead = OVERHEAD,
                                   .intra_overhead = OVERHEAD / 10 };
    struct sar_agreed a =
        agreed_plain(vec_desc_make(SAR_FLOAT, SAR_SUM, count, 1), machine, density * (double)count);
    a.topo.node_ranks = node_ranks;
    a.topo.nodes = (ranks + node_ranks - 1) / node_ranks;
    return a;
}

static void check_close(double found, double wanted)
{
    if (!(fabs(found - wanted) <= 1e-9 * wanted))
        fail_msg("%.9g us, not %.9g", found * 1e6, wanted * 1e6);
}

/* One message; short messages, each of which occupies its sender; and long ones, whose bytes do. */
static void test_by_hand(void **state)
{
    struct sar_agreed a = agreed_make(16, 1, 1000, 0.1);
    (void)state;
    check_close(sar_agreed_exchange(&a, 1, 1000), ALPHA + 1000 * BETA);
    check_close(sar_agreed_exchange(&a, 15, 0), ALPHA + 14 * OVERHEAD);
    check_close(sar_agreed_exchange(&a, 15, 1500), ALPHA + 14 * OVERHEAD + 100 * BETA);
    check_close(sar_agreed_exchange(&a, 15, 1e6), ALPHA + 1e6 * BETA);
    assert_true(sar_agreed_exchange(&a, 0, 0) == 0);
    a.machine.overhead = 0;
    check_close(sar_agreed_exchange(&a, 15, 1500), ALPHA + 1500 * BETA);
}

/* One of 6 messages goes to the only rank of the other node. */
static void test_levels_by_hand(void **state)
{
    struct sar_agreed a = agreed_make(7, 6, 1000, 0.1);
    (void)state;
    check_close(sar_agreed_exchange(&a, 6, 0), ALPHA + (ALPHA + 4 * OVERHEAD) / 10);
    check_close(sar_agreed_exchange(&a, 6, 6e6), ALPHA + 1e6 * BETA + (ALPHA + 5e6 * BETA) / 10);
    check_close(sar_agreed_exchange(&a, 12, 0), ALPHA + OVERHEAD + (ALPHA + 9 * OVERHEAD) / 10);
}

/* The consistency check, the vector, and the mask of present elements. */
static void test_dense_coordinates(void **state)
{
    struct sar_agreed a = agreed_make(8, 1, 1, 1);
    double bytes = 4 + (double)sar_bitmap_bytes(1);
    (void)state;
    check_close(sar_scheme_dense.seconds(&a), 3 * a.machine.dense_alpha + bytes * a.machine.dense_beta);
    a.call.dense_face = true;
    check_close(sar_scheme_dense.seconds(&a), a.machine.dense_alpha + 4 * a.machine.dense_beta);
}

static const struct sar_scheme *choice(struct sar_agreed a, double overhead)
{
    static const struct sar_config trusting = { .model = SAR_MODEL_MEASURED };
    static const struct sar_cost_history none = { .trials = { 0 } };
    struct sar_selection s;
    a.machine.overhead = a.machine.intra_overhead = overhead;
    assert_int_equal(sar_select(&a, &trusting, &none, NULL, NULL, &s), SAR_OK);
    return sar_schemes[s.choice];
}

/* For short vectors only latencies count: one step if further messages are almost free, few messages if each
 * costs as much as the first. */
static void test_choice_of_short_vectors(void **state)
{
    (void)state;
    for (int ranks = 4; ranks <= 32; ranks *= 2)
        for (uint64_t count = 100; count <= 10000; count *= 10) {
            struct sar_agreed a = agreed_make(ranks, 1, count, 0.01);
            assert_ptr_equal(choice(a, 1e-9), &sar_scheme_allgather);
            assert_ptr_equal(choice(a, ALPHA), &sar_scheme_recursive_doubling);
        }
}

/* 10^6 elements, 1 % on 16 ranks: bytes count, and balanced sends the fewest. */
static void test_choice_of_longer_vectors(void **state)
{
    struct sar_agreed a = agreed_make(16, 1, 1000000, 0.01);
    (void)state;
    assert_ptr_equal(choice(a, 1e-9), &sar_scheme_balanced);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_levels_by_hand),
        cmocka_unit_test(test_dense_coordinates),
        cmocka_unit_test(test_choice_of_short_vectors),
        cmocka_unit_test(test_choice_of_longer_vectors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
