/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests conversion of a caller's coordinates to a vector: index types, ranges, order, equal indices, and no
 * needless copy. All tests run with one thread and with several. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "generate.h"
#include "teams.h"
#include "vector/canonicalize.h"

/* An index and its position in the caller's array. */
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
static struct sar_coo_args coo_make(const struct sar_vec_desc *desc, enum sar_index_type type,
                                    const uint64_t *index, size_t nnz, struct rng *rng)
{
    unsigned size = sar_index_type_size(type);
    void *indices = exact_alloc(nnz * size), *values = exact_alloc(nnz * desc->element_size);
    for (size_t i = 0; i < nnz; i++)
        sar_index_set(indices, size, i, index[i]);
    values_fill(desc->dtype, VALUES_INEXACT, values, nnz * desc->row_len, rng);
    return (struct sar_coo_args){ indices, values, nnz, type };
}

static void coo_free(struct sar_coo_args *coo)
{
    free((void *)coo->indices);
    free((void *)coo->values);
}

/* Sort by index, then by the caller's order, and reduce equal indices in that order. */
static struct sar_spvec reference_sort(const struct sar_vec_desc *desc, const struct sar_coo_args *coo)
{
    struct entry *entries = exact_alloc(coo->nnz * sizeof *entries);
    struct sar_spvec sorted = spvec_alloc(desc, coo->nnz);
    struct sar_vec_desc plain = *desc;
    size_t bytes = desc->element_size;
    plain.absent_is_zero = false;
    for (size_t i = 0; i < coo->nnz; i++)
        entries[i] = (struct entry){ sar_index_get(coo->indices, sar_index_type_size(coo->type), i), i };
    qsort(entries, coo->nnz, sizeof *entries, by_index);
    for (size_t i = 0; i < coo->nnz; i++) {
        sar_index_set(sorted.index, desc->index_size, i, entries[i].index);
        memcpy((char *)sorted.value + i * bytes, (const char *)coo->values + entries[i].position * bytes,
               bytes);
    }
    struct sar_spvec out = reference_reduce(&plain, &sorted, 1);
    values_normalize(desc->dtype, desc->op, out.value, out.nnz * desc->row_len);
    spvec_free(&sorted);
    free(entries);
    return out;
}

static void check(const struct sar_vec_desc *desc, enum sar_index_type type, const uint64_t *index,
                  size_t nnz)
{
    struct rng rng = { nnz };
    struct sar_arena arena = { 0 };
    struct sar_coo_args coo = coo_make(desc, type, index, nnz, &rng);
    struct sar_spvec vec, expected = reference_sort(desc, &coo);
    long long bad = 77;
    assert_int_equal(sar_canonicalize(desc, &coo, &arena, &vec, &bad), SAR_OK);
    assert_int_equal(bad, 77);
    assert_true(spvec_equal(desc, &vec, &expected));
    coo_free(&coo);
    spvec_free(&expected);
    sar_arena_free(&arena);
}

enum order { ASCENDING, DESCENDING, SHUFFLED, LAST_TWO_SWAPPED, ORDERS };

static void swap(uint64_t *a, uint64_t *b)
{
    uint64_t keep = *a;
    *a = *b;
    *b = keep;
}

