/* SPDX-License-Identifier: BSD-3-Clause */
/* A caller's coordinates become a run: index types, ranges, order, equal indices, and no copy where none
 * is needed. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "generate.h"
#include "tensor/ingest.h"

/* An index and where the caller has it. */
struct entry {
    uint64_t index;
    size_t position;
};

static int by_index(const void *a, const void *b)
{
    const struct entry *left = a, *right = b;
    if (left->index != right->index)
        return left->index < right->index ? -1 : 1;
    return left->position < right->position ? -1 : 1;
}

/* The caller's arrays, in memory of exactly their size. */
static struct sar_coo coo_make(const struct sar_shape *shape, enum sar_index_type type, const uint64_t *index,
                               size_t nnz, struct dice *dice)
{
    unsigned size = sar_index_type_size(type);
    void *indices = exact(nnz * size), *values = exact(nnz * shape->element_size);
    for (size_t i = 0; i < nnz; i++)
        sar_index_set(indices, size, i, index[i]);
    values_fill(shape->base, VALUES_INEXACT, values, nnz * shape->row, dice);
    return (struct sar_coo){ indices, values, nnz, type };
}

static void coo_free(struct sar_coo *coo)
{
    free((void *)coo->indices);
    free((void *)coo->values);
}

/* Sort by index, then by the caller's order, and reduce equal ones in it. */
static struct sar_run obvious_ingest(const struct sar_shape *shape, const struct sar_coo *coo)
{
    struct entry *entries = exact(coo->nnz * sizeof *entries);
    struct sar_run sorted = run_room(shape, coo->nnz);
    struct sar_shape plain = *shape;
    size_t bytes = shape->element_size;
    plain.absent_is_zero = false;
    for (size_t i = 0; i < coo->nnz; i++)
        entries[i] = (struct entry){ sar_index_get(coo->indices, sar_index_type_size(coo->type), i), i };
    qsort(entries, coo->nnz, sizeof *entries, by_index);
    for (size_t i = 0; i < coo->nnz; i++) {
        sar_index_set(sorted.index, shape->index_size, i, entries[i].index);
        memcpy((char *)sorted.value + i * bytes, (const char *)coo->values + entries[i].position * bytes,
               bytes);
    }
    struct sar_run out = obvious_reduce(&plain, &sorted, 1);
    values_settle(shape->base, shape->op, out.value, out.nnz * shape->row);
    run_free(&sorted);
    free(entries);
    return out;
}

static void check(const struct sar_shape *shape, enum sar_index_type type, const uint64_t *index, size_t nnz)
{
    struct dice dice = { nnz };
    struct sar_arena arena = { 0 };
    struct sar_coo coo = coo_make(shape, type, index, nnz, &dice);
    struct sar_run run, expected = obvious_ingest(shape, &coo);
    long long bad = 77;
    assert_int_equal(sar_ingest(shape, &coo, &arena, &run, &bad), SAR_OK);
    assert_int_equal(bad, 77);
    assert_true(run_equal(shape, &run, &expected));
    coo_free(&coo);
    run_free(&expected);
    sar_arena_free(&arena);
}

enum order { ASCENDING, DESCENDING, SHUFFLED, LAST_TWO_SWAPPED, ORDERS };

static void swap(uint64_t *a, uint64_t *b)
{
    uint64_t keep = *a;
    *a = *b;
    *b = keep;
}

static void rearrange(enum order order, uint64_t *index, size_t nnz, struct dice *dice)
{
    for (size_t i = 0; order == DESCENDING && i < nnz / 2; i++)
        swap(&index[i], &index[nnz - 1 - i]);
    for (size_t i = 0; order == SHUFFLED && i < nnz; i++)
        swap(&index[i], &index[dice_below(dice, i + 1)]);
    if (order == LAST_TWO_SWAPPED && nnz >= 2)
        swap(&index[nnz - 1], &index[nnz - 2]);
}

