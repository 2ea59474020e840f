/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests forecasts of calls: the agreed facts, and the bytes that prices assume. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/forecast.h"
#include "core/select.h"

static const char *nothing(const char *name, void *unused)
{
    (void)name, (void)unused;
    return NULL;
}

static struct sar_config config_make(const char *wire)
{
    struct sar_config config;
    char sentence[256];
    assert_int_equal(sar_config_load(&config, nothing, NULL, sentence, sizeof sentence), SAR_OK);
    snprintf(config.push_wire, sizeof config.push_wire, "%s", wire);
    snprintf(config.pull_wire, sizeof config.pull_wire, "%s", wire);
    return config;
}

static struct sar_forecast forecast_make(uint64_t count, double density, int ranks)
{
    return (struct sar_forecast){
        .count = count,
        .row = 1,
        .density = density,
        .gamma = sar_densification_independent(density, ranks),
        .machine = { .ranks = ranks, .alpha = 1e-5, .beta = 3.2e-10, .gamma = 4e-9, .memory = 1e-10 },
        .node_ranks = 1
    };
}

static void check_close(double found, double wanted)
{
    if (fabs(found - wanted) > 1e-6 * wanted + 1e-3)
        fail_msg("%.9g is not %.9g", found, wanted);
}

/* The facts passed to the selector. */
static void test_agreed(void **state)
{
    struct sar_config config = config_make("smallest");
    struct sar_forecast f = forecast_make(1000000, 0.01, 8);
    (void)state;
    f.row = 3;
    snprintf(config.partition, sizeof config.partition, "cyclic");
    struct sar_agreed a = sar_forecast_agreed(&f, &config);
    assert_int_equal(a.desc.element_size, 12);
    check_close(a.data.nnz_mean, 10000);
    check_close(a.machine.gamma * 1e12, 4000 + 2 * 8 * 100); /* the cost of rows in a call */
    check_close(a.machine.dense_alpha, 6e-5);
    check_close(a.machine.dense_beta * 1e12, 2 * 7.0 / 8 * 320);
    assert_int_equal(a.partition.kind, SAR_PARTITION_CYCLIC);
    assert_true(a.wire.push_smallest && a.wire.pull_smallest && a.wire.push == NULL);
    assert_int_equal(a.topo.nodes, 8);
    f.dense_face = true;
    assert_false(sar_forecast_agreed(&f, &config).desc.absent_is_zero); /* as in a call with a sum */
}

/* Threads shorten large work only, in the same proportion as in a call. */
static void test_agreed_threads(void **state)
{
    struct sar_config config = config_make("auto");
    struct sar_forecast f = forecast_make(1000000, 0.1, 8), few = forecast_make(1000000, 0.01, 8);
    (void)state;
    struct sar_agreed a = sar_forecast_agreed(&f, &config);
    double one = a.machine.gamma;
    double price = sar_scheme_balanced.seconds(&a);
    check_close(a.machine.thread_ratio, 1);
    f.machine.thread_ratio = few.machine.thread_ratio = 0.25;
    a = sar_forecast_agreed(&f, &config);
    check_close(a.machine.thread_ratio, 0.25);
    check_close(a.machine.gamma * 1e12, 0.25 * one * 1e12);
    assert_true(sar_scheme_balanced.seconds(&a) < price);
    a = sar_forecast_agreed(&few, &config); /* 80 kB: one piece */
    check_close(a.machine.thread_ratio, 1);
    check_close(a.machine.gamma * 1e12, one * 1e12);
}

/* Three nodes; the last has fewer ranks. */
static void test_agreed_nodes(void **state)
{
    struct sar_config config = config_make("auto");
    struct sar_forecast f = forecast_make(1000000, 0.01, 8);
    (void)state;
    f.node_ranks = 3;
    struct sar_agreed a = sar_forecast_agreed(&f, &config);
    assert_int_equal(a.topo.nodes, 3);
    assert_int_equal(a.topo.node_ranks, 3);
    assert_true(a.topo.shared_memory);
    f.node_ranks = 9;
    a = sar_forecast_agreed(&f, &config);
    assert_int_equal(a.topo.nodes, 1);
    assert_int_equal(a.topo.node_ranks, 8);
}