static void rearrange(enum order order, uint64_t *index, size_t nnz, struct rng *rng)
{
    for (size_t i = 0; order == DESCENDING && i < nnz / 2; i++)
        swap(&index[i], &index[nnz - 1 - i]);
    for (size_t i = 0; order == SHUFFLED && i < nnz; i++)
        swap(&index[i], &index[rng_below(rng, i + 1)]);
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

/* Every type, count and order, with indices over the whole vector; every third case has equal indices. */
static void test_types_counts_and_orders(void **state)
{
    enum { ROOM = 300 };
    uint64_t index[2 * ROOM];
    (void)state;
    for (size_t k = 0; k < LENGTH(counts) * SAR_INDEX_TYPES * ORDERS * PATTERNS; k++) {
        struct rng rng = { k };
        uint64_t count = counts[k / PATTERNS % LENGTH(counts)];
        enum sar_index_type type = (enum sar_index_type)(k / PATTERNS / LENGTH(counts) % SAR_INDEX_TYPES);
        enum order order = (enum order)(k / PATTERNS / LENGTH(counts) / SAR_INDEX_TYPES);
        const struct pattern *pattern = &patterns[k % PATTERNS];
        struct sar_vec_desc desc = vec_desc_make(SAR_FLOAT, SAR_SUM, count, 1);
        if (count > sar_index_type_limit(type))
            continue;
        size_t nnz = pattern->choose(pattern, count, ROOM, &rng, index);
        for (size_t i = 0; k % 3 == 0 && i < nnz; i++)
            index[nnz + i] = index[rng_below(&rng, nnz)];
        nnz *= k % 3 == 0 ? 2 : 1;
        rearrange(order, index, nnz, &rng);
        check(&desc, type, index, nnz);
    }
}

/* Input long enough for every digit of the sort, and for vectorized comparisons. */
static void test_long_input(void **state)
{
    static const size_t sizes[] = { 1, 2, 3, 15, 16, 17, 63, 64, 65, 4095, 4096, 4097, 30000 };
    static const uint64_t limits[] = { 10, 3000, 5000000, 4294967290, (uint64_t)1 << 40, (uint64_t)1 << 62 };
    uint64_t *index = exact_alloc(30000 * sizeof *index);
    (void)state;
    for (size_t k = 0; k < LENGTH(sizes) * LENGTH(limits); k++) {
        struct rng rng = { k };
        uint64_t limit = limits[k % LENGTH(limits)];
        size_t nnz = sizes[k / LENGTH(limits)];
        struct sar_vec_desc desc = vec_desc_make(k % 3 == 0 ? SAR_DOUBLE : SAR_FLOAT, SAR_SUM, limit, 1);
        for (size_t i = 0; i < nnz; i++)
            index[i] = rng_below(&rng, limit);
        check(&desc, k % 2 == 0 || limit > UINT32_MAX ? SAR_INDEX_UINT64 : SAR_INDEX_UINT32, index, nnz);
    }
    free(index);
}

enum cluster { AT_ONE_INDEX, CLOSE, CLOSE_BUT_FOR_SOME, AT_BOTH_ENDS, FEWER_AND_FEWER, CLUSTERS };

/* Indices with few distinct leading bits. */
static uint64_t clustered_index(enum cluster cluster, uint64_t limit, size_t nnz, struct rng *rng)
{
    uint64_t near = limit / 3 + rng_below(rng, nnz), far = rng_below(rng, limit);
    switch (cluster) {
    case AT_ONE_INDEX: return limit / 2;
    case CLOSE: return near;
    case CLOSE_BUT_FOR_SOME: return rng_below(rng, 3) == 0 ? far : near;
    case AT_BOTH_ENDS: return rng_below(rng, 2) == 0 ? limit - 1 - rng_below(rng, nnz) : near;
    default: return far >> rng_below(rng, 64);
    }
}

/* Input of which many buckets get few elements and some get nearly all. */
static void test_clustered_input(void **state)
{
    static const size_t sizes[] = { 8192, 8193, 40000 };
    static const uint64_t limits[] = { 100000000, (uint64_t)1 << 33, (uint64_t)1 << 62 };
    static const enum sar_dtype bases[] = { SAR_BF16, SAR_FLOAT, SAR_DOUBLE, SAR_FLOAT };
    uint64_t *index = exact_alloc(40000 * sizeof *index);
    (void)state;
    for (size_t k = 0; k < CLUSTERS * LENGTH(sizes) * LENGTH(limits) * LENGTH(bases); k++) {
        struct rng rng = { k };
        uint64_t limit = limits[k / CLUSTERS % LENGTH(limits)];
        size_t e = k / CLUSTERS / LENGTH(limits), nnz = sizes[e % LENGTH(sizes)];
        struct sar_vec_desc desc =
            vec_desc_make(bases[e % LENGTH(bases)], SAR_SUM, limit, e % 4 == 3 ? 3 : 1);
        for (size_t i = 0; i < nnz; i++)
            index[i] = clustered_index((enum cluster)(k % CLUSTERS), limit, nnz, &rng);
        check(&desc, limit > UINT32_MAX || k % 2 == 0 ? SAR_INDEX_INT64 : SAR_INDEX_INT32, index, nnz);
    }
    free(index);
}

/* At most half of the elements of the result, and a little for each piece with several threads. */
static void test_memory_to_sort(void **state)
{
    enum { NNZ = 400000 };
    size_t besides = sar_parallel_threads() == 1
                         ? 3 * SAR_ALIGNMENT
                         : (32 << 10) + (2100 + 2 * SAR_ALIGNMENT) * sar_parallel_pieces(SIZE_MAX);
    uint64_t *index = exact_alloc(NNZ * sizeof *index);
    (void)state;
    for (size_t k = 0; k < CLUSTERS * 2; k++) {
        struct rng rng = { k };
        struct sar_arena arena = { 0 };
        struct sar_spvec vec;
        long long bad;
        struct sar_vec_desc desc = vec_desc_make(SAR_FLOAT, SAR_SUM, 1ull << (k % 2 == 0 ? 26 : 62), 1);
        for (size_t i = 0; i < NNZ; i++)
            index[i] = clustered_index((enum cluster)(k / 2), desc.count, NNZ, &rng);
        struct sar_coo_args coo = coo_make(&desc, SAR_INDEX_INT64, index, NNZ, &rng);
        assert_int_equal(sar_canonicalize(&desc, &coo, &arena, &vec, &bad), SAR_OK);
        size_t result = NNZ * (desc.index_size + desc.element_size);
        assert_in_range(arena.used, result, result + 2 * SAR_ALIGNMENT);
        assert_in_range(arena.peak, result, result + result / 2 + besides);
        coo_free(&coo);
        sar_arena_free(&arena);
    }
    free(index);
}

/* Equal indices are reduced by the op, rows as a whole; no zero is added, even if absent
 * elements are zeros. */
static void test_ops_and_rows(void **state)
{
    (void)state;
    for (unsigned k = 0; k < 4 * SAR_DTYPES * SAR_OPS; k++) {
        struct rng rng = { k };
        uint64_t index[200];
        enum sar_dtype base = (enum sar_dtype)(k / 4 / SAR_OPS);
        enum sar_op op = (enum sar_op)(k / 4 % SAR_OPS);
        if (sar_op_kernels_of(base, op) == NULL)
            continue;
        struct sar_vec_desc desc = vec_desc_make(base, op, 50, 1 + k % 4);
        desc.absent_is_zero = k % 3 == 0;
        for (size_t i = 0; i < LENGTH(index); i++)
            index[i] = rng_below(&rng, 50);
        check(&desc, (enum sar_index_type)(k / 4 % SAR_INDEX_TYPES), index, LENGTH(index));
    }
}

/* 1e8 + 1 is 1e8: the sum shows in which order the caller's equal indices were added. */
static void test_equal_indices_keep_the_callers_order(void **state)
{
    static const uint32_t indices[] = { 9, 4, 9, 4, 9, 4 };
    static const float values[] = { 1e8f, 1, -1e8f, 1e8f, 1, -1e8f };
    struct sar_vec_desc desc = vec_desc_make(SAR_FLOAT, SAR_SUM, 10, 1);
    struct sar_coo_args coo = { indices, values, LENGTH(indices), SAR_INDEX_UINT32 };
    struct sar_arena arena = { 0 };
    struct sar_spvec vec;
    long long bad;
    (void)state;
    assert_int_equal(sar_canonicalize(&desc, &coo, &arena, &vec, &bad), SAR_OK);
    assert_int_equal(vec.nnz, 2);
    assert_true(((float *)vec.value)[0] == 0 && ((float *)vec.value)[1] == 1);
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
        struct rng rng = { i };
        struct sar_vec_desc desc = vec_desc_make(SAR_FLOAT, SAR_SUM, cases[i].count, 1);
        struct sar_coo_args coo =
            coo_make(&desc, cases[i].type, cases[i].index, LENGTH(cases[i].index), &rng);
        struct sar_arena arena = { 0 };
        struct sar_spvec vec;
        long long bad = 77;
        assert_int_equal(sar_canonicalize(&desc, &coo, &arena, &vec, &bad), out_of_range(coo.type));
        if (bad != cases[i].bad)
            fail_msg("case %zu reports %lld", i, bad);
        coo_free(&coo);
        sar_arena_free(&arena);
    }
}

