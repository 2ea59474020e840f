/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests how elements spread: shares of one rank and of unions. And the price of recursive_halving, which
 * follows from them, against times of bench/simulate at 25 Gb/s and 10 us, without work. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "array_length.h"
#include "generate.h"
#include "scheme/engine/spread.h"
#include "scheme/scheme.h"

enum { COUNT = 4000000 };

/* A vector whose first eighth has `share` of the elements, evenly, and the rest the others. */
static struct sar_agreed agreed_of(int ranks, double density, double share)
{
    const double alpha = 10e-6, beta = 8 / 25e9;
    struct sar_agreed a = { .data.nnz_mean = COUNT * density,
                            .data.nnz_max = COUNT * density,
                            .data.skewness = 1,
                            .call.native = true,
                            .call.collective = SAR_REDUCE_SCATTER,
                            .call.block = (uint64_t)(COUNT + ranks - 1) / (uint64_t)ranks,
                            .partition.max_imbalance = 1.1,
                            .topo.nodes = ranks,
                            .wire.segment_bytes = SAR_U64_AUTO,
                            .wire.throttle = SAR_U64_AUTO,
                            .partition.kind = -1 };
    a.desc = vec_desc_make(SAR_FLOAT, SAR_SUM, COUNT, 1);
    a.machine = (struct sar_machine){
        .ranks = ranks, .alpha = alpha, .beta = beta, .intra_alpha = alpha, .intra_beta = beta
    };
    a.data.densification = sar_densification_independent(density, ranks);
    for (int i = 0; i < a.data.densification.points; i++) {
        double k = a.data.densification.ranks[i], dense = 8 * density * share,
               thin = 8. / 7 * density * (1 - share);
        a.data.densification.ratio[i] = (1 - pow(1 - dense, k) + 7 * (1 - pow(1 - thin, k))) / 8 / density;
    }
    a.data.skewness = fmin(share * 8, share * ranks);
    for (int i = 1; i < SAR_QUANTILE_BINS; i++) {
        double below = (double)i / SAR_QUANTILE_BINS;
        double at = below < share ? below / share / 8 : 1. / 8 + (below - share) / (1 - share) * 7 / 8;
        a.data.quantiles.index[i - 1] = (uint16_t)(at * 65536);
    }
    return a;
}

static void test_unknown(void **state)
{
    struct sar_agreed a = agreed_of(8, 0.01, 0.8);
    (void)state;
    assert_true(sar_spread_is_known(&a));
    memset(&a.data.quantiles, 0, sizeof a.data.quantiles);
    assert_false(sar_spread_is_known(&a));
    a = agreed_of(8, 0, 0.8);
    assert_false(sar_spread_is_known(&a));
}

/* One rank has as much below an index as its quantiles say; unions have less where elements are dense. */
static void test_shares(void **state)
{
    static const double shares[] = { 0.2, 0.6, 0.8, 0.95 };
    (void)state;
    for (size_t i = 0; i < LENGTH(shares); i++) {
        struct sar_agreed a = agreed_of(64, 0.02, shares[i]);
        struct sar_spread one = sar_spread_make(&a, 1);
        double before = sar_spread_share(&one, 0, 1. / 8);
        assert_true(fabs(before - shares[i]) < 1. / SAR_QUANTILE_BINS);
        assert_true(fabs(sar_spread_share(&one, 0, 1) - 1) < 1e-9);
        for (int k = 2; k <= 64; k *= 2) {
            struct sar_spread all = sar_spread_make(&a, k);
            double share = sar_spread_share(&all, 0, 1. / 8), rest = sar_spread_share(&all, 1. / 8, 1);
            assert_true(share <= before + 1e-9 && share > 1. / 8 - 0.01);
            assert_true(fabs(share + rest - 1) < 1e-9);
            before = share;
        }
    }
}

/* 3 of 4 elements lie in the first eighth. So one of 8 parts has 3 of 4 elements, and 4 parts in a row have
 * these and 3 / 7 of the others. */
static void test_max_share(void **state)
{
    struct sar_agreed a = agreed_of(8, 0.001, 0.75);
    struct sar_spread one = sar_spread_make(&a, 1), all = sar_spread_make(&a, 8);
    (void)state;
    assert_true(fabs(sar_spread_max_share(&one, 8, 1) - 0.75) < 0.01);
    assert_true(fabs(sar_spread_max_share(&one, 16, 1) - 0.375) < 0.01);
    assert_true(fabs(sar_spread_max_share(&one, 8, 4) - (0.75 + 0.25 * 3 / 7)) < 0.01);
    assert_true(fabs(sar_spread_max_share(&one, 8, 8) - 1) < 1e-9);
    for (int n = 2; n <= 64; n *= 2) {
        assert_true(sar_spread_max_share_of_even(&one, &one, n) < 1. / n + 1e-9);
        assert_true(sar_spread_max_share_of_even(&one, &all, n) > 1. / n);
        assert_true(sar_spread_max_share_of_even(&one, &all, n) < sar_spread_max_share(&one, n, 1));
    }
}