/* A price is linear in beta. If nothing else costs, it is bytes times beta, for every scheme and format. */
static void test_price_is_bytes_times_beta(void **state)
{
    static const int ranks[] = { 2, 3, 8, 13, 128 };
    static const double densities[] = { 1e-4, 0.01, 0.2, 1 };
    struct sar_config config = config_make("auto");
    (void)state;
    for (int r = 0; r < 5; r++) {
        for (int d = 0; d < 4; d++) {
            struct sar_forecast f = forecast_make(1000000, densities[d], ranks[r]);
            struct sar_agreed a = sar_forecast_agreed(&f, &config);
            a.machine.alpha = a.machine.gamma = a.machine.memory = a.machine.dense_alpha = 0;
            for (int i = 0; sar_schemes[i] != NULL; i++)
                check_close(sar_forecast_bytes(sar_schemes[i], &a),
                            sar_schemes[i]->seconds(&a) / a.machine.beta);
        }
    }
}

/* 8 ranks with 1000 of 1000000 elements each, none in common: the fullest part over the mean, at the density
 * of ranks, nodes or the result. */
static double fullest_at(double density)
{
    return 1 + 1.424 * sqrt((1 - density) * 8 / 8000); /* the largest of 8 normal variates */
}

/* By hand: 4-byte indices, 4-byte values, and 64 bytes of header. */
static void test_bytes_of_coordinates(void **state)
{
    struct sar_config config = config_make("coo");
    struct sar_forecast f = forecast_make(1000000, 0.001, 8);
    (void)state;
    f.gamma = (struct sar_densification){ 4, { 1, 2, 4, 8 }, { 1, 2, 4, 8 } };
    struct sar_agreed a = sar_forecast_agreed(&f, &config);
    check_close(sar_forecast_bytes(&sar_scheme_allgather, &a), 7 * (8000 + 64));
    check_close(sar_forecast_bytes(&sar_scheme_recursive_doubling, &a), (1 + 2 + 4) * 8000 + 3 * 64);
    check_close(sar_forecast_bytes(&sar_scheme_balanced, &a),
                7 * (fullest_at(0.001) * 1000 + fullest_at(0.008) * 8000 + 128));
}

/* By hand, with 2-byte values, except for the scheme that sends floats. */
static void test_bytes_of_narrow_values(void **state)
{
    struct sar_config config = config_make("coo"), narrow = config;
    struct sar_forecast f = forecast_make(1000000, 0.001, 8);
    (void)state;
    narrow.wire_values = SAR_PRECISION_BF16;
    f.gamma = (struct sar_densification){ 4, { 1, 2, 4, 8 }, { 1, 2, 4, 8 } };
    struct sar_agreed full = sar_forecast_agreed(&f, &config), a = sar_forecast_agreed(&f, &narrow);
    check_close(sar_forecast_bytes(&sar_scheme_allgather, &a), 7 * (6000 + 64));
    check_close(sar_forecast_bytes(&sar_scheme_balanced, &a),
                7 * (fullest_at(0.001) * 750 + fullest_at(0.008) * 6000 + 128));
    check_close(sar_forecast_bytes(&sar_scheme_dense, &a), sar_forecast_bytes(&sar_scheme_dense, &full));
}

/* Four nodes of two ranks without common elements: a rank sends half of its node's elements to three
 * others. */
static void test_bytes_between_nodes(void **state)
{
    struct sar_config config = config_make("coo");
    struct sar_forecast f = forecast_make(1000000, 0.001, 8);
    (void)state;
    f.node_ranks = 2;
    f.gamma = (struct sar_densification){ 4, { 1, 2, 4, 8 }, { 1, 2, 4, 8 } };
    struct sar_agreed a = sar_forecast_agreed(&f, &config);
    check_close(sar_forecast_bytes(&sar_scheme_two_level, &a),
                3 * (fullest_at(0.002) * 2000 + fullest_at(0.008) * 8000 + 128));
    check_close(sar_forecast_bytes(&sar_scheme_balanced, &a),
                7 * (fullest_at(0.001) * 1000 + fullest_at(0.008) * 8000 + 128));
}

/* By hand: 8 ranks with 100 rows of 64 floats, none in common. With 8 columns a rank owns 32 bytes of each
 * row; a push has indices, a pull has none. With one column a rank owns whole rows. */