static const uint64_t counts[] = { 1,
                                   2,
                                   2048,
                                   2049,
                                   100000,
                                   1u << 31,
                                   4294967295u,
                                   4294967296,
                                   4294967297,
                                   0x200000000003,
                                   0x8000000000000000 };

/* Every type, count and order, with indices all over the vector; every third time with equal ones. */
static void test_types_counts_and_orders(void **state)
{
    enum { ROOM = 300 };
    uint64_t index[2 * ROOM];
    (void)state;
    for (size_t k = 0; k < LENGTH(counts) * SAR_INDEX_TYPES * ORDERS * PATTERNS; k++) {
        struct dice dice = { k };
        uint64_t count = counts[k / PATTERNS % LENGTH(counts)];
        enum sar_index_type type = (enum sar_index_type)(k / PATTERNS / LENGTH(counts) % SAR_INDEX_TYPES);
        enum order order = (enum order)(k / PATTERNS / LENGTH(counts) / SAR_INDEX_TYPES);
        const struct pattern *pattern = &patterns[k % PATTERNS];
        struct sar_shape shape = shape_make(SAR_FLOAT, SAR_SUM, count, 1);
        if (count > sar_index_type_limit(type))
            continue;
        size_t nnz = pattern->choose(pattern, count, ROOM, &dice, index);
        for (size_t i = 0; k % 3 == 0 && i < nnz; i++)
            index[nnz + i] = index[dice_below(&dice, nnz)];
        nnz *= k % 3 == 0 ? 2 : 1;
        rearrange(order, index, nnz, &dice);
        check(&shape, type, index, nnz);
    }
}

/* Input long enough for every digit of the sort, and for vectors of comparisons. */
static void test_long_input(void **state)
{
    static const size_t sizes[] = { 1, 2, 3, 15, 16, 17, 63, 64, 65, 4095, 4096, 4097, 30000 };
    static const uint64_t limits[] = { 10, 3000, 5000000, 4294967290, (uint64_t)1 << 40, (uint64_t)1 << 62 };
    uint64_t *index = exact(30000 * sizeof *index);
    (void)state;
    for (size_t k = 0; k < LENGTH(sizes) * LENGTH(limits); k++) {
        struct dice dice = { k };
        uint64_t limit = limits[k % LENGTH(limits)];
        size_t nnz = sizes[k / LENGTH(limits)];
        struct sar_shape shape = shape_make(k % 3 == 0 ? SAR_DOUBLE : SAR_FLOAT, SAR_SUM, limit, 1);
        for (size_t i = 0; i < nnz; i++)
            index[i] = dice_below(&dice, limit);
        check(&shape, k % 2 == 0 || limit > UINT32_MAX ? SAR_INDEX_UINT64 : SAR_INDEX_UINT32, index, nnz);
    }
    free(index);
}

enum crowd { AT_ONE_INDEX, CLOSE, CLOSE_BUT_FOR_SOME, IN_TWO_PLACES, FEWER_AND_FEWER, CROWDS };

/* Indices that leading bits hardly tell apart. */
static uint64_t crowded_index(enum crowd crowd, uint64_t limit, size_t nnz, struct dice *dice)
{
    uint64_t near = limit / 3 + dice_below(dice, nnz), far = dice_below(dice, limit);
    switch (crowd) {
    case AT_ONE_INDEX: return limit / 2;
    case CLOSE: return near;
    case CLOSE_BUT_FOR_SOME: return dice_below(dice, 3) == 0 ? far : near;
    case IN_TWO_PLACES: return dice_below(dice, 2) == 0 ? limit - 1 - dice_below(dice, nnz) : near;
    default: return far >> dice_below(dice, 64);
    }
}

