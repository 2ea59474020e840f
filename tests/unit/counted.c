/* SPDX-License-Identifier: BSD-3-Clause */
/* A reduction that is counted before it is written gives what the obvious one gives, in as many elements as
 * it said, and writes no byte behind them. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "generate.h"
#include "tensor/reduce.h"

enum { MOST_RUNS = 9, ROOM = 3000 };

/* Where bits are kept and where they are not, also for one pattern but not for another. */
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

static void check(const struct sar_shape *shape, const struct sar_run *runs, size_t n, unsigned index_size)
{
    struct sar_arena arena = { 0 };
    struct sar_reduction reduction;
    struct sar_run expected = obvious_reduce(shape, runs, n);
    struct sar_shape wide = *shape;
    assert_int_equal(sar_reduce_count(shape, runs, n, index_size, &arena, &reduction), SAR_OK);
    assert_int_equal(reduction.nnz, expected.nnz);
    wide.index_size = index_size;
    struct sar_run out = run_room(&wide, reduction.nnz);
    sar_reduce_write(&reduction, &out);
    for (size_t i = 0; i < out.nnz; i++)
        assert_true(sar_index_get(out.index, index_size, i) ==
                    sar_index_get(expected.index, shape->index_size, i));
    struct sar_run same = { expected.index, out.value, out.nnz };
    assert_true(run_equal(shape, &same, &expected));
    run_free(&out);
    run_free(&expected);
    sar_arena_free(&arena);
}

static void test_counted(void **state)
{
    static const enum sar_base bases[] = { SAR_FLOAT, SAR_DOUBLE, SAR_BF16, SAR_UINT32,
                                           SAR_FP16,  SAR_INT64,  SAR_INT16 };
    struct dice dice = { 9 };
    uint64_t index[ROOM];
    (void)state;
    for (size_t k = 0; k < LENGTH(windows) * PATTERNS * MOST_RUNS; k++) {
        size_t w = k % LENGTH(windows), n = k / LENGTH(windows) % MOST_RUNS + 1;
        uint64_t length = windows[w].count - windows[w].start;
        struct sar_shape shape =
            shape_make(bases[k / 3 % LENGTH(bases)], SAR_SUM, windows[w].count, 1 + k % 5 % 2 * 2);
        struct sar_run runs[MOST_RUNS];
        shape.absent_is_zero = k % 3 == 0;
        for (size_t r = 0; r < n; r++) {
            const struct pattern *pattern = &patterns[(k / LENGTH(windows) / MOST_RUNS + r) % PATTERNS];
            size_t nnz = pattern->choose(pattern, length, ROOM, &dice, index);
            for (size_t i = 0; i < nnz; i++)
                index[i] += windows[w].start;
            runs[r] = run_make(&shape, index, nnz, VALUES_SPECIAL, &dice);
        }
        check(&shape, runs, n, k % 4 == 0 ? 8 : shape.index_size);
        for (size_t r = 0; r < n; r++)
            run_free(&runs[r]);
    }
}

/* More neighbours than 16 bits count, and one far off, so that a tile holds all of the former. */
static void test_close_together(void **state)
{
    enum { NEIGHBOURS = 70000, FAR = 2900000, COUNT = 3000000 };
    struct sar_shape shape = shape_make(SAR_FLOAT, SAR_SUM, COUNT, 1);
    struct dice dice = { 5 };
    uint64_t *index = exact((NEIGHBOURS + 1) * sizeof *index), last = FAR;
    (void)state;
    for (size_t i = 0; i < NEIGHBOURS; i++)
        index[i] = i;
    index[NEIGHBOURS] = FAR;
    struct sar_run runs[] = { run_make(&shape, index, NEIGHBOURS + 1, VALUES_SPECIAL, &dice),
                              run_make(&shape, &last, 1, VALUES_SPECIAL, &dice),
                              run_make(&shape, index, NEIGHBOURS, VALUES_SPECIAL, &dice) };
    struct sar_run expected = obvious_reduce(&shape, runs, LENGTH(runs)), out = run_room(&shape, COUNT);
    struct sar_arena arena = { 0 };
    check(&shape, runs, LENGTH(runs), 4);
    assert_int_equal(sar_reduce(&shape, runs, LENGTH(runs), &arena, &out), SAR_OK);
    assert_true(run_equal(&shape, &out, &expected));
    for (size_t r = 0; r < LENGTH(runs); r++)
        run_free(&runs[r]);
    run_free(&expected);
    run_free(&out);
    free(index);
    sar_arena_free(&arena);
}

static struct sar_run every(size_t step, size_t nnz)
{
    static const struct sar_shape shape = { .index_size = sizeof(uint32_t), .element_size = sizeof(float) };
    struct sar_run run = run_room(&shape, nnz);
    for (size_t i = 0; i < nnz; i++) {
        ((uint32_t *)run.index)[i] = (uint32_t)(i * step);
        ((float *)run.value)[i] = (float)i;
    }
    return run;
}

/* What is kept between counting and writing takes no more than the runs; and a reduction into memory that is
 * there needs some tiles, however long the runs are. */
static void test_memory(void **state)
{
    enum { NNZ = 100000, RUNS = 5, TILES = 400 << 10 };
    static const size_t steps[] = { 2, 40, 100, 200, 220, 310, 1000 };
    (void)state;
    for (size_t k = 0; k < LENGTH(steps); k++) {
        struct sar_shape shape = shape_make(SAR_FLOAT, SAR_SUM, steps[k] * NNZ, 1);
        struct sar_run run = every(steps[k], NNZ), runs[RUNS], out = run_room(&shape, NNZ);
        struct sar_reduction reduction;
        struct sar_arena counted = { 0 }, direct = { 0 };
        for (size_t r = 0; r < RUNS; r++)
            runs[r] = run;
        assert_int_equal(sar_reduce_count(&shape, runs, RUNS, 4, &counted, &reduction), SAR_OK);
        assert_int_equal(reduction.nnz, NNZ);
        assert_true(counted.taken <= RUNS * NNZ * (sizeof(uint32_t) + sizeof(float)) + TILES);
        assert_int_equal(sar_reduce(&shape, runs, RUNS, &direct, &out), SAR_OK);
        assert_int_equal(out.nnz, NNZ);
        assert_true(direct.taken <= TILES);
        run_free(&run);
        run_free(&out);
        sar_arena_free(&counted);
        sar_arena_free(&direct);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_counted), cmocka_unit_test(test_close_together),
                                        cmocka_unit_test(test_memory) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