static void test_slices(void **state)
{
    struct sar_config config = config_make("coo");
    struct sar_forecast f = forecast_make(100000, 0.001, 8);
    (void)state;
    f.row = 64;
    f.gamma = (struct sar_densification){ 4, { 1, 2, 4, 8 }, { 1, 2, 4, 8 } };
    config.segment = 1 << 30;
    config.columns = 8;
    struct sar_agreed a = sar_forecast_agreed(&f, &config);
    struct sar_forecast_slices s = sar_forecast_slices(&sar_scheme_balanced, &a);
    assert_int_equal(s.columns, 8);
    check_close(s.messages, 14);
    check_close(s.push_bytes, 64 + 100 * 36);
    check_close(s.pull_bytes, 64 + 800 * 32);
    check_close(sar_forecast_bytes(&sar_scheme_balanced, &a), 7 * (s.push_bytes + s.pull_bytes));
    config.columns = 1;
    a = sar_forecast_agreed(&f, &config);
    s = sar_forecast_slices(&sar_scheme_balanced, &a);
    assert_int_equal(s.columns, 1);
    check_close(sar_forecast_bytes(&sar_scheme_balanced, &a), 7 * (s.push_bytes + s.pull_bytes));
}

/* The library takes the number of columns that costs least. */
static void test_slices_cost_least(void **state)
{
    static const double densities[] = { 1e-4, 0.01, 0.3 };
    struct sar_config config = config_make("auto");
    (void)state;
    for (int d = 0; d < 3; d++) {
        for (int ranks = 2; ranks <= 24; ranks++) {
            struct sar_forecast f = forecast_make(50000, densities[d], ranks);
            f.row = 48;
            struct sar_agreed a = sar_forecast_agreed(&f, &config);
            struct sar_forecast_slices s = sar_forecast_slices(&sar_scheme_balanced, &a);
            double seconds = sar_scheme_balanced.seconds(&a);
            for (int columns = 1; columns <= ranks; columns *= 2) {
                a.partition.columns = (uint64_t)columns;
                assert_true(sar_scheme_balanced.seconds(&a) >= seconds);
            }
            a.partition.columns = (uint64_t)s.columns;
            check_close(sar_scheme_balanced.seconds(&a) * 1e6, seconds * 1e6);
        }
    }
}

/* The bytes are those of the columns that a call takes, where work and messages cost. */
static void test_bytes_of_the_columns_taken(void **state)
{
    struct sar_config config = config_make("auto");
    (void)state;
    for (int ranks = 8; ranks <= 128; ranks += 8) {
        struct sar_forecast f = forecast_make(793470, 0.0113, ranks);
        f.row = 512;
        f.machine.overhead = 2e-6;
        f.machine.gamma = 2.3e-9;
        struct sar_agreed a = sar_forecast_agreed(&f, &config);
        double bytes = sar_forecast_bytes(&sar_scheme_balanced, &a);
        a.partition.columns = (uint64_t)sar_forecast_slices(&sar_scheme_balanced, &a).columns;
        check_close(sar_forecast_bytes(&sar_scheme_balanced, &a), bytes);
    }
}

/* Work and latency change the price, but with fixed formats not the bytes. */
static void test_bytes_ignore_work_and_latency(void **state)
{
    struct sar_config config = config_make("coo");
    (void)state;
    for (int i = 0; sar_schemes[i] != NULL; i++) {
        struct sar_forecast f = forecast_make(3000000, 0.02, 16);
        struct sar_agreed a = sar_forecast_agreed(&f, &config), b;
        f.machine.alpha = 1;
        f.machine.gamma = 1e-7;
        f.machine.beta *= 7;
        b = sar_forecast_agreed(&f, &config);
        check_close(sar_forecast_bytes(sar_schemes[i], &b), sar_forecast_bytes(sar_schemes[i], &a));
    }
}

