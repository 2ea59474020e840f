/* SPDX-License-Identifier: BSD-3-Clause */
/* The option --calibrate. */
#ifndef PERF_CALIBRATE_H
#define PERF_CALIBRATE_H

#include <stdbool.h>

/* Measure the constants of MPI_COMM_WORLD's machine so many times and write them to a file, in place of the
 * one that may be there. Collective; all ranks return whether it went well. Rank 0 prints them, or what went
 * wrong. */
bool perf_calibrate(const char *path, int rounds);

#endif