/* Quantiles of few elements that differ from even ones by chance make no skew; those of many elements do. */
static void test_even_by_chance(void **state)
{
    struct sar_agreed a = agreed_of(16, 0.0001, 1. / 8);
    (void)state;
    for (int i = 1; i < SAR_QUANTILE_BINS; i++)
        a.data.quantiles.index[i - 1] = (uint16_t)(i * 4096 + (i % 2 ? 1 : -1) * 1100);
    assert_true(sar_spread_is_even(&a));
    struct sar_spread all = sar_spread_make(&a, 16);
    assert_true(fabs(sar_spread_max_share(&all, 16, 1) - 1. / 16) < 1e-9);
    a.data.nnz_mean = a.data.nnz_max = 1e6;
    assert_false(sar_spread_is_even(&a));
    struct sar_spread one = sar_spread_make(&a, 1);
    assert_true(sar_spread_max_share(&one, 16, 1) > 1.2 / 16);
}

/* Simulated times of both schemes with contiguous parts: which is faster, and by how much, follows. */
static void test_price_of_halving(void **state)
{
    static const struct {
        int ranks;
        double density, share, balanced, halving; /* milliseconds */
    } runs[] = {
        { 8, 0.01, 0.8, 0.366, 0.332 },  { 12, 0.01, 0.8, 0.391, 0.784 }, { 16, 0.01, 0.8, 0.390, 0.473 },
        { 32, 0.01, 0.8, 0.406, 0.575 }, { 16, 0.02, 0.6, 0.564, 0.676 },
    };
    (void)state;
    for (size_t i = 0; i < LENGTH(runs); i++) {
        struct sar_agreed a = agreed_of(runs[i].ranks, runs[i].density, runs[i].share);
        double halving = sar_scheme_recursive_halving.seconds(&a) * 1e3,
               balanced = sar_scheme_balanced.seconds(&a) * 1e3;
        if (fabs(halving / runs[i].halving - 1) > 0.2 ||
            (balanced < halving) != (runs[i].balanced < runs[i].halving))
            fail_msg("%d ranks: halving %g ms, not %g; balanced %g ms, not %g", runs[i].ranks, halving,
                     runs[i].halving, balanced, runs[i].balanced);
    }
}

/* Sets the quantiles of elements that lie evenly between two shares of the length. */
static void set_even_between(struct sar_quantiles *q, double from, double to)
{
    for (int i = 1; i < SAR_QUANTILE_BINS; i++)
        q->index[i - 1] = (uint16_t)((from + (to - from) * i / SAR_QUANTILE_BINS) * 65535);
}

enum { RANKS = 4 };

/* Ranks that spread alike make equal segments; if each has a quarter of the vector of its own, one rank alone
 * has elements in each of 4 segments or more. */
static void test_segment_imbalance(void **state)
{
    uint64_t nnz[RANKS] = { 1000, 1000, 1000, 1000 };
    struct sar_quantiles q[RANKS];
    double imbalance[SAR_IMBALANCE_POINTS];
    (void)state;
    for (int r = 0; r < RANKS; r++)
        set_even_between(&q[r], 0, 1);
    sar_segment_imbalance(nnz, q, RANKS, imbalance);
    for (int i = 0; i < SAR_IMBALANCE_POINTS; i++)
        assert_true(fabs(imbalance[i] - 1) < 0.01);
    for (int r = 0; r < RANKS; r++)
        set_even_between(&q[r], (double)r / RANKS, (r + 1.) / RANKS);
    sar_segment_imbalance(nnz, q, RANKS, imbalance);
    for (int i = 1; i < SAR_IMBALANCE_POINTS; i++)
        assert_true(imbalance[i] > 1.5 && imbalance[i] <= RANKS && imbalance[i] >= imbalance[i - 1]);
    nnz[0] = 4000; /* the fullest rank counts once: all are at most 7000 of its 4000 */
    sar_segment_imbalance(nnz, q, RANKS, imbalance);
    for (int i = 0; i < SAR_IMBALANCE_POINTS; i++)
        assert_true(imbalance[i] >= 1 && imbalance[i] <= 7. / 4 + 0.01);
}

/* Ranks without elements need no quantiles, all others do. */
static void test_unknown_imbalance(void **state)
{
    uint64_t nnz[2] = { 1000, 0 };
    struct sar_quantiles q[2] = { { { 0 } } };
    double imbalance[SAR_IMBALANCE_POINTS];
    (void)state;
    sar_segment_imbalance(nnz, q, 2, imbalance);
    assert_true(imbalance[0] == 0);
    set_even_between(&q[0], 0, 1);
    sar_segment_imbalance(nnz, q, 2, imbalance);
    assert_true(fabs(imbalance[0] - 1) < 0.01);
    nnz[1] = 1;
    sar_segment_imbalance(nnz, q, 2, imbalance);
    assert_true(imbalance[0] == 0);
    nnz[0] = nnz[1] = 0;
    sar_segment_imbalance(nnz, q, 2, imbalance);
    assert_true(imbalance[0] == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unknown),           cmocka_unit_test(test_segment_imbalance),
        cmocka_unit_test(test_unknown_imbalance), cmocka_unit_test(test_shares),
        cmocka_unit_test(test_max_share),         cmocka_unit_test(test_even_by_chance),
        cmocka_unit_test(test_price_of_halving),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
