/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests a reduction that counts before it writes: it equals a plain reduction, has the announced number of
 * elements, and writes no byte after them. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "generate.h"
#include "teams.h"
#include "vector/reduce.h"

enum { VECS_MAX = 9, ROOM = 3000 };

/* Sizes at which the bits are kept, are not kept, and are kept depending on the pattern. */
static const struct {
    uint64_t count, start;
} windows[] = {
    { 1, 0 },
    { 64, 0 },
    { 4000, 17 },
    { 100000, 12345 },
    { 10000000, 0 },
    { 4294967296, 4294967296 - 5000 },
    { ((uint64_t)1 << 40) + 7, ((uint64_t)1 << 40) - 3000 },
    { (uint64_t)1 << 63, 0 },
    { INT64_MAX, INT64_MAX - 100000 },
};

static void check(const struct sar_vec_desc *desc, const struct sar_spvec *vecs, size_t n,
                  unsigned index_size)
{
    struct sar_arena arena = { 0 };
    struct sar_reduction reduction;
    struct sar_spvec expected = reference_reduce(desc, vecs, n);
    struct sar_vec_desc wide = *desc;
    assert_int_equal(sar_reduce_count(desc, vecs, n, index_size, &arena, &reduction), SAR_OK);
    assert_int_equal(reduction.nnz, expected.nnz);
    wide.index_size = index_size;
    struct sar_spvec out = spvec_alloc(&wide, reduction.nnz);
    sar_reduce_write(&reduction, &out);
    for (size_t i = 0; i < out.nnz; i++)
        assert_true(sar_index_get(out.index, index_size, i) ==
                    sar_index_get(expected.index, desc->index_size, i));
    struct sar_spvec same = { expected.index, out.value, out.nnz };
    assert_true(spvec_equal(desc, &same, &expected));
    spvec_free(&out);
    spvec_free(&expected);
    sar_arena_free(&arena);
}

static void test_counted(void **state)
{
    static const enum sar_dtype bases[] = { SAR_FLOAT, SAR_DOUBLE, SAR_BF16, SAR_UINT32,
                                            SAR_FP16,  SAR_INT64,  SAR_INT16 };
    struct rng rng = { 9 };
    uint64_t index[ROOM];
    (void)state;
    for (size_t k = 0; k < LENGTH(windows) * PATTERNS * VECS_MAX; k++) {
        size_t w = k % LENGTH(windows), n = k / LENGTH(windows) % VECS_MAX + 1;
        uint64_t length = windows[w].count - windows[w].start;
        struct sar_vec_desc desc =
            vec_desc_make(bases[k / 3 % LENGTH(bases)], SAR_SUM, windows[w].count, 1 + k % 5 % 2 * 2);
        struct sar_spvec vecs[VECS_MAX];
        desc.absent_is_zero = k % 3 == 0;
        for (size_t r = 0; r < n; r++) {
            const struct pattern *pattern = &patterns[(k / LENGTH(windows) / VECS_MAX + r) % PATTERNS];
            size_t nnz = pattern->choose(pattern, length, ROOM, &rng, index);
            for (size_t i = 0; i < nnz; i++)
                index[i] += windows[w].start;
            vecs[r] = spvec_make(&desc, index, nnz, VALUES_SPECIAL, &rng);
        }
        check(&desc, vecs, n, k % 4 == 0 ? 8 : desc.index_size);
        for (size_t r = 0; r < n; r++)
            spvec_free(&vecs[r]);
    }
}

/* More close indices than 16 bits can count, and a distant one, so that one tile holds all the former. */
static void test_close_together(void **state)
{
    enum { NEIGHBOURS = 70000, FAR = 2900000, COUNT = 3000000 };
    struct sar_vec_desc desc = vec_desc_make(SAR_FLOAT, SAR_SUM, COUNT, 1);
    struct rng rng = { 5 };
    uint64_t *index = exact_alloc((NEIGHBOURS + 1) * sizeof *index), last = FAR;
    (void)state;
    for (size_t i = 0; i < NEIGHBOURS; i++)
        index[i] = i;
    index[NEIGHBOURS] = FAR;
    struct sar_spvec vecs[] = { spvec_make(&desc, index, NEIGHBOURS + 1, VALUES_SPECIAL, &rng),
                                spvec_make(&desc, &last, 1, VALUES_SPECIAL, &rng),
                                spvec_make(&desc, index, NEIGHBOURS, VALUES_SPECIAL, &rng) };
    struct sar_spvec expected = reference_reduce(&desc, vecs, LENGTH(vecs)), out = spvec_alloc(&desc, COUNT);
    struct sar_arena arena = { 0 };
    check(&desc, vecs, LENGTH(vecs), 4);
    assert_int_equal(sar_reduce(&desc, vecs, LENGTH(vecs), &arena, &out), SAR_OK);
    assert_true(spvec_equal(&desc, &out, &expected));
    for (size_t r = 0; r < LENGTH(vecs); r++)
        spvec_free(&vecs[r]);
    spvec_free(&expected);
    spvec_free(&out);
    free(index);
    sar_arena_free(&arena);
}

