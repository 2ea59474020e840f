/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests kernels of every basic type and op against a plain scalar loop. */

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
#include "vector/canonicalize.h"

enum { MOST = 70, MOST_ROW = 7, POSITIONS = 13 };

struct type_op {
    enum sar_dtype base;
    enum sar_op op;
    const struct sar_op_kernels *kernels;
};

static void for_all_kinds(void (*check)(const struct type_op *type_op))
{
    for (unsigned base = 0; base < SAR_DTYPES; base++) {
        for (unsigned op = 0; op < SAR_OPS; op++) {
            struct type_op type_op = { (enum sar_dtype)base, (enum sar_op)op, NULL };
            type_op.kernels = sar_op_kernels_of(type_op.base, type_op.op);
            if (type_op.kernels != NULL)
                check(&type_op);
        }
    }
}

static void check_size(const struct type_op *type_op)
{
    static const size_t sizes[SAR_DTYPES] = { 4, 8, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2 };
    assert_int_equal(type_op->kernels->size, sizes[type_op->base]);
}

static void test_sizes(void **state)
{
    (void)state;
    for_all_kinds(check_size);
}

/* MPI defines bitwise and logical ops only for integers. */
static void test_defined_pairs(void **state)
{
    (void)state;
    for (unsigned base = 0; base < SAR_DTYPES; base++) {
        bool integer = base >= SAR_INT8 && base <= SAR_UINT64;
        for (unsigned op = 0; op < SAR_OPS; op++) {
            bool defined = sar_op_kernels_of((enum sar_dtype)base, (enum sar_op)op) != NULL;
            assert_int_equal(defined, integer || op <= SAR_PROD);
        }
    }
}

/* Values of 1, 2, 4 and 8 bytes that identities must not change, including NaNs with a payload. Integers have
 * the same bits. Signalling NaNs are left out, since computing quiets them. */
static const uint8_t bits1[] = { 0, 1, 2, 0x7f, 0x80, 0x81, 0xfe, 0xff };
static const uint16_t bits2[] = { 0,      0x8000, 0x3f80, 0xbf80, 0x3c00, 0x7f80, 0xff80, 0x7c00, 0xfc00,
                                  0x7fc0, 0xffc0, 0x7fd2, 0x7e00, 0x7e12, 0xffff, 0x0001, 0x8001, 0x007f,
                                  0x0080, 0x03ff, 0x0400, 0x7f7f, 0xff7f, 0x7bff, 0xfbff, 0x1234 };
static const uint32_t bits4[] = { 0,          0x80000000, 0x3f800000, 0xbf800000, 0x7f800000, 0xff800000,
                                  0x7fc00000, 0xffc00000, 0x7fc12345, 0xffffffff, 0x00000001, 0x80000001,
                                  0x007fffff, 0x00800000, 0x7f7fffff, 0xff7fffff, 0x7fffffff, 0x12345678 };
static const uint64_t bits8[] = { 0,
                                  0x8000000000000000,
                                  0x3ff0000000000000,
                                  0x7ff0000000000000,
                                  0xfff0000000000000,
                                  0x7ff8000000000000,
                                  0xfff8000000012345,
                                  0xffffffffffffffff,
                                  0x0000000000000001,
                                  0x8000000000000001,
                                  0x000fffffffffffff,
                                  0x0010000000000000,
                                  0x7fefffffffffffff,
                                  0xffefffffffffffff,
                                  0x7fffffffffffffff,
                                  0x123456789abcdef0 };

static const struct {
    const void *bits;
    size_t n;
} samples[] = { [1] = { bits1, LENGTH(bits1) },
                [2] = { bits2, LENGTH(bits2) },
                [4] = { bits4, LENGTH(bits4) },
                [8] = { bits8, LENGTH(bits8) } };

