/* SPDX-License-Identifier: BSD-3-Clause */
/* Dense buffers from runs: each byte is what the obvious loop writes, and none beside the buffer is touched.
 * Some are so large that they are streamed to memory. The same where elements change and all else stays, and
 * where runs that have elements in common are folded on the way. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "generate.h"
#include "tensor/expand.h"
#include "tensor/folding.h"
#include "tensor/stretch.h"

enum { MARGIN = 64, MOST_RUNS = 5, ROOM = 60000 };

static const unsigned char DIRT = 0x5a;

static const struct {
    enum sar_base base;
    size_t row;
} elements[] = {
    { SAR_FLOAT, 1 },  { SAR_DOUBLE, 1 },   { SAR_FP16, 1 }, { SAR_INT32, 3 }, { SAR_FLOAT, 16 },
    { SAR_FLOAT, 64 }, { SAR_DOUBLE, 513 }, { SAR_INT8, 1 }, { SAR_UINT8, 3 }, { SAR_UINT8, 8 }
};

static const size_t bytes[] = { 0, 1000, 100000, 4 << 20, (4 << 20) + 4096, (6 << 20) + 12345 };

/* Cut a run anywhere. */
static size_t cut(const struct sar_shape *shape, const struct sar_run *run, struct dice *dice,
                  struct sar_run *pieces)
{
    size_t n = 1 + (size_t)dice_below(dice, MOST_RUNS), from = 0;
    for (size_t i = 0; i < n; i++) {
        size_t to = i + 1 == n ? run->nnz : from + (size_t)dice_below(dice, run->nnz - from + 1);
        pieces[i] = sar_run_slice(shape, run, from, to);
        from = to;
    }
    return n;
}

static void check_bytes(const struct sar_shape *shape, const struct sar_run *run, const unsigned char *buf)
{
    size_t size = shape->element_size, done = 0;
    unsigned char *zeros = exact(MARGIN + (size_t)shape->count * size);
    memset(zeros, 0, (size_t)shape->count * size);
    for (size_t i = 0; i < run->nnz; i++) {
        size_t at = (size_t)sar_index_get(run->index, shape->index_size, i) * size;
        assert_true(memcmp(buf + done, zeros, at - done) == 0);
        assert_true(memcmp(buf + at, (const char *)run->value + i * size, size) == 0);
        done = at + size;
    }
    assert_true(memcmp(buf + done, zeros, (size_t)shape->count * size - done) == 0);
    free(zeros);
}

static void check_margin(const unsigned char *margin)
{
    for (size_t i = 0; i < MARGIN; i++)
        assert_int_equal(margin[i], DIRT);
}

/* Give elements of a run another value, or none. */
static void make_old(const struct sar_shape *shape, const struct sar_run *run, struct dice *dice,
                     unsigned char *buf)
{
    for (size_t i = 0; i < run->nnz; i++) {
        unsigned char *at =
            buf + (size_t)sar_index_get(run->index, shape->index_size, i) * shape->element_size;
        memset(at, dice_below(dice, 2) == 0 ? 0 : DIRT, shape->element_size);
    }
}

/* `shift` is where the buffer begins, in basic values from an aligned address. */
static void check(struct sar_shape shape, size_t pattern, size_t shift, struct dice *dice)
{
    size_t all = (size_t)shape.count * shape.element_size, gap = MARGIN + shift * shape.kernels->size;
    uint64_t *index = exact(ROOM * sizeof *index);
    size_t most = ROOM * 4 / shape.element_size;
    size_t nnz = shape.count == 0 ? 0
                                  : patterns[pattern].choose(&patterns[pattern], shape.count,
                                                             most < ROOM ? most : ROOM, dice, index);
    struct sar_run run = run_make(&shape, index, nnz, VALUES_INEXACT, dice), pieces[MOST_RUNS];
    unsigned char *memory = exact(gap + all + MARGIN);
    memset(memory, DIRT, gap + all + MARGIN);
    sar_dense_expand(&shape, pieces, cut(&shape, &run, dice, pieces), memory + gap);
    check_bytes(&shape, &run, memory + gap);
    make_old(&shape, &run, dice, memory + gap);
    sar_dense_update(&shape, pieces, cut(&shape, &run, dice, pieces), memory + gap);
    check_bytes(&shape, &run, memory + gap);
    check_margin(memory + gap - MARGIN);
    check_margin(memory + gap + all);
    free(memory);
    free(index);
    run_free(&run);
}

