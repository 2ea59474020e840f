/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests the reduction to a bitmap against sar_reduce and the encoding of its result. Vectors, values and
 * bitmap have memory of exactly their size. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "generate.h"
#include "teams.h"
#include "vector/pair_sum.h"
#include "vector/reduce.h"
#include "vector/reduce_bitmap.h"
#include "wire/wire.h"

enum { VECS_MAX = 16, ROOM = 4000 };

static const enum sar_dtype dtypes[] = {
    SAR_FLOAT, SAR_DOUBLE, SAR_INT32, SAR_INT64, SAR_UINT32, SAR_UINT64
};

/* Near the ends of bytes, words and tiles. */
static const uint64_t counts[] = { 1, 7, 8, 9, 63, 64, 65, 1000, 8191, 8192, 8193, 20000, 100003 };

struct trial {
    struct sar_vec_desc desc;
    struct sar_spvec vecs[VECS_MAX];
    size_t n;
};

static struct trial make(enum sar_dtype dtype, uint64_t count, size_t n, size_t first, enum values values)
{
    struct trial t = { .desc = vec_desc_make(dtype, SAR_SUM, count, 1), .n = n };
    struct rng rng = { count + n + first };
    uint64_t *index = exact_alloc(ROOM * sizeof *index);
    for (size_t r = 0; r < n; r++) {
        const struct pattern *pattern = &patterns[(first + r) % PATTERNS];
        size_t nnz = pattern->choose(pattern, count, ROOM, &rng, index);
        t.vecs[r] = spvec_make(&t.desc, index, nnz, values, &rng);
    }
    free(index);
    return t;
}

static void end(struct trial *t)
{
    for (size_t r = 0; r < t->n; r++)
        spvec_free(&t->vecs[r]);
}

static void check(const struct trial *t)
{
    struct sar_arena arena = { 0 };
    struct sar_spvec expected;
    struct sar_bitmap_reduction reduction;
    struct sar_wire_layout layout = { t->desc.count, t->desc.element_size, 1, 4, false, SAR_PRECISION_FULL };
    size_t bytes = sar_bitmap_bytes(t->desc.count);
    assert_int_equal(sar_reduce_alloc(&t->desc, t->vecs, t->n, &arena, &expected), SAR_OK);
    assert_int_equal(sar_reduce_bitmap_count(&t->desc, t->vecs, t->n, &arena, &reduction), SAR_OK);
    assert_int_equal(reduction.nnz, expected.nnz);
    struct sar_spvec out = spvec_alloc(&t->desc, reduction.nnz);
    unsigned char *bitmap = exact_alloc(bytes);
    sar_reduce_bitmap_write(&reduction, out.value, bitmap);
    assert_int_equal(sar_bitmap_decode(&layout, bitmap, reduction.nnz, out.index), SAR_OK);
    assert_true(spvec_equal(&t->desc, &out, &expected));
    spvec_free(&out);
    free(bitmap);
    sar_arena_free(&arena);
}

static void test_types_and_counts(void **state)
{
    (void)state;
    for (size_t d = 0; d < LENGTH(dtypes); d++) {
        for (size_t c = 0; c < LENGTH(counts); c++) {
            for (size_t first = 0; first < PATTERNS; first++) {
                struct trial t = make(dtypes[d], counts[c], 1 + (first * 7 + c) % VECS_MAX, first,
                                      first % 2 == 0 ? VALUES_INEXACT : VALUES_SPECIAL);
                check(&t);
                end(&t);
            }
        }
    }
}

/* Chosen for plain sums with one element for eight slots, and for nothing else. Two vecs are
 * merged instead where that works. */
static void test_choice(void **state)
{
    (void)state;
    uint64_t index[1000];
    struct rng rng = { 1 };
    for (size_t i = 0; i < 1000; i++)
        index[i] = i * 3;
    struct sar_vec_desc desc = vec_desc_make(SAR_FLOAT, SAR_SUM, 16000, 1), other = desc;
    struct sar_spvec vecs[3];
    for (size_t i = 0; i < LENGTH(vecs); i++)
        vecs[i] = spvec_make(&desc, index, 1000, VALUES_EXACT, &rng);
    assert_true(sar_reduces_to_bitmap(&desc, vecs, 3));
    assert_int_equal(sar_reduces_to_bitmap(&desc, vecs, 2), !sar_pair_sum_works(&desc, 2, 4, desc.count));
    assert_false(sar_reduces_to_bitmap(&desc, vecs, 1));
    other.absent_is_zero = true;
    assert_false(sar_reduces_to_bitmap(&other, vecs, 3));
    other = vec_desc_make(SAR_FLOAT, SAR_MAX, 16000, 1);
    assert_false(sar_reduces_to_bitmap(&other, vecs, 3));
    other = vec_desc_make(SAR_FLOAT, SAR_SUM, 16000, 2);
    assert_false(sar_reduces_to_bitmap(&other, vecs, 3));
    other = vec_desc_make(SAR_BF16, SAR_SUM, 16000, 1);
    assert_false(sar_reduces_to_bitmap(&other, vecs, 3));
    for (size_t i = 0; i < LENGTH(vecs); i++)
        spvec_free(&vecs[i]);
}

/* A range of the slots is clustered, the same number of elements all over them is not. */
static void test_clustered(void **state)
{
    (void)state;
    for (size_t step = 1; step <= 4; step += 3) {
        uint64_t index[2000];
        struct rng rng = { step };
        struct sar_arena arena = { 0 };
        struct sar_bitmap_reduction reduction;
        struct sar_vec_desc desc = vec_desc_make(SAR_FLOAT, SAR_SUM, 8000, 1);
        for (size_t i = 0; i < LENGTH(index); i++)
            index[i] = i * step;
        struct sar_spvec vec = spvec_make(&desc, index, LENGTH(index), VALUES_EXACT, &rng);
        assert_int_equal(sar_reduce_bitmap_count(&desc, &vec, 1, &arena, &reduction), SAR_OK);
        assert_int_equal(reduction.clustered, step == 1);
        spvec_free(&vec);
        sar_arena_free(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types_and_counts),
        cmocka_unit_test(test_choice),
        cmocka_unit_test(test_clustered),
    };
    return TEAMS_RUN_SMALL(tests, NULL, NULL);
}