/* Apply the op to an identity and each value: single, in a vector and as a row. */
static void check_identity(const struct type_op *type_op)
{
    size_t size = type_op->kernels->size, n = samples[size].n;
    static const uint32_t at[1] = { 0 };
    uint64_t sum[LENGTH(bits8) + LENGTH(bits4)], bits[LENGTH(sum)];
    memcpy(bits, samples[size].bits, n * size);
    values_normalize(type_op->base, type_op->op, bits, n);
    type_op->kernels->fill_identity(sum, n);
    type_op->kernels->apply(sum, samples[size].bits, n);
    assert_memory_equal(sum, bits, n * size);
    for (size_t i = 0; i < n; i++) {
        type_op->kernels->fill_identity(sum, 1);
        type_op->kernels->apply_rows(sum, at, (const unsigned char *)samples[size].bits + i * size, 1, 1);
        assert_memory_equal(sum, (const unsigned char *)bits + i * size, size);
    }
    type_op->kernels->fill_identity(sum, n);
    type_op->kernels->apply_rows(sum, at, samples[size].bits, 1, n);
    assert_memory_equal(sum, bits, n * size);
}

static void test_identities_leave_bits_alone(void **state)
{
    (void)state;
    for_all_kinds(check_identity);
}

/* Compare values as vectors, since vectors treat any two NaNs as equal. */
static bool same(const struct type_op *type_op, const void *a, const void *b, size_t n)
{
    static uint32_t index[4096];
    struct sar_vec_desc desc = vec_desc_make(type_op->base, type_op->op, LENGTH(index), 1);
    struct sar_spvec left = { index, (void *)a, n }, right = { index, (void *)b, n };
    return spvec_equal(&desc, &left, &right);
}

/* Apply the op to n values, `shift` elements after an aligned address. No other memory may change. */
static void check_fold_of(const struct type_op *type_op, enum values values, size_t n, size_t shift)
{
    struct rng rng = { n };
    size_t size = type_op->kernels->size;
    unsigned char *sum = exact_alloc((MOST + 2) * size), *expected = exact_alloc((MOST + 2) * size),
                  *in = exact_alloc(n * size);
    values_fill(type_op->base, values, sum, MOST + 2, &rng);
    values_fill(type_op->base, values, in, n, &rng);
    memcpy(expected, sum, (MOST + 2) * size);
    type_op->kernels->apply(sum + shift * size, in, n);
    for (size_t i = 0; i < n; i++)
        reference_fold(type_op->base, type_op->op, expected + (shift + i) * size, in + i * size);
    assert_true(same(type_op, sum, expected, MOST + 2));
    free(sum);
    free(expected);
    free(in);
}

static void check_fold(const struct type_op *type_op)
{
    for (size_t n = 0; n <= MOST; n++) {
        for (size_t shift = 0; shift < 2; shift++) {
            check_fold_of(type_op, VALUES_INEXACT, n, shift);
            check_fold_of(type_op, VALUES_SPECIAL, n, shift);
        }
    }
}

static void test_fold(void **state)
{
    (void)state;
    for_all_kinds(check_fold);
}

static void check_fold_zero(const struct type_op *type_op)
{
    static const uint64_t zero = 0;
    size_t size = type_op->kernels->size;
    for (size_t n = 0; n <= MOST; n++) {
        struct rng rng = { n };
        uint64_t sum[MOST + 1], expected[MOST + 1];
        values_fill(type_op->base, VALUES_SPECIAL, sum, sizeof sum / size, &rng);
        memcpy(expected, sum, sizeof sum);
        type_op->kernels->apply_zero(sum, n);
        for (size_t i = 0; i < n; i++)
            reference_fold(type_op->base, type_op->op, (unsigned char *)expected + i * size, &zero);
        assert_true(same(type_op, sum, expected, sizeof sum / size));
    }
}

static void test_fold_zero(void **state)
{
    (void)state;
    for_all_kinds(check_fold_zero);
}

/* Rows at POSITIONS positions, each repeated several times, in an order that float sums depend on. */
static void check_rows_of(const struct type_op *type_op, enum values values, size_t n, size_t row)
{
    struct rng rng = { n * MOST_ROW + row };
    size_t size = type_op->kernels->size, all = POSITIONS * row;
    uint32_t *at = exact_alloc(n * sizeof *at);
    unsigned char *sum = exact_alloc(all * size), *expected = exact_alloc(all * size),
                  *in = exact_alloc(n * row * size);
    values_fill(type_op->base, values, sum, all, &rng);
    values_fill(type_op->base, values, in, n * row, &rng);
    memcpy(expected, sum, all * size);
    for (size_t i = 0; i < n; i++) {
        at[i] = (uint32_t)rng_below(&rng, POSITIONS);
        for (size_t k = 0; k < row; k++)
            reference_fold(type_op->base, type_op->op, expected + (at[i] * row + k) * size,
                           in + (i * row + k) * size);
    }
    type_op->kernels->apply_rows(sum, at, in, n, row);
    assert_true(same(type_op, sum, expected, all));
    free(at);
    free(sum);
    free(expected);
    free(in);
}

