/* SPDX-License-Identifier: BSD-3-Clause */
/* A line on the standard error of rank 0 while a long run is going on, if that is a terminal. */
#ifndef PERF_PROGRESS_H
#define PERF_PROGRESS_H

#include <stdbool.h>

struct perf_progress {
    bool terminal, shown;
    int number, cases; /* this case, counted from 1, and all */
    double last;       /* when the line was last written */
};

void perf_progress_make(struct perf_progress *progress, int rank, int cases);

/* Say how far a case is that is expected to take so many seconds in all. */
void perf_progress_tick(struct perf_progress *progress, double seconds, double done);

void perf_progress_erase(struct perf_progress *progress);

#endif
