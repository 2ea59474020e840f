/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L /* fileno */
#endif

#include "progress.h"

#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

static const double LONG_RUN = 2, BETWEEN = 0.2; /* seconds */

void perf_progress_make(struct perf_progress *progress, int rank, int cases)
{
    *progress = (struct perf_progress){ .terminal = rank == 0 && isatty(fileno(stderr)), .cases = cases };
}

void perf_progress_tick(struct perf_progress *progress, double seconds, double done)
{
    double now = MPI_Wtime();

    if (!progress->terminal || seconds * progress->cases < LONG_RUN || now - progress->last < BETWEEN)
        return;
    progress->last = now;
    progress->shown = true;
    fprintf(stderr, "\r# case %d of %d, %.0f %%, %.0f s left of it \033[K", progress->number, progress->cases,
            100 * done, (1 - done) * seconds);
    fflush(stderr);
}

void perf_progress_erase(struct perf_progress *progress)
{
    if (progress->shown)
        fprintf(stderr, "\r\033[K");
    fflush(stderr);
    progress->shown = false;
}