static void check_rows(const struct type_op *type_op)
{
    for (size_t row = 1; row <= MOST_ROW; row++) {
        for (size_t n = 0; n <= MOST; n += 1 + n / 8) {
            check_rows_of(type_op, VALUES_INEXACT, n, row);
            check_rows_of(type_op, VALUES_SPECIAL, n, row);
        }
    }
}

static void test_fold_rows(void **state)
{
    (void)state;
    for_all_kinds(check_rows);
}

/* Computed by hand. A type uses the lowest bits of the numbers. */
static const struct {
    enum sar_dtype base;
    enum sar_op op;
    uint64_t a, b, result;
} worked_out[] = {
    { SAR_INT8, SAR_SUM, 0x7f, 1, 0x80 },
    { SAR_INT8, SAR_PROD, 0x80, 0xff, 0x80 },
    { SAR_INT8, SAR_MAX, 0xff, 1, 1 },
    { SAR_UINT8, SAR_MAX, 0xff, 1, 0xff },
    { SAR_UINT8, SAR_SUM, 0xff, 2, 1 },
    { SAR_INT16, SAR_SUM, 0x7fff, 1, 0x8000 },
    { SAR_INT16, SAR_MIN, 0xffff, 1, 0xffff },
    { SAR_UINT16, SAR_MIN, 0xffff, 1, 1 },
    { SAR_UINT16, SAR_PROD, 0xffff, 0xffff, 1 },
    { SAR_INT32, SAR_SUM, 0x7fffffff, 1, 0x80000000 },
    { SAR_INT32, SAR_SUM, 0x80000000, 0x80000000, 0 },
    { SAR_INT32, SAR_PROD, 0x80000000, 0xffffffff, 0x80000000 },
    { SAR_INT32, SAR_PROD, 65536, 65537, 65536 },
    { SAR_UINT32, SAR_SUM, 0xffffffff, 2, 1 },
    { SAR_UINT32, SAR_PROD, 0xffffffff, 0xffffffff, 1 },
    { SAR_INT64, SAR_SUM, 0x7fffffffffffffff, 1, 0x8000000000000000 },
    { SAR_INT64, SAR_PROD, 0x8000000000000000, UINT64_MAX, 0x8000000000000000 },
    { SAR_UINT64, SAR_SUM, UINT64_MAX, 2, 1 },
    { SAR_UINT64, SAR_PROD, (uint64_t)1 << 33, ((uint64_t)1 << 31) + 1, (uint64_t)1 << 33 },
    { SAR_INT32, SAR_MAX, 0xffffffff, 1, 1 },
    { SAR_UINT32, SAR_MAX, 0xffffffff, 1, 0xffffffff },
    { SAR_INT64, SAR_MIN, UINT64_MAX, 1, UINT64_MAX },
    { SAR_UINT64, SAR_MIN, UINT64_MAX, 1, 1 },
    { SAR_INT8, SAR_BAND, 0xf6, 0x3c, 0x34 },
    { SAR_UINT16, SAR_BOR, 0x8001, 0x0810, 0x8811 },
    { SAR_INT64, SAR_BXOR, 0xff00ff00ff00ff00, 0xffff, 0xff00ff00ff0000ff },
    { SAR_INT32, SAR_LAND, 2, 4, 1 },
    { SAR_UINT8, SAR_LAND, 0x80, 0, 0 },
    { SAR_INT16, SAR_LOR, 0x100, 0, 1 },
    { SAR_UINT64, SAR_LOR, 0, 0, 0 },
    { SAR_UINT32, SAR_LXOR, 7, 5, 0 },
    { SAR_INT8, SAR_LXOR, 0, 0x40, 1 },
};

