/* SPDX-License-Identifier: BSD-3-Clause */
/* Cuts of several runs are at one index, hold no more than asked for, and as many as there can be. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include "generate.h"
#include "tensor/cut.h"

enum { ROOM = 400, MOST_RUNS = 9, TRIES = 30 };

static const uint64_t counts[] = { 1, 2, 100, 100003, 4294967297, ((uint64_t)1 << 40) + 7 };

static uint64_t index_at(const struct sar_shape *shape, const struct sar_run *run, size_t i)
{
    return sar_index_get(run->index, shape->index_size, i);
}

/* The least index that is not below the cut, and the largest that is. */
static void check_one_index(const struct sar_shape *shape, const struct sar_run *runs, size_t n,
                            const size_t *cut)
{
    uint64_t least = UINT64_MAX, most = 0;
    for (size_t r = 0; r < n; r++) {
        assert_true(cut[r] <= runs[r].nnz);
        if (cut[r] < runs[r].nnz && index_at(shape, &runs[r], cut[r]) < least)
            least = index_at(shape, &runs[r], cut[r]);
        if (cut[r] > 0 && index_at(shape, &runs[r], cut[r] - 1) + 1 > most)
            most = index_at(shape, &runs[r], cut[r] - 1) + 1;
    }
    assert_true(most <= least);
}

/* What would be below if the cut were behind the next index. */
static size_t one_more(const struct sar_shape *shape, const struct sar_run *runs, size_t n, const size_t *cut)
{
    uint64_t least = UINT64_MAX;
    size_t below = 0;
    for (size_t r = 0; r < n; r++)
        if (cut[r] < runs[r].nnz && index_at(shape, &runs[r], cut[r]) < least)
            least = index_at(shape, &runs[r], cut[r]);
    for (size_t r = 0; r < n; r++)
        below += cut[r] + (cut[r] < runs[r].nnz && index_at(shape, &runs[r], cut[r]) == least);
    return below;
}

static void check_cut(const struct sar_shape *shape, const struct sar_run *runs, size_t n,
                      struct sar_cut_aim aim)
{
    size_t cut[MOST_RUNS], spare[2 * MOST_RUNS], below = 0, total = 0;
    sar_runs_cut(shape, runs, n, aim, cut, spare);
    check_one_index(shape, runs, n, cut);
    for (size_t r = 0; r < n; r++) {
        below += cut[r];
        total += runs[r].nnz;
    }
    assert_true(below <= aim.target);
    if (below < total && aim.target - below > aim.slack)
        assert_true(one_more(shape, runs, n, cut) > aim.target);
}

static void test_cuts(void **state)
{
    struct dice dice = { 11 };
    uint64_t index[ROOM];
    (void)state;
    for (size_t c = 0; c < LENGTH(counts); c++)
        for (size_t n = 1; n <= MOST_RUNS; n++) {
            struct sar_shape shape = shape_make(SAR_FLOAT, SAR_SUM, counts[c], 1);
            struct sar_run runs[MOST_RUNS];
            size_t total = 0;
            for (size_t r = 0; r < n; r++) {
                size_t p = (size_t)dice_below(&dice, PATTERNS);
                size_t nnz = patterns[p].choose(&patterns[p], counts[c], ROOM, &dice, index);
                runs[r] = run_make(&shape, index, nnz, VALUES_SPECIAL, &dice);
                total += nnz;
            }
            for (int i = 0; i < TRIES; i++)
                check_cut(&shape, runs, n,
                          (struct sar_cut_aim){ (size_t)dice_below(&dice, total + 2),
                                                i % 2 == 0 ? 0 : (size_t)dice_below(&dice, 20) });
            for (size_t r = 0; r < n; r++)
                run_free(&runs[r]);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_cuts) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
