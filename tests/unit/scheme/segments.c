/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests segments: their bounds for any quantiles, and that skewed vectors are cut where elements are. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "array_length.h"
#include "generate.h"
#include "scheme/engine/segments.h"

enum { RANKS = 16, COUNT = 1 << 24, UNIT = 256 };

static struct sar_agreed agreed_of(double nnz, const struct sar_quantiles *quantiles)
{
    struct sar_agreed a = { .desc = vec_desc_make(SAR_FLOAT, SAR_SUM, COUNT, 1) };
    a.machine.ranks = RANKS;
    a.data.nnz_mean = a.data.nnz_max = nnz;
    a.data.densification = sar_densification_independent(nnz / COUNT, RANKS);
    a.data.quantiles = *quantiles;
    return a;
}

/* Bounds ascend from 0 to slots, in multiples of the unit but for the last. */
static void check_bounds(const struct sar_segments *s)
{
    assert_int_equal(sar_segments_begin(s, 0), 0);
    assert_int_equal(sar_segments_begin(s, s->n), s->slots);
    for (uint32_t i = 0; i < s->n; i++) {
        assert_true(sar_segments_begin(s, i) < sar_segments_begin(s, i + 1));
        assert_int_equal(sar_segments_begin(s, i) % s->unit, 0);
    }
}

static void test_equal(void **state)
{
    static const uint64_t slots[] = { 1, 63, 64, 65, 1000, 1 << 20, ((uint64_t)1 << 33) + 1 };
    (void)state;
    for (size_t i = 0; i < LENGTH(slots); i++) {
        for (uint64_t equal = 64; equal < slots[i] * 2; equal *= 4) {
            struct sar_segments s = sar_segments_equal(slots[i], equal, 64);
            if (s.n > 1 << 16)
                continue;
            check_bounds(&s);
            assert_int_equal(s.n, (slots[i] + equal - 1) / equal);
            for (uint32_t k = 0; k < s.n; k++)
                assert_int_equal(sar_segments_begin(&s, k), k * equal);
        }
    }
    assert_int_equal(sar_segments_equal(0, 0, 1).n, 1);
}

/* Any quantiles, also many equal ones, and as few units as segments. */
static void test_any_quantiles(void **state)
{
    int n_weighted = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= 3000; seed++) {
        struct rng rng = { seed };
        struct sar_quantiles q;
        uint64_t below = 0, spread = 1 + rng_below(&rng, 10000);
        for (size_t k = 0; k < LENGTH(q.index); k++) {
            below += rng_below(&rng, 3) == 0 ? 0 : rng_below(&rng, spread);
            q.index[k] = (uint16_t)(below < UINT16_MAX ? below : UINT16_MAX);
        }
        double nnz = 1 + (double)rng_below(&rng, COUNT);
        struct sar_agreed a = agreed_of(nnz, &q);
        uint64_t slots = 1 + rng_below(&rng, 1 << 20), equal = UNIT * (1 + rng_below(&rng, 50));
        struct sar_segments s = sar_segments_equal(slots, equal, UNIT);
        sar_segments_weigh(&a, &s);
        assert_true(!s.weighted || (s.n > 1 && q.index[LENGTH(q.index) - 1] != 0));
        n_weighted += s.weighted;
        check_bounds(&s);
    }
    assert_true(n_weighted > 1000);
}

/* Segments are equally long if the quantiles are unknown, or those of an even vector but for chance. */
static void test_unknown_and_even(void **state)
{
    struct sar_quantiles unknown = { { 0 } }, even;
    (void)state;
    for (int k = 1; k < SAR_QUANTILE_BINS; k++)
        even.index[k - 1] = (uint16_t)(65536 / SAR_QUANTILE_BINS * k + (k % 2 == 0 ? 900 : -900));
    struct sar_agreed a = agreed_of(1e5, &even);
    struct sar_segments e = sar_segments_equal(1 << 20, 1 << 16, UNIT);
    sar_segments_weigh(&a, &e);
    assert_false(e.weighted);
    a = agreed_of(1e5, &unknown);
    struct sar_segments s = sar_segments_equal(1 << 20, 1 << 16, UNIT);
    sar_segments_weigh(&a, &s);
    assert_false(s.weighted);
    assert_int_equal(sar_segments_begin(&s, 3), 3 << 16);
}

/* Elements at positions (i / nnz)^4 of the vector: the densest sixteenth has half of them. The union of ranks
 * has more elements there, too, but not as many more: segments are a compromise. */
static void test_skewed(void **state)
{
    enum { NNZ = 200000, SLOTS = COUNT / RANKS, SEGMENTS = 32 };
    struct sar_vec_desc desc = vec_desc_make(SAR_FLOAT, SAR_SUM, COUNT, 1);
    uint64_t *index = exact_alloc(NNZ * sizeof *index);
    struct rng rng = { 1 };
    (void)state;
    for (size_t i = 0, next = 0; i < NNZ; i++, next++) {
        double position = COUNT * pow((double)i / NNZ, 4);
        next = position > (double)next ? (size_t)position : next;
        index[i] = next;
    }
    struct sar_spvec vec = spvec_make(&desc, index, NNZ, VALUES_INEXACT, &rng);
    struct sar_quantiles q = sar_quantiles_of(&desc, &vec);
    struct sar_agreed a = agreed_of(NNZ, &q);
    a.data.densification = (struct sar_densification){ 2, { 1, RANKS }, { 1, 5 } };
    struct sar_segments s = sar_segments_equal(SLOTS, SLOTS / SEGMENTS, UNIT);
    sar_segments_weigh(&a, &s);
    assert_true(s.weighted);
    check_bounds(&s);
    size_t from = 0, most = 0;
    for (uint32_t i = 0; i < s.n; i++) {
        size_t to = sar_spvec_lower_bound(&desc, &vec, from, sar_segments_begin(&s, i + 1) * RANKS);
        most = to - from > most ? to - from : most;
        from = to;
    }
    assert_int_equal(from, NNZ);
    s = sar_segments_equal(SLOTS, SLOTS / SEGMENTS, UNIT);
    size_t first = sar_spvec_lower_bound(&desc, &vec, 0, sar_segments_begin(&s, 1) * RANKS);
    assert_true(first > 10 * NNZ / SEGMENTS);
    assert_true(most < first / 3);
    spvec_free(&vec);
    free(index);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal),
        cmocka_unit_test(test_any_quantiles),
        cmocka_unit_test(test_unknown_and_even),
        cmocka_unit_test(test_skewed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