static void test_integers(void **state)
{
    (void)state;
    for (size_t i = 0; i < LENGTH(worked_out); i++) {
        const struct sar_op_kernels *kernels = sar_op_kernels_of(worked_out[i].base, worked_out[i].op);
        unsigned char a[8], b[8], result[8];
        uint_store(worked_out[i].a, kernels->size, a);
        uint_store(worked_out[i].b, kernels->size, b);
        uint_store(worked_out[i].result, kernels->size, result);
        kernels->apply(a, b, 1);
        assert_memory_equal(a, result, kernels->size);
    }
}

/* MPI adds in rank order, which float sums show: 1e8 + 1 is 1e8. */
static void test_rows_are_folded_in_order(void **state)
{
    static const float in[] = { 1e8f, 1, -1e8f, 1 };
    static const uint32_t at[] = { 0, 0, 0, 0 };
    float sum = -0.0f;
    (void)state;
    sar_op_kernels_of(SAR_FLOAT, SAR_SUM)->apply_rows(&sum, at, in, LENGTH(in), 1);
    assert_true(sum == 1);
}

/* Every pair of a sample of 16-bit floats: a sum is the exact one rounded once. Twice the range of binary16
 * fits a double. Sums of bfloat16 that do not fit are far from any tie. */
static void test_float16_is_rounded_once(void **state)
{
    (void)state;
    for (unsigned base = SAR_BF16; base <= SAR_FP16; base++) {
        const struct sar_op_kernels *kernels = sar_op_kernels_of((enum sar_dtype)base, SAR_SUM);
        for (unsigned a = 0; a < 1 << 16; a += 97) {
            for (unsigned b = 0; b < 1 << 16; b += 89) {
                uint16_t sum = (uint16_t)a, add = (uint16_t)b;
                kernels->apply(&sum, &add, 1);
                uint16_t expected = float16_of((enum sar_dtype)base,
                                               (double)float16_value((enum sar_dtype)base, (uint16_t)a) +
                                                   (double)float16_value((enum sar_dtype)base, add));
                bool nan = isnan(float16_value((enum sar_dtype)base, expected));
                assert_true(sum == expected || (nan && isnan(float16_value((enum sar_dtype)base, sum))));
            }
        }
    }
}

/* Operands of logical ops become 0 or 1, even without a second operand. The caller's values stay
 * unchanged. */
static void test_logical_values_are_normalized(void **state)
{
    static const uint32_t up[] = { 1, 4, 6, 9 }, down[] = { 9, 6, 4, 1 };
    static const signed char values[] = { -128, 0, 1, 7 }, given[] = { -128, 0, 1, 7 };
    static const signed char rising[] = { 1, 0, 1, 1 }, falling[] = { 1, 1, 0, 1 };
    static const enum sar_op ops[] = { SAR_LAND, SAR_LOR, SAR_LXOR };
    (void)state;
    for (size_t i = 0; i < 2 * LENGTH(ops); i++) {
        struct sar_vec_desc desc = vec_desc_make(SAR_INT8, ops[i / 2], 10, 1);
        struct sar_coo_args coo = { i % 2 == 0 ? up : down, values, LENGTH(values), SAR_INDEX_UINT32 };
        struct sar_arena arena = { 0 };
        struct sar_spvec vec;
        long long bad;
        assert_int_equal(sar_canonicalize(&desc, &coo, &arena, &vec, &bad), SAR_OK);
        assert_int_equal(vec.nnz, LENGTH(values));
        assert_memory_equal(vec.index, up, sizeof up);
        assert_memory_equal(vec.value, i % 2 == 0 ? rising : falling, sizeof values);
        assert_memory_equal(values, given, sizeof values);
        sar_arena_free(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_defined_pairs),
        cmocka_unit_test(test_identities_leave_bits_alone),
        cmocka_unit_test(test_fold),
        cmocka_unit_test(test_fold_zero),
        cmocka_unit_test(test_fold_rows),
        cmocka_unit_test(test_integers),
        cmocka_unit_test(test_rows_are_folded_in_order),
        cmocka_unit_test(test_float16_is_rounded_once),
        cmocka_unit_test(test_logical_values_are_normalized),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