/* Input that is dealt out to buckets, many of which have next to nothing and some nearly all. */
static void test_crowded_input(void **state)
{
    static const size_t sizes[] = { 8192, 8193, 40000 };
    static const uint64_t limits[] = { 100000000, (uint64_t)1 << 33, (uint64_t)1 << 62 };
    static const enum sar_base bases[] = { SAR_BF16, SAR_FLOAT, SAR_DOUBLE, SAR_FLOAT };
    uint64_t *index = exact(40000 * sizeof *index);
    (void)state;
    for (size_t k = 0; k < CROWDS * LENGTH(sizes) * LENGTH(limits) * LENGTH(bases); k++) {
        struct dice dice = { k };
        uint64_t limit = limits[k / CROWDS % LENGTH(limits)];
        size_t e = k / CROWDS / LENGTH(limits), nnz = sizes[e % LENGTH(sizes)];
        struct sar_shape shape = shape_make(bases[e % LENGTH(bases)], SAR_SUM, limit, e % 4 == 3 ? 3 : 1);
        for (size_t i = 0; i < nnz; i++)
            index[i] = crowded_index((enum crowd)(k % CROWDS), limit, nnz, &dice);
        check(&shape, limit > UINT32_MAX || k % 2 == 0 ? SAR_INDEX_INT64 : SAR_INDEX_INT32, index, nnz);
    }
    free(index);
}

/* At most half of what the outcome may have. */
static void test_memory_to_sort(void **state)
{
    enum { NNZ = 400000 };
    uint64_t *index = exact(NNZ * sizeof *index);
    (void)state;
    for (size_t k = 0; k < CROWDS * 2; k++) {
        struct dice dice = { k };
        struct sar_arena arena = { 0 };
        struct sar_run run;
        long long bad;
        struct sar_shape shape = shape_make(SAR_FLOAT, SAR_SUM, (uint64_t)1 << (k % 2 == 0 ? 26 : 62), 1);
        for (size_t i = 0; i < NNZ; i++)
            index[i] = crowded_index((enum crowd)(k / 2), shape.count, NNZ, &dice);
        struct sar_coo coo = coo_make(&shape, SAR_INDEX_INT64, index, NNZ, &dice);
        assert_int_equal(sar_ingest(&shape, &coo, &arena, &run, &bad), SAR_OK);
        size_t outcome = NNZ * (shape.index_size + shape.element_size);
        assert_in_range(arena.taken, outcome, outcome + 2 * SAR_ALIGNMENT);
        assert_in_range(arena.most, outcome, outcome + outcome / 2 + 3 * SAR_ALIGNMENT);
        coo_free(&coo);
        sar_arena_free(&arena);
    }
    free(index);
}

/* Equal indices are reduced by the op, rows as a whole; a zero is folded in nowhere, also not where absent
 * elements are zeros. */
static void test_ops_and_rows(void **state)
{
    (void)state;
    for (unsigned k = 0; k < 4 * SAR_BASES * SAR_OPS; k++) {
        struct dice dice = { k };
        uint64_t index[200];
        enum sar_base base = (enum sar_base)(k / 4 / SAR_OPS);
        enum sar_op op = (enum sar_op)(k / 4 % SAR_OPS);
        if (sar_kernels_of(base, op) == NULL)
            continue;
        struct sar_shape shape = shape_make(base, op, 50, 1 + k % 4);
        shape.absent_is_zero = k % 3 == 0;
        for (size_t i = 0; i < LENGTH(index); i++)
            index[i] = dice_below(&dice, 50);
        check(&shape, (enum sar_index_type)(k / 4 % SAR_INDEX_TYPES), index, LENGTH(index));
    }
}

