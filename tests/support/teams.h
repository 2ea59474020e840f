/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs the tests of a program on teams of several sizes, with small vectors split too. */

#ifndef SAR_TESTS_SUPPORT_TEAMS_H
#define SAR_TESTS_SUPPORT_TEAMS_H

#include "array_length.h"
#include "base/parallel.h"

static const int team_sizes[] = { 1, 2, 3, 8 };

enum { TEAM_PIECE_BYTES = 128 };

/** Lets loops have `threads` threads from here on. */
static inline void team_begin(int threads)
{
    sar_parallel_begin((struct sar_parallel){ .threads = threads });
    sar_parallel_piece_bytes = threads > 1 ? TEAM_PIECE_BYTES : SAR_PIECE_BYTES;
}

/** As cmocka_run_group_tests, once for each team. Returns the failures of all. */
#define RUN_ON_TEAMS(tests)                                        \
    do {                                                           \
        int failures = 0;                                          \
        for (size_t team = 0; team < LENGTH(team_sizes); team++) { \
            team_begin(team_sizes[team]);                          \
            failures += cmocka_run_group_tests(tests, NULL, NULL); \
        }                                                          \
        return failures;                                           \
    } while (0)

#endif