/* An index out of range is found at any position. */
static void test_index_out_of_range_at_any_position(void **state)
{
    enum { NNZ = 70 };
    (void)state;
    for (unsigned type = 0; type < SAR_INDEX_TYPES; type++) {
        for (size_t place = 0; place < NNZ; place++) {
            struct rng rng = { place };
            uint64_t index[NNZ];
            struct sar_vec_desc desc = vec_desc_make(SAR_FLOAT, SAR_SUM, NNZ, 1);
            for (size_t i = 0; i < NNZ; i++)
                index[i] = i == place ? NNZ : i;
            struct sar_coo_args coo = coo_make(&desc, (enum sar_index_type)type, index, NNZ, &rng);
            struct sar_arena arena = { 0 };
            struct sar_spvec vec;
            long long bad;
            assert_int_equal(sar_canonicalize(&desc, &coo, &arena, &vec, &bad), out_of_range(coo.type));
            assert_int_equal(bad, NNZ);
            coo_free(&coo);
            sar_arena_free(&arena);
        }
    }
}

/* Ascending input with the library's index width is used in place; with another width, only its values
 * are. */
static void test_nothing_is_copied_without_need(void **state)
{
    static const uint64_t index[] = { 0, 5, 6, 99 };
    (void)state;
    for (unsigned k = 0; k < SAR_INDEX_TYPES * 2; k++) {
        enum sar_index_type type = (enum sar_index_type)(k / 2);
        uint64_t count = k % 2 == 0 ? (uint64_t)1 << 32 : ((uint64_t)1 << 32) + 1;
        struct rng rng = { k };
        struct sar_vec_desc desc = vec_desc_make(SAR_FLOAT, SAR_SUM, count, 1);
        struct sar_coo_args coo = coo_make(&desc, type, index, LENGTH(index), &rng);
        struct sar_arena arena = { 0 };
        struct sar_spvec vec;
        long long bad;
        assert_int_equal(sar_canonicalize(&desc, &coo, &arena, &vec, &bad), SAR_OK);
        bool same_width = sar_index_type_size(type) == desc.index_size;
        assert_true((vec.index == coo.indices) == same_width);
        assert_ptr_equal(vec.value, coo.values);
        assert_true((arena.used == 0) == same_width);
        coo_free(&coo);
        sar_arena_free(&arena);
    }
}

