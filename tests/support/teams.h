/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of code that uses several threads: all of them run with each number of threads. */

#ifndef SAR_TESTS_SUPPORT_TEAMS_H
#define SAR_TESTS_SUPPORT_TEAMS_H

#include <stddef.h>

#include "array_length.h"
#include "base/parallel.h"

/** Numbers of threads. One comes first, so that a test can compare with its result. */
static const int teams[] = { 1, 2, 3, 8 };

/** From now on the loops of the calling thread have so many threads. */
static inline void team_set(int threads)
{
    sar_parallel_begin((struct sar_parallel){ .threads = threads });
}

/** Runs a table of tests with each number of threads; evaluates to the number of failures. */
#define TEAMS_RUN(tests, set_up, tear_down)                                     \
    ({                                                                          \
        int teams_failures = 0;                                                 \
        for (size_t teams_i = 0; teams_i < LENGTH(teams); teams_i++) {          \
            team_set(teams[teams_i]);                                           \
            teams_failures += cmocka_run_group_tests(tests, set_up, tear_down); \
        }                                                                       \
        teams_failures;                                                         \
    })

#endif