static void test_expand(void **state)
{
    struct dice dice = { 3 };
    (void)state;
    for (size_t k = 0; k < LENGTH(elements) * LENGTH(bytes) * PATTERNS; k++) {
        size_t kind = k % LENGTH(elements), size = bytes[k / LENGTH(elements) % LENGTH(bytes)];
        struct sar_shape shape = shape_make(elements[kind].base, SAR_SUM, 1, elements[kind].row);
        shape.count = size / shape.element_size;
        shape.index_size = dice_below(&dice, 4) == 0 ? 8 : 4;
        check(shape, k / LENGTH(elements) / LENGTH(bytes), (size_t)dice_below(&dice, 20), &dice);
    }
}

static size_t make_runs(const struct sar_shape *shape, struct dice *dice, struct sar_run runs[])
{
    size_t n = 1 + (size_t)dice_below(dice, SAR_FOLDED), most = ROOM / 4 / shape->element_size / n + 1;
    uint64_t *index = exact(most * sizeof *index);
    for (size_t r = 0; r < n; r++) {
        const struct pattern *pattern = &patterns[dice_below(dice, PATTERNS)];
        size_t nnz = shape->count == 0 ? 0 : pattern->choose(pattern, shape->count, most, dice, index);
        runs[r] = run_make(shape, index, nnz, VALUES_INEXACT, dice);
    }
    free(index);
    return n;
}

static void check_fold(struct sar_shape shape, size_t shift, struct dice *dice)
{
    size_t all = (size_t)shape.count * shape.element_size, gap = MARGIN + shift * shape.element_size;
    struct sar_run runs[SAR_FOLDED];
    size_t n = make_runs(&shape, dice, runs);
    struct sar_run expected = obvious_reduce(&shape, runs, n);
    unsigned char *memory = exact(gap + all + MARGIN);
    memset(memory, DIRT, gap + all + MARGIN);
    if (sar_dense_folds(&shape, memory + gap, n)) {
        sar_dense_fold(&shape, runs, n, NULL, memory + gap);
        check_bytes(&shape, &expected, memory + gap);
        memset(memory + gap, 0, all);
        make_old(&shape, &runs[n - 1], dice, memory + gap);
        sar_dense_fold(&shape, runs, n, &runs[n - 1], memory + gap);
        check_bytes(&shape, &expected, memory + gap);
    }
    check_margin(memory + gap - MARGIN);
    check_margin(memory + gap + all);
    free(memory);
    run_free(&expected);
    for (size_t r = 0; r < n; r++)
        run_free(&runs[r]);
}

static void test_fold(void **state)
{
    static const enum sar_op ops[] = { SAR_SUM, SAR_BOR, SAR_BXOR };
    static const struct {
        enum sar_base base;
        size_t row;
    } kinds[] = { { SAR_FLOAT, 1 }, { SAR_DOUBLE, 1 }, { SAR_UINT32, 1 }, { SAR_INT64, 1 },
                  { SAR_INT8, 1 },  { SAR_FLOAT, 16 }, { SAR_UINT16, 4 }, { SAR_DOUBLE, 2 } };
    struct dice dice = { 4 };
    (void)state;
    for (size_t k = 0; k < 3 * LENGTH(kinds) * LENGTH(bytes); k++) {
        size_t kind = k % LENGTH(kinds), size = bytes[k / LENGTH(kinds) % LENGTH(bytes)];
        enum sar_op op =
            sar_kernels_of(kinds[kind].base, SAR_BOR) == NULL ? SAR_SUM : ops[dice_below(&dice, 3)];
        struct sar_shape shape = shape_make(kinds[kind].base, op, 1, kinds[kind].row);
        shape.count = size / shape.element_size;
        shape.index_size = dice_below(&dice, 4) == 0 ? 8 : 4;
        check_fold(shape, (size_t)dice_below(&dice, 20), &dice);
    }
}