/* 1e8 swallows a 1: the sum tells in which order the caller's equal indices were added. */
static void test_equal_indices_keep_the_callers_order(void **state)
{
    static const uint32_t indices[] = { 9, 4, 9, 4, 9, 4 };
    static const float values[] = { 1e8f, 1, -1e8f, 1e8f, 1, -1e8f };
    struct sar_shape shape = shape_make(SAR_FLOAT, SAR_SUM, 10, 1);
    struct sar_coo coo = { indices, values, LENGTH(indices), SAR_INDEX_UINT32 };
    struct sar_arena arena = { 0 };
    struct sar_run run;
    long long bad;
    (void)state;
    assert_int_equal(sar_ingest(&shape, &coo, &arena, &run, &bad), SAR_OK);
    assert_int_equal(run.nnz, 2);
    assert_true(((float *)run.value)[0] == 0 && ((float *)run.value)[1] == 1);
    sar_arena_free(&arena);
}

static enum sar_status out_of_range(enum sar_index_type type)
{
    return type == SAR_INDEX_UINT64 ? SAR_BAD_UNSIGNED_INDEX : SAR_BAD_INDEX;
}

/* The first index out of range, in the caller's order, as the caller's type shows it. */
static void test_indices_out_of_range(void **state)
{
    static const struct {
        enum sar_index_type type;
        uint64_t count, index[4];
        long long bad;
    } cases[] = {
        { SAR_INDEX_INT32, 10, { 1, 10, 11, 2 }, 10 },
        { SAR_INDEX_INT32, 10, { 1, 2, 3, 10 }, 10 },
        { SAR_INDEX_INT32, 10, { 12, 10, 11, 2 }, 12 },
        { SAR_INDEX_INT32, 10, { 1, (uint32_t)-1, 2, 3 }, -1 },
        { SAR_INDEX_INT32, 10, { 1, (uint32_t)-7, 2, 10 }, -7 },
        { SAR_INDEX_INT32, 10, { 1, 10, (uint32_t)-7, 2 }, 10 },
        { SAR_INDEX_INT32, (uint64_t)1 << 31, { 0, (uint32_t)1 << 31, 1, 1 }, INT32_MIN },
        { SAR_INDEX_INT32, 0, { 0, 0, 0, 0 }, 0 },
        { SAR_INDEX_UINT32, 10, { 1, 4294967295, 2, 3 }, 4294967295 },
        { SAR_INDEX_UINT32, 4294967295, { 4294967294, 1, 4294967295, 3 }, 4294967295 },
        { SAR_INDEX_INT64, 10, { 1, (uint64_t)-1, 2, 3 }, -1 },
        { SAR_INDEX_INT64, 10, { 1, 2, 3, (uint64_t)1 << 63 }, LLONG_MIN },
        { SAR_INDEX_INT64, 4294967296, { 1, 2, 3, 4294967296 }, 4294967296 },
        { SAR_INDEX_INT64, 10, { 1, 4294967297, 2, 3 }, 4294967297 },
        { SAR_INDEX_UINT64, 10, { 1, 4294967296, 2, 10 }, 4294967296 },
        { SAR_INDEX_UINT64, (uint64_t)1 << 62, { 0, (uint64_t)1 << 62, 2, 1 }, (long long)1 << 62 },
    };
    (void)state;
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct dice dice = { i };
        struct sar_shape shape = shape_make(SAR_FLOAT, SAR_SUM, cases[i].count, 1);
        struct sar_coo coo = coo_make(&shape, cases[i].type, cases[i].index, LENGTH(cases[i].index), &dice);
        struct sar_arena arena = { 0 };
        struct sar_run run;
        long long bad = 77;
        assert_int_equal(sar_ingest(&shape, &coo, &arena, &run, &bad), out_of_range(coo.type));
        if (bad != cases[i].bad)
            fail_msg("case %zu reports %lld", i, bad);
        coo_free(&coo);
        sar_arena_free(&arena);
    }
}

