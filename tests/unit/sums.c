/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums and products of 16 bits are made of floats and rounded once: kernels that fold into floats, and
 * numbers that show each rounding. tests/unit/reduce.c and ingest.c have the rest. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "generate.h"
#include "halves.h"
#include "tensor/reduce.h"
#include "tensor/sort.h"

enum { MOST = 700, MOST_ROW = 7, PLACES = 13 };

struct kind {
    enum sar_base base;
    enum sar_op op;
    const struct sar_kernels *kernels;
};

/* Values that are folded by place: as they are, and as floats. */
struct contributions {
    uint32_t at[MOST];
    uint16_t half[MOST * MOST_ROW];
    float whole[MOST * MOST_ROW];
};

static void contribute(enum sar_base base, enum values values, size_t n, size_t row, struct contributions *c)
{
    struct dice dice = { n * MOST_ROW + row };
    values_fill(base, values, c->half, n * row, &dice);
    for (size_t i = 0; i < n; i++)
        c->at[i] = (uint32_t)dice_below(&dice, PLACES);
    for (size_t i = 0; i < n * row; i++)
        c->whole[i] = half_value(base, c->half[i]);
}

/* Fold by place, as a vector, and a zero into one row. */
static void fold(const struct sar_kernels *kernels, const uint32_t *at, const void *value, size_t n,
                 size_t row, float *sums)
{
    kernels->fill_identity(sums, PLACES * row);
    kernels->fold_rows(sums, at, value, n, row);
    kernels->fold(sums, value, (n < PLACES ? n : PLACES) * row);
    kernels->fold_zero(sums + row, row);
}

/* As floats are folded, and what of each is rounded in the end. */
static void check_wide_of(const struct kind *kind, enum values values, size_t n, size_t row)
{
    static struct contributions c;
    float sums[PLACES * MOST_ROW], expected[PLACES * MOST_ROW];
    uint16_t rounded[PLACES * MOST_ROW];
    contribute(kind->base, values, n, row, &c);
    fold(kind->kernels->wide, c.at, c.half, n, row, sums);
    fold(sar_kernels_of(SAR_FLOAT, kind->op), c.at, c.whole, n, row, expected);
    kind->kernels->round(rounded, sums, PLACES * row);
    for (size_t i = 0; i < PLACES * row; i++) {
        if (isnan(expected[i])) {
            assert_true(isnan(sums[i]) && isnan(half_value(kind->base, rounded[i])));
            continue;
        }
        assert_memory_equal(&sums[i], &expected[i], sizeof sums[i]);
        assert_int_equal(rounded[i], half_of(kind->base, expected[i]));
    }
}

static void check_wide(const struct kind *kind)
{
    for (size_t row = 1; row <= MOST_ROW; row++) {
        for (size_t n = 0; n <= MOST; n += 1 + n / 4) {
            check_wide_of(kind, VALUES_INEXACT, n, row);
            check_wide_of(kind, VALUES_SPECIAL, n, row);
        }
    }
}

static void test_wide_kernels(void **state)
{
    (void)state;
    for (unsigned k = 0; k < SAR_BASES * SAR_OPS; k++) {
        struct kind kind = { (enum sar_base)(k / SAR_OPS), (enum sar_op)(k % SAR_OPS), NULL };
        bool rounds = is_half(kind.base) && (kind.op == SAR_SUM || kind.op == SAR_PROD);
        kind.kernels = sar_kernels_of(kind.base, kind.op);
        if (kind.kernels == NULL)
            continue;
        assert_true(rounds == (kind.kernels->wide != NULL) && rounds == (kind.kernels->round != NULL));
        if (rounds)
            check_wide(&kind);
    }
}

/* 256 swallows a 1 in bfloat16, and 2048 in binary16; a float holds both. */
static const struct {
    enum sar_base base;
    float big;
} swallows[] = { { SAR_BF16, 256 }, { SAR_FP16, 2048 } };

enum { ADDED = 9 };

/* The former and eight times the latter, as rows. */
static void add_ones(size_t i, const struct sar_shape *shape, uint16_t *value)
{
    for (size_t k = 0; k < ADDED * shape->row; k++)
        value[k] = half_of(shape->base, k < shape->row ? swallows[i].big : 1);
}

static void check_sums(size_t i, const struct sar_shape *shape, const struct sar_run *out)
{
    assert_int_equal(out->nnz, 1);
    for (size_t k = 0; k < shape->row; k++)
        assert_true(half_value(shape->base, ((const uint16_t *)out->value)[k]) == swallows[i].big + 8);
}

static void test_runs_are_rounded_once(void **state)
{
    uint32_t index = 7;
    static uint16_t value[ADDED * 100];
    (void)state;
    for (size_t k = 0; k < 2 * LENGTH(swallows); k++) {
        struct sar_shape shape = shape_make(swallows[k / 2].base, SAR_SUM, 10, k % 2 == 0 ? 1 : 100);
        struct sar_arena arena = { 0 };
        struct sar_run runs[ADDED], out;
        add_ones(k / 2, &shape, value);
        for (size_t r = 0; r < ADDED; r++)
            runs[r] = (struct sar_run){ &index, value + r * shape.row, 1 };
        assert_int_equal(sar_reduce_taken(&shape, runs, ADDED, &arena, &out), SAR_OK);
        check_sums(k / 2, &shape, &out);
        sar_arena_free(&arena);
    }
}

static void test_equal_indices_are_rounded_once(void **state)
{
    static const uint32_t index[ADDED] = { 7, 7, 7, 7, 7, 7, 7, 7, 7 };
    static uint16_t value[ADDED * 100];
    (void)state;
    for (size_t k = 0; k < 2 * LENGTH(swallows); k++) {
        struct sar_shape shape = shape_make(swallows[k / 2].base, SAR_SUM, 10, k % 2 == 0 ? 1 : 100);
        struct sar_unsorted from = { index, value, ADDED, sizeof index[0], 7 };
        struct sar_arena arena = { 0 };
        struct sar_run out;
        add_ones(k / 2, &shape, value);
        assert_int_equal(sar_sort(&shape, &from, &arena, &out), SAR_OK);
        check_sums(k / 2, &shape, &out);
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