enum { EACH = 64 / sizeof(float), STEP = 21 /* a line in so many has an element */ };

/* What is at a place, counted from where a line begins. */
static float sparse_line_value(size_t at)
{
    size_t line = at / EACH, k = line / STEP;
    return line % STEP != 0 ? 7 : at % EACH == (k + EACH - 1) % EACH ? (float)(k + 1) : 0;
}

/* Lines that no run has elements in are left alone, whatever they hold, but for those at the end that are not
 * a whole block. The buffer begins in a line. */
static void check_sparse_lines(size_t begin, bool folded)
{
    enum { COUNT = (5 << 20) / sizeof(float), NNZ = COUNT / EACH / STEP + 1, TAIL = 4096 };
    struct sar_shape shape = shape_make(SAR_FLOAT, SAR_SUM, COUNT, 1);
    struct sar_run run = run_room(&shape, NNZ);
    unsigned char *memory = exact((COUNT + EACH) * sizeof(float) + 64);
    float *line = (void *)(memory + (-(uintptr_t)memory % 64)), *buf = line + begin;
    for (size_t k = 0; k < NNZ; k++) {
        ((uint32_t *)run.index)[k] = (uint32_t)(k * STEP * EACH + (k + EACH - 1) % EACH - begin);
        ((float *)run.value)[k] = (float)(k + 1);
    }
    for (size_t i = 0; i < COUNT; i++)
        buf[i] = (i + begin) / EACH % STEP == 0 ? 0 : 7;
    if (folded)
        sar_dense_fold(&shape, &run, 1, &run, buf);
    else
        sar_dense_update(&shape, &run, 1, buf);
    for (size_t at = begin; at < COUNT - TAIL; at++)
        assert_true(line[at] == sparse_line_value(at));
    free(memory);
    run_free(&run);
}

static void test_lines_without_elements(void **state)
{
    (void)state;
    for (size_t begin = 0; begin < EACH; begin += 5) {
        check_sparse_lines(begin, false);
        check_sparse_lines(begin, true);
    }
}

/* Where zeros cannot be folded into, or sums are wider than what comes of them. */
static void test_what_is_not_folded(void **state)
{
    struct sar_shape shape = shape_make(SAR_FLOAT, SAR_SUM, 1, 1);
    (void)state;
    assert_true(sar_dense_folds(&shape, NULL, SAR_FOLDED));
    assert_false(sar_dense_folds(&shape, NULL, SAR_FOLDED + 1));
    assert_false(sar_dense_folds(&shape, (const void *)(uintptr_t)2, 2));
    shape.absent_is_zero = true;
    assert_false(sar_dense_folds(&shape, NULL, 2));
    shape = shape_make(SAR_FLOAT, SAR_MAX, 1, 1);
    assert_false(sar_dense_folds(&shape, NULL, 2));
    shape = shape_make(SAR_BF16, SAR_SUM, 1, 1);
    assert_false(sar_dense_folds(&shape, NULL, 2));
    shape = shape_make(SAR_FLOAT, SAR_SUM, 1, 3);
    assert_false(sar_dense_folds(&shape, NULL, 2));
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_expand), cmocka_unit_test(test_fold),
                                        cmocka_unit_test(test_lines_without_elements),
                                        cmocka_unit_test(test_what_is_not_folded) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