/* One index that most elements have, so that several ranges would begin within them. */
static void test_repeated(void **state)
{
    enum { COUNT = 1000, VECS = 5 };
    struct sar_vec_desc desc = vec_desc_make(SAR_INT64, SAR_SUM, COUNT, 1);
    struct rng rng = { 3 };
    uint64_t index[ROOM];
    (void)state;
    for (uint64_t most = 0; most < COUNT; most += 37) {
        struct sar_spvec vecs[VECS];
        for (size_t r = 0; r < VECS; r++) {
            size_t nnz = 0;
            for (uint64_t i = 0; i < COUNT; i += 1 + rng_below(&rng, 20)) {
                index[nnz++] = i;
                for (int times = 0; i <= most && most < i + 20 && times < 500; times++)
                    index[nnz++] = i;
            }
            vecs[r] = spvec_make(&desc, index, nnz, VALUES_EXACT, &rng);
        }
        check(&desc, vecs, VECS, 4);
        for (size_t r = 0; r < VECS; r++)
            spvec_free(&vecs[r]);
    }
}

/* Vecs of which each index is in one. */
static void test_disjoint(void **state)
{
    enum { COUNT = 50000, VECS = 7 };
    struct sar_vec_desc desc = vec_desc_make(SAR_FLOAT, SAR_SUM, COUNT, 1);
    struct rng rng = { 11 };
    (void)state;
    desc.absent_is_zero = false;
    for (uint64_t step = 1; step < COUNT; step = 3 * step + 1) {
        static uint64_t index[VECS][COUNT];
        struct sar_spvec vecs[VECS], out = spvec_alloc(&desc, COUNT);
        struct sar_arena arena = { 0 };
        size_t nnz[VECS] = { 0 };
        for (uint64_t i = rng_below(&rng, step); i < COUNT; i += 1 + rng_below(&rng, step)) {
            uint64_t vec = step % 2 == 0 ? rng_below(&rng, VECS) : i * VECS / COUNT;
            index[vec][nnz[vec]++] = i;
        }
        for (size_t r = 0; r < VECS; r++)
            vecs[r] = spvec_make(&desc, index[r], nnz[r], VALUES_SPECIAL, &rng);
        struct sar_spvec expected = reference_reduce(&desc, vecs, VECS);
        assert_int_equal(sar_reduce_disjoint(&desc, vecs, VECS, &arena, &out), SAR_OK);
        assert_true(spvec_equal(&desc, &out, &expected));
        if (nnz[1] > 0) {
            struct sar_spvec twice[] = { vecs[1], vecs[1] }, room = spvec_alloc(&desc, 2 * nnz[1]);
            assert_int_equal(sar_reduce_disjoint(&desc, twice, 2, &arena, &room), SAR_CORRUPT);
            spvec_free(&room);
        }
        for (size_t r = 0; r < VECS; r++)
            spvec_free(&vecs[r]);
        spvec_free(&out);
        spvec_free(&expected);
        sar_arena_free(&arena);
    }
}

static struct sar_spvec every(size_t step, size_t nnz)
{
    static const struct sar_vec_desc desc = { .index_size = sizeof(uint32_t), .element_size = sizeof(float) };
    struct sar_spvec vec = spvec_alloc(&desc, nnz);
    for (size_t i = 0; i < nnz; i++) {
        ((uint32_t *)vec.index)[i] = (uint32_t)(i * step);
        ((float *)vec.value)[i] = (float)i;
    }
    return vec;
}

/* Memory between counting and writing is at most that of the vectors. A reduction into existing memory needs
 * a few tiles, at any length. */
static void test_memory(void **state)
{
    enum { NNZ = 100000, VECS = 5, TILES = 400 << 10 };
    static const size_t steps[] = { 2, 40, 100, 200, 220, 310, 1000 };
    (void)state;
    for (size_t k = 0; k < LENGTH(steps); k++) {
        struct sar_vec_desc desc = vec_desc_make(SAR_FLOAT, SAR_SUM, steps[k] * NNZ, 1);
        struct sar_spvec vec = every(steps[k], NNZ), vecs[VECS], out;
        struct sar_reduction reduction;
        struct sar_arena counted = { 0 }, direct = { 0 };
        for (size_t r = 0; r < VECS; r++)
            vecs[r] = vec;
        out = spvec_alloc(&desc, sar_reduce_max_nnz(&desc, vecs, VECS));
        assert_int_equal(sar_reduce_count(&desc, vecs, VECS, 4, &counted, &reduction), SAR_OK);
        assert_int_equal(reduction.nnz, NNZ);
        assert_true(counted.used <= VECS * NNZ * (sizeof(uint32_t) + sizeof(float)) + TILES);
        assert_int_equal(sar_reduce(&desc, vecs, VECS, &direct, &out), SAR_OK);
        assert_int_equal(out.nnz, NNZ);
        assert_true(direct.used <= TILES);
        spvec_free(&vec);
        spvec_free(&out);
        sar_arena_free(&counted);
        sar_arena_free(&direct);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_counted), cmocka_unit_test(test_close_together),
                                        cmocka_unit_test(test_repeated), cmocka_unit_test(test_disjoint) };
    const struct CMUnitTest on_one_thread[] = { cmocka_unit_test(test_memory) };
    int failures = cmocka_run_group_tests(on_one_thread, NULL, NULL);
    return failures + TEAMS_RUN_SMALL(tests, NULL, NULL);
}
