/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of code that uses several threads: all of them run with each number of threads. */

#ifndef SAR_TESTS_SUPPORT_TEAMS_H
#define SAR_TESTS_SUPPORT_TEAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include "array_length.h"
#include "base/parallel.h"

/** Numbers of threads. One comes first, so that a test can compare with its result. */
static const int teams[] = { 1, 2, 3, 8 };

/* Slow builds run fewer teams: those of SAR_TEST_FEW_THREADS, and plain code that stands in for vector
 * code. */
static inline bool team_is_left_out(int threads)
{
#ifdef SAR_NO_CLONES
    bool few = true;
#else
    bool few = getenv("SAR_TEST_FEW_THREADS") != NULL;
#endif
    return few && threads != 1 && threads != 3;
}

enum { TEAM_SMALL_PIECE_BYTES = 128 };

/** From now on the loops of the calling thread have so many threads. */
static inline void team_set(int threads)
{
    sar_parallel_begin((struct sar_parallel){ .threads = threads });
}

/** As team_set; vectors of some hundred bytes are split, too. */
static inline void team_set_small(int threads)
{
    team_set(threads);
    sar_parallel_piece_bytes = threads > 1 ? TEAM_SMALL_PIECE_BYTES : SAR_PIECE_BYTES;
}

/** Ends the threads, so that valgrind finds no memory of theirs. Fits cmocka as a group's tear-down. */
static inline int teams_end(void **state)
{
    (void)state;
    sar_parallel_close();
    return 0;
}

#define TEAMS_RUN_WITH(set, tests, set_up, tear_down)                           \
    ({                                                                          \
        int teams_failures = 0;                                                 \
        for (size_t teams_i = 0; teams_i < LENGTH(teams); teams_i++) {          \
            if (team_is_left_out(teams[teams_i]))                               \
                continue;                                                       \
            set(teams[teams_i]);                                                \
            teams_failures += cmocka_run_group_tests(tests, set_up, tear_down); \
        }                                                                       \
        teams_end(NULL);                                                        \
        teams_failures;                                                         \
    })

/** Runs a table of tests with each number of threads; evaluates to the number of failures. */
#define TEAMS_RUN(tests, set_up, tear_down) TEAMS_RUN_WITH(team_set, tests, set_up, tear_down)

/** As TEAMS_RUN, with team_set_small. */
#define TEAMS_RUN_SMALL(tests, set_up, tear_down) TEAMS_RUN_WITH(team_set_small, tests, set_up, tear_down)

#endif
