/* SPDX-License-Identifier: BSD-3-Clause */
/* The rows of a case: those that the options ask for, and their baselines. */
#ifndef PERF_ROW_PLAN_H
#define PERF_ROW_PLAN_H

#include <stdbool.h>

#include "bench/lib/options.h"
#include "bench/lib/stats.h"
#include "bench/perf/row.h"

/** Rows that are measured together. Each group has its own baselines. */
struct perf_row_group {
    int begin, end; /**< rows of the plan, end excluded */
    int dense;      /**< row of MPI_Allreduce, or -1 */
    int allgather;  /**< row of scheme allgather, or -1 */
    int memory;     /**< row of the bound on memory traffic, or -1 */
};

/** All rows of a case, group after group. */
struct perf_row_plan {
    struct perf_row *row;
    int rows;
    struct perf_row_group *group;
    int groups;
    int pick; /**< row of scheme auto that determines the selector's choice, or -1 */
};

/** Returns the number of rows that fit into the memory of a rank, at least 1. */
int perf_row_plan_max_rows(const struct perf_case *c, const struct perf_tensor *tensor,
                           const struct perf_tensor_stats *stats);

/** Makes the plan with at most `at_once` rows in a group. `dense` is true if MPI_Allreduce fits into memory.
 */
void perf_row_plan_make(struct perf_row_plan *plan, const struct perf_options *options, int at_once,
                        bool dense);

/** Marks the row that equals the selector's choice. To be called after measuring. */
void perf_row_plan_mark_choice(struct perf_row_plan *plan, const struct perf_options *options);

void perf_row_plan_free(struct perf_row_plan *plan);

#endif
