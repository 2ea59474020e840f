/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests that the order of the benchmark's rows is fair. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "bench/perf/interleave.h"

enum { MOST = 24 };

struct counts {
    int at[MOST][MOST];    /* count of each row at each position of an iteration */
    int after[MOST][MOST]; /* count of each row directly after each other row, in one iteration */
    int joint[MOST][MOST]; /* count of each row directly after the last row of the previous iteration */
};

static struct counts counts_of(int from, int iterations, int n)
{
    struct counts counts;
    memset(&counts, 0, sizeof counts);
    for (int i = from; i < from + iterations; i++) {
        for (int k = 0; k < n; k++)
            counts.at[perf_interleave(k, i, n)][k]++;
        for (int k = 1; k < n; k++)
            counts.after[perf_interleave(k, i, n)][perf_interleave(k - 1, i, n)]++;
        counts.joint[perf_interleave(0, i + 1, n)][perf_interleave(n - 1, i, n)]++;
    }
    return counts;
}

static void check_fair(int from, int n)
{
    int times = n % 2 == 0 ? 1 : 2;
    struct counts counts = counts_of(from, n * times, n);
    for (int r = 0; r < n; r++)
        for (int other = 0; other < n; other++) {
            assert_int_equal(counts.at[r][other], times);
            assert_int_equal(counts.after[r][other], r == other ? 0 : times);
        }
}

static void test_fair(void **state)
{
    (void)state;
    for (int n = 1; n <= MOST; n++)
        for (int from = 0; from <= n; from++)
            check_fair(from, n);
}

/* No row is favoured at the boundaries of iterations. */
static void test_joints(void **state)
{
    (void)state;
    for (int n = 3; n <= MOST; n++) {
        struct counts counts = counts_of(0, 2 * n, n);
        for (int r = 0; r < n; r++)
            for (int other = 0; other < n; other++)
                assert_in_range(counts.joint[r][other], 0, 3);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fair),
        cmocka_unit_test(test_joints),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