/* An index out of range is found wherever it stands. */
static void test_every_place_is_looked_at(void **state)
{
    enum { NNZ = 70 };
    (void)state;
    for (unsigned type = 0; type < SAR_INDEX_TYPES; type++) {
        for (size_t place = 0; place < NNZ; place++) {
            struct dice dice = { place };
            uint64_t index[NNZ];
            struct sar_shape shape = shape_make(SAR_FLOAT, SAR_SUM, NNZ, 1);
            for (size_t i = 0; i < NNZ; i++)
                index[i] = i == place ? NNZ : i;
            struct sar_coo coo = coo_make(&shape, (enum sar_index_type)type, index, NNZ, &dice);
            struct sar_arena arena = { 0 };
            struct sar_run run;
            long long bad;
            assert_int_equal(sar_ingest(&shape, &coo, &arena, &run, &bad), out_of_range(coo.type));
            assert_int_equal(bad, NNZ);
            coo_free(&coo);
            sar_arena_free(&arena);
        }
    }
}

/* Ascending input of the library's width lies where the caller has it; of another width, its values do. */
static void test_nothing_is_copied_without_need(void **state)
{
    static const uint64_t index[] = { 0, 5, 6, 99 };
    (void)state;
    for (unsigned k = 0; k < SAR_INDEX_TYPES * 2; k++) {
        enum sar_index_type type = (enum sar_index_type)(k / 2);
        uint64_t count = k % 2 == 0 ? (uint64_t)1 << 32 : ((uint64_t)1 << 32) + 1;
        struct dice dice = { k };
        struct sar_shape shape = shape_make(SAR_FLOAT, SAR_SUM, count, 1);
        struct sar_coo coo = coo_make(&shape, type, index, LENGTH(index), &dice);
        struct sar_arena arena = { 0 };
        struct sar_run run;
        long long bad;
        assert_int_equal(sar_ingest(&shape, &coo, &arena, &run, &bad), SAR_OK);
        bool same_width = sar_index_type_size(type) == shape.index_size;
        assert_true((run.index == coo.indices) == same_width);
        assert_ptr_equal(run.value, coo.values);
        assert_true((arena.taken == 0) == same_width);
        coo_free(&coo);
        sar_arena_free(&arena);
    }
}

/* No elements: the pointers may be null, and are not looked through. */
static void test_no_elements(void **state)
{
    (void)state;
    for (unsigned type = 0; type < SAR_INDEX_TYPES; type++) {
        struct sar_shape shape = shape_make(SAR_FLOAT, SAR_SUM, type % 2 == 0 ? 0 : 100, 1);
        struct sar_coo coo = { NULL, NULL, 0, (enum sar_index_type)type };
        struct sar_arena arena = { 0 };
        struct sar_run run = { NULL, NULL, 7 };
        long long bad;
        assert_int_equal(sar_ingest(&shape, &coo, &arena, &run, &bad), SAR_OK);
        assert_int_equal(run.nnz, 0);
        sar_arena_free(&arena);
    }
}

static void test_index_types(void **state)
{
    static const unsigned sizes[] = { 4, 4, 8, 8 };
    static const uint64_t largest[] = { INT32_MAX, UINT32_MAX, INT64_MAX, UINT64_MAX };
    (void)state;
    for (unsigned type = 0; type < SAR_INDEX_TYPES; type++) {
        uint64_t limit = sar_index_type_limit((enum sar_index_type)type);
        assert_int_equal(sar_index_type_size((enum sar_index_type)type), sizes[type]);
        assert_true(limit - 1 == largest[type] || (limit == UINT64_MAX && largest[type] == UINT64_MAX));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types_counts_and_orders),
        cmocka_unit_test(test_long_input),
        cmocka_unit_test(test_crowded_input),
        cmocka_unit_test(test_memory_to_sort),
        cmocka_unit_test(test_ops_and_rows),
        cmocka_unit_test(test_equal_indices_keep_the_callers_order),
        cmocka_unit_test(test_indices_out_of_range),
        cmocka_unit_test(test_every_place_is_looked_at),
        cmocka_unit_test(test_nothing_is_copied_without_need),
        cmocka_unit_test(test_no_elements),
        cmocka_unit_test(test_index_types),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
