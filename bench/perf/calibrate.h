/* SPDX-License-Identifier: BSD-3-Clause */
/* Options --calibrate and --costs: measure this machine and write a file, instead of timing cases. */
#ifndef PERF_CALIBRATE_H
#define PERF_CALIBRATE_H

#include <stdbool.h>

#include "bench/lib/options.h"
#include "bench/lib/workload.h"

/** Measures the machine constants of MPI_COMM_WORLD `rounds` times and writes the least of each to a file,
 * which replaces an old one. Rank 0 prints the constants or an error. Returns true on all ranks on success.
 * Collective. */
bool perf_calibrate(const char *path, int rounds);

/** Measures the cost of each kind of the library's work and writes a file for --charge, which replaces an old
 * one. Checks that the file is writable first. Rank 0 prints the costs or an error. Returns true on all
 * ranks on success. Collective. */
bool perf_measure_costs(const char *path, const struct perf_options *options,
                        const struct perf_source *source, const struct perf_world *world);

#endif
