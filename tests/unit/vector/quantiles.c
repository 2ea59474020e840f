/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests quantiles, of indices and of counts, against those that follow from how the vector was made. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "array_length.h"
#include "generate.h"
#include "vector/quantiles.h"

static const uint64_t counts[] = { 65536, 1000000, ((uint64_t)1 << 40) + 7 };

static struct sar_quantiles quantiles_of(const struct sar_vec_desc *desc, size_t nnz, uint64_t first,
                                         uint64_t step)
{
    uint64_t *index = exact_alloc(nnz * sizeof *index);
    struct rng rng = { 1 };
    for (size_t i = 0; i < nnz; i++)
        index[i] = first + i * step;
    struct sar_spvec vec = spvec_make(desc, index, nnz, VALUES_INEXACT, &rng);
    struct sar_quantiles q = sar_quantiles_of(desc, &vec);
    spvec_free(&vec);
    free(index);
    return q;
}

static bool is_unknown(const struct sar_quantiles *q)
{
    static const struct sar_quantiles unknown;
    return memcmp(q, &unknown, sizeof unknown) == 0;
}

static void test_even_vectors(void **state)
{
    enum { NNZ = 16 * 1024 };
    (void)state;
    for (size_t c = 0; c < LENGTH(counts); c++) {
        struct sar_vec_desc desc = vec_desc_make(SAR_FLOAT, SAR_SUM, counts[c], 1);
        struct sar_quantiles q = quantiles_of(&desc, NNZ, 0, counts[c] / NNZ);
        for (size_t k = 1; k < SAR_QUANTILE_BINS; k++)
            assert_true(abs((int)q.index[k - 1] - (int)(k * 4096)) <= 64);
    }
}

/* All elements at one end. */
static void test_ends(void **state)
{
    (void)state;
    for (size_t c = 0; c < LENGTH(counts); c++) {
        struct sar_vec_desc desc = vec_desc_make(SAR_FLOAT, SAR_SUM, counts[c], 1);
        struct sar_quantiles low = quantiles_of(&desc, 1024, 0, 1);
        struct sar_quantiles high = quantiles_of(&desc, 1024, counts[c] - 1024, 1);
        assert_true(low.index[SAR_QUANTILE_BINS - 2] <= 1024);
        assert_true(high.index[0] >= UINT16_MAX - 1024);
    }
}

static void test_few_elements(void **state)
{
    struct sar_vec_desc desc = vec_desc_make(SAR_FLOAT, SAR_SUM, 1000000, 1);
    (void)state;
    for (size_t nnz = 0; nnz < sar_quantile_min_nnz; nnz += 341) {
        struct sar_quantiles q = quantiles_of(&desc, nnz, 0, 2);
        assert_true(is_unknown(&q));
    }
    struct sar_quantiles q = quantiles_of(&desc, sar_quantile_min_nnz, 1000, 2);
    assert_false(is_unknown(&q));
}

/* Quantiles ascend, and the ranges below each one have their share of the elements. */
static void test_counts(void **state)
{
    enum { RANGES = 256 };
    (void)state;
    for (uint64_t seed = 1; seed < 200; seed++) {
        struct rng rng = { seed };
        uint16_t found[RANGES];
        uint64_t total = 0, before[RANGES + 1] = { 0 };
        for (size_t i = 0; i < RANGES; i++) {
            found[i] = (uint16_t)(rng_below(&rng, 4) == 0 ? rng_below(&rng, 65) : 0);
            total += found[i];
            before[i + 1] = total;
        }
        struct sar_quantiles q = sar_quantiles_of_counts(found, RANGES);
        for (size_t k = 1; k < SAR_QUANTILE_BINS; k++) {
            size_t range = q.index[k - 1] / (65536 / RANGES);
            assert_true(k == 1 || q.index[k - 1] >= q.index[k - 2]);
            assert_true(before[range] <= total * k / SAR_QUANTILE_BINS);
            assert_true(before[range + 1] > total * k / SAR_QUANTILE_BINS);
        }
    }
    uint16_t few[RANGES] = { 0 };
    few[7] = 20;
    struct sar_quantiles q = sar_quantiles_of_counts(few, RANGES);
    assert_true(is_unknown(&q));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_even_vectors),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_few_elements),
        cmocka_unit_test(test_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
