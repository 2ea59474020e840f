/* SPDX-License-Identifier: BSD-3-Clause */
/* Which rows a case has: those asked for, and those that they are compared with. */
#ifndef PERF_PLAN_H
#define PERF_PLAN_H

#include <stdbool.h>

#include "options.h"
#include "row.h"
#include "shape.h"

/* Rows that are measured together. Each group has baselines of its own. */
struct perf_group {
    int begin, end; /* rows of the plan */
    int plain;      /* the row of MPI_Allreduce, or -1 */
    int allgather;  /* the row of the allgather scheme */
    int memory;     /* the row of what there is to read and to write */
};

struct perf_plan {
    struct perf_row *row;
    int rows;
    struct perf_group *group;
    int groups;
    int pick; /* the row of the scheme auto that tells what the selector picks, or -1 */
};

/* Rows that the memory of a rank has room for, 1 at least. */
int perf_plan_room(const struct perf_case *c, const struct perf_tensor *tensor,
                   const struct perf_shape *shape);

/* `at_once` rows may be measured together; `plain` tells whether MPI_Allreduce can be run. */
void perf_plan_make(struct perf_plan *plan, const struct perf_options *options, int at_once, bool plain);

/* After measuring: mark the row that is what the selector picks. */
void perf_plan_choose(struct perf_plan *plan, const struct perf_options *options);

void perf_plan_free(struct perf_plan *plan);

#endif