/* The cheapest scheme, on nodes with one network each, as with --ranks-per-node of info. */
static const struct sar_scheme *best(double density, double growth, int nodes, int each)
{
    static const struct sar_cost_history none = { .trials = { 0 } };
    struct sar_config config = config_make("auto");
    struct sar_forecast f = forecast_make(100000000, density, nodes * each);
    struct sar_selection s;
    bool one = nodes == 1;
    config.learn = false;
    f.node_ranks = each;
    f.machine.intra_alpha = 5e-7;
    f.machine.intra_beta = 2e-10;
    f.machine.alpha = one ? f.machine.intra_alpha : f.machine.alpha;
    f.machine.beta = one ? f.machine.intra_beta : f.machine.beta * each;
    for (int i = 0; growth >= 0 && i < f.gamma.points; i++)
        f.gamma.ratio[i] = pow(f.gamma.ranks[i], growth);
    struct sar_agreed a = sar_forecast_agreed(&f, &config);
    assert_int_equal(sar_select(&a, &config, &none, NULL, NULL, &s), SAR_OK);
    return sar_schemes[s.choice];
}

/* Several ranks on a node: the node sums before it sends. One rank: there is no sum. One node: no message. */
static void test_levels(void **state)
{
    static const double densities[] = { 1e-3, 1e-4, 0.01 }, growths[] = { -1, 0.7, 0 };
    (void)state;
    for (int i = 0; i < 3; i++) {
        assert_ptr_equal(best(densities[i], growths[i], 16, 8), &sar_scheme_two_level);
        assert_ptr_equal(best(densities[i], growths[i], 128, 1), &sar_scheme_balanced);
        assert_ptr_equal(best(densities[i], growths[i], 1, 8), &sar_scheme_shared);
    }
}

/* Without zeros MPI_Allreduce is the cheapest. Values of 16 bits take half its bytes, between nodes only,
 * and at most one bit more. */
static void test_narrow_values_between_nodes(void **state)
{
    static const struct sar_cost_history none = { .trials = { 0 } };
    struct sar_config config = config_make("auto");
    (void)state;
    config.learn = false;
    for (int nodes = 1; nodes <= 16; nodes *= 16) {
        struct sar_forecast f = forecast_make(100000000, 1, 16);
        struct sar_selection s;
        double bytes[2];
        f.node_ranks = 16 / nodes;
        f.dense_face = true;
        for (int narrow = 0; narrow < 2; narrow++) {
            config.wire_values = narrow ? SAR_PRECISION_BF16 : SAR_PRECISION_FULL;
            struct sar_agreed a = sar_forecast_agreed(&f, &config);
            assert_int_equal(sar_select(&a, &config, &none, NULL, NULL, &s), SAR_OK);
            assert_int_equal(sar_schemes[s.choice] == &sar_scheme_dense, !narrow || nodes == 1);
            bytes[narrow] = sar_forecast_bytes(sar_schemes[s.choice], &a);
        }
        assert_true(nodes == 1 || bytes[1] < 0.54 * bytes[0]);
    }
}

/* One rank sends nothing, but its result still has a price; the cheapest scheme is a copy. */
static void test_one_rank(void **state)
{
    struct sar_config config = config_make("auto");
    struct sar_forecast f = forecast_make(1000000, 0.01, 1);
    (void)state;
    assert_ptr_equal(best(0.01, -1, 1, 1), &sar_scheme_shared);
    for (int api = 0; api < 2; api++) {
        f.dense_face = api == 1;
        struct sar_agreed a = sar_forecast_agreed(&f, &config);
        for (int i = 0; sar_schemes[i] != NULL; i++) {
            assert_true(sar_scheme_unsupported_reason(sar_schemes[i], &a) != NULL ||
                        sar_schemes[i]->seconds(&a) > 0);
            assert_true(sar_forecast_bytes(sar_schemes[i], &a) == 0);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_agreed),
        cmocka_unit_test(test_agreed_threads),
        cmocka_unit_test(test_agreed_nodes),
        cmocka_unit_test(test_price_is_bytes_times_beta),
        cmocka_unit_test(test_bytes_of_coordinates),
        cmocka_unit_test(test_bytes_of_narrow_values),
        cmocka_unit_test(test_bytes_between_nodes),
        cmocka_unit_test(test_slices),
        cmocka_unit_test(test_slices_cost_least),
        cmocka_unit_test(test_bytes_of_the_columns_taken),
        cmocka_unit_test(test_bytes_ignore_work_and_latency),
        cmocka_unit_test(test_levels),
        cmocka_unit_test(test_narrow_values_between_nodes),
        cmocka_unit_test(test_one_rank),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
