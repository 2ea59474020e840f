/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests that sums and products of 16-bit floats are computed in fp32 and rounded once, with numbers that show
 * each rounding. tests/unit/vector/reduce.c and canonicalize.c test the callers. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "float16.h"
#include "generate.h"
#include "vector/reduce.h"
#include "vector/sort.h"

enum { MOST = 700, MOST_ROW = 7, POSITIONS = 13 };

struct type_op {
    enum sar_dtype base;
    enum sar_op op;
    const struct sar_op_kernels *kernels;
};

/* Values accumulated by position: in their type, and as floats. */
struct contributions {
    uint32_t at[MOST];
    uint16_t half[MOST * MOST_ROW];
    float whole[MOST * MOST_ROW];
};

static void contribute(enum sar_dtype base, enum values values, size_t n, size_t row, struct contributions *c)
{
    struct rng rng = { n * MOST_ROW + row };
    values_fill(base, values, c->half, n * row, &rng);
    for (size_t i = 0; i < n; i++)
        c->at[i] = (uint32_t)rng_below(&rng, POSITIONS);
    for (size_t i = 0; i < n * row; i++)
        c->whole[i] = float16_value(base, c->half[i]);
}

/* Apply an op by position, to a vector, and with a zero to one row. */
static void fold(const struct sar_op_kernels *kernels, const uint32_t *at, const void *value, size_t n,
                 size_t row, float *sums)
{
    kernels->fill_identity(sums, POSITIONS * row);
    kernels->apply_rows(sums, at, value, n, row);
    kernels->apply(sums, value, (n < POSITIONS ? n : POSITIONS) * row);
    kernels->apply_zero(sums + row, row);
}

/* Accumulate floats and round each sum at the end. */
static void check_wide_of(const struct type_op *type_op, enum values values, size_t n, size_t row)
{
    static struct contributions c;
    float sums[POSITIONS * MOST_ROW], expected[POSITIONS * MOST_ROW];
    uint16_t rounded[POSITIONS * MOST_ROW];
    contribute(type_op->base, values, n, row, &c);
    fold(type_op->kernels->wide, c.at, c.half, n, row, sums);
    fold(sar_op_kernels_of(SAR_FLOAT, type_op->op), c.at, c.whole, n, row, expected);
    type_op->kernels->round(rounded, sums, POSITIONS * row);
    for (size_t i = 0; i < POSITIONS * row; i++) {
        if (isnan(expected[i])) {
            assert_true(isnan(sums[i]) && isnan(float16_value(type_op->base, rounded[i])));
            continue;
        }
        assert_memory_equal(&sums[i], &expected[i], sizeof sums[i]);
        assert_int_equal(rounded[i], float16_of(type_op->base, expected[i]));
    }
}

static void check_wide(const struct type_op *type_op)
{
    for (size_t row = 1; row <= MOST_ROW; row++) {
        for (size_t n = 0; n <= MOST; n += 1 + n / 4) {
            check_wide_of(type_op, VALUES_INEXACT, n, row);
            check_wide_of(type_op, VALUES_SPECIAL, n, row);
        }
    }
}

static void test_wide_kernels(void **state)
{
    (void)state;
    for (unsigned k = 0; k < SAR_DTYPES * SAR_OPS; k++) {
        struct type_op type_op = { (enum sar_dtype)(k / SAR_OPS), (enum sar_op)(k % SAR_OPS), NULL };
        bool rounds = is_float16(type_op.base) && (type_op.op == SAR_SUM || type_op.op == SAR_PROD);
        type_op.kernels = sar_op_kernels_of(type_op.base, type_op.op);
        if (type_op.kernels == NULL)
            continue;
        assert_true(rounds == (type_op.kernels->wide != NULL) && rounds == (type_op.kernels->round != NULL));
        if (rounds)
            check_wide(&type_op);
    }
}

/* 256 + 1 is 256 in bfloat16, and 2048 + 1 is 2048 in binary16; a float represents both sums. */
static const struct {
    enum sar_dtype base;
    float big;
} swallows[] = { { SAR_BF16, 256 }, { SAR_FP16, 2048 } };

enum { ADDED = 9 };

/* One, and eight ones, as rows. */
static void add_ones(size_t i, const struct sar_vec_desc *desc, uint16_t *value)
{
    for (size_t k = 0; k < ADDED * desc->row_len; k++)
        value[k] = float16_of(desc->dtype, k < desc->row_len ? swallows[i].big : 1);
}

static void check_sums(size_t i, const struct sar_vec_desc *desc, const struct sar_spvec *out)
{
    assert_int_equal(out->nnz, 1);
    for (size_t k = 0; k < desc->row_len; k++)
        assert_true(float16_value(desc->dtype, ((const uint16_t *)out->value)[k]) == swallows[i].big + 8);
}

static void test_runs_are_rounded_once(void **state)
{
    uint32_t index = 7;
    static uint16_t value[ADDED * 100];
    (void)state;
    for (size_t k = 0; k < 2 * LENGTH(swallows); k++) {
        struct sar_vec_desc desc = vec_desc_make(swallows[k / 2].base, SAR_SUM, 10, k % 2 == 0 ? 1 : 100);
        struct sar_arena arena = { 0 };
        struct sar_spvec vecs[ADDED], out;
        add_ones(k / 2, &desc, value);
        for (size_t r = 0; r < ADDED; r++)
            vecs[r] = (struct sar_spvec){ &index, value + r * desc.row_len, 1 };
        assert_int_equal(sar_reduce_alloc(&desc, vecs, ADDED, &arena, &out), SAR_OK);
        check_sums(k / 2, &desc, &out);
        sar_arena_free(&arena);
    }
}

static void test_equal_indices_are_rounded_once(void **state)
{
    static const uint32_t index[ADDED] = { 7, 7, 7, 7, 7, 7, 7, 7, 7 };
    static uint16_t value[ADDED * 100];
    (void)state;
    for (size_t k = 0; k < 2 * LENGTH(swallows); k++) {
        struct sar_vec_desc desc = vec_desc_make(swallows[k / 2].base, SAR_SUM, 10, k % 2 == 0 ? 1 : 100);
        struct sar_sort_input from = { index, value, ADDED, sizeof index[0], 7 };
        struct sar_arena arena = { 0 };
        struct sar_spvec out;
        add_ones(k / 2, &desc, value);
        assert_int_equal(sar_sort(&desc, &from, &arena, &out), SAR_OK);
        check_sums(k / 2, &desc, &out);
        sar_arena_free(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wide_kernels),
        cmocka_unit_test(test_runs_are_rounded_once),
        cmocka_unit_test(test_equal_indices_are_rounded_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