/* No elements: the pointers may be null and are not dereferenced. */
static void test_no_elements(void **state)
{
    (void)state;
    for (unsigned type = 0; type < SAR_INDEX_TYPES; type++) {
        struct sar_vec_desc desc = vec_desc_make(SAR_FLOAT, SAR_SUM, type % 2 == 0 ? 0 : 100, 1);
        struct sar_coo_args coo = { NULL, NULL, 0, (enum sar_index_type)type };
        struct sar_arena arena = { 0 };
        struct sar_spvec vec = { NULL, NULL, 7 };
        long long bad;
        assert_int_equal(sar_canonicalize(&desc, &coo, &arena, &vec, &bad), SAR_OK);
        assert_int_equal(vec.nnz, 0);
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

/* Long input has the bytes that one thread makes: sums of floats depend on the order of equal indices. */
static void check_alone(const struct sar_vec_desc *desc, const struct sar_coo_args *coo)
{
    struct sar_arena arenas[2] = { { 0 }, { 0 } };
    struct sar_spvec vec, alone;
    long long bad;
    assert_int_equal(sar_canonicalize(desc, coo, &arenas[0], &vec, &bad), SAR_OK);
    struct sar_parallel former = sar_parallel_begin((struct sar_parallel){ .threads = 1 });
    assert_int_equal(sar_canonicalize(desc, coo, &arenas[1], &alone, &bad), SAR_OK);
    sar_parallel_end(former);
    assert_int_equal(vec.nnz, alone.nnz);
    assert_true(memcmp(vec.index, alone.index, vec.nnz * desc->index_size) == 0);
    assert_true(memcmp(vec.value, alone.value, vec.nnz * desc->element_size) == 0);
    sar_arena_free(&arenas[0]);
    sar_arena_free(&arenas[1]);
}

static void test_longest_input(void **state)
{
    enum { NNZ = 150001 };
    static const struct {
        enum sar_dtype base;
        enum sar_op op;
        size_t row;
    } kinds[] = { { SAR_FLOAT, SAR_SUM, 1 }, { SAR_BF16, SAR_SUM, 1 },  { SAR_DOUBLE, SAR_SUM, 1 },
                  { SAR_INT8, SAR_SUM, 1 },  { SAR_FP16, SAR_PROD, 5 }, { SAR_FLOAT, SAR_SUM, 3 },
                  { SAR_INT32, SAR_LOR, 1 } };
    uint64_t *index = exact_alloc(NNZ * sizeof *index);
    (void)state;
    for (size_t k = 0; k < LENGTH(kinds) * (CLUSTERS + 3); k++) {
        struct rng rng = { k };
        uint64_t limit = k % 2 == 0 ? 5000000 : (uint64_t)1 << 40;
        size_t order = k / LENGTH(kinds), kind = k % LENGTH(kinds);
        struct sar_vec_desc desc = vec_desc_make(kinds[kind].base, kinds[kind].op, limit, kinds[kind].row);
        for (size_t i = 0; i < NNZ; i++)
            index[i] = order < CLUSTERS        ? clustered_index((enum cluster)order, limit, NNZ, &rng)
                       : order == CLUSTERS     ? rng_below(&rng, limit)
                       : order == CLUSTERS + 1 ? rng_below(&rng, NNZ / 2)
                                               : i * 16;
        for (int twice = 0; twice < (limit > UINT32_MAX ? 1 : 2); twice++) {
            enum sar_index_type type = twice == 0 || limit > UINT32_MAX ? SAR_INDEX_UINT64 : SAR_INDEX_INT32;
            struct sar_coo_args coo = coo_make(&desc, type, index, NNZ, &rng);
            check_alone(&desc, &coo);
            coo_free(&coo);
        }
    }
    free(index);
}

/* One descent, one equal pair or one index out of range, at the boundaries of pieces or elsewhere. */
static void test_long_input_is_checked(void **state)
{
    enum { NNZ = 200003 };
    struct sar_vec_desc desc = vec_desc_make(SAR_FLOAT, SAR_SUM, NNZ + 7, 1);
    uint64_t *index = exact_alloc(NNZ * sizeof *index);
    struct rng rng = { 1 };
    (void)state;
    for (size_t i = 0; i < NNZ; i++)
        index[i] = i;
    for (size_t p = 0; p < 40; p++) {
        size_t place =
            p < 33 ? sar_parallel_bound(NNZ, 64, 1 + p, p / 2 + 1) : 1 + (size_t)rng_below(&rng, NNZ - 1);
        place = place == NNZ ? NNZ - 1 : place;
        uint64_t kept = index[place];
        index[place]--;
        struct sar_coo_args coo = coo_make(&desc, SAR_INDEX_UINT32, index, NNZ, &rng);
        check_alone(&desc, &coo);
        coo_free(&coo);
        index[place] = NNZ + 7 + p;
        coo = coo_make(&desc, SAR_INDEX_INT64, index, NNZ, &rng);
        struct sar_arena arena = { 0 };
        struct sar_spvec vec;
        long long bad;
        assert_int_equal(sar_canonicalize(&desc, &coo, &arena, &vec, &bad), SAR_BAD_INDEX);
        assert_int_equal(bad, index[place]);
        coo_free(&coo);
        sar_arena_free(&arena);
        index[place] = kept;
    }
    free(index);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types_counts_and_orders),
        cmocka_unit_test(test_long_input),
        cmocka_unit_test(test_clustered_input),
        cmocka_unit_test(test_memory_to_sort),
        cmocka_unit_test(test_ops_and_rows),
        cmocka_unit_test(test_equal_indices_keep_the_callers_order),
        cmocka_unit_test(test_indices_out_of_range),
        cmocka_unit_test(test_index_out_of_range_at_any_position),
        cmocka_unit_test(test_nothing_is_copied_without_need),
        cmocka_unit_test(test_no_elements),
        cmocka_unit_test(test_index_types),
        cmocka_unit_test(test_longest_input),
        cmocka_unit_test(test_long_input_is_checked),
    };
    return TEAMS_RUN(tests, NULL, NULL);
}
