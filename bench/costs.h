/* SPDX-License-Identifier: BSD-3-Clause */
/* The option --costs. */
#ifndef PERF_COSTS_H
#define PERF_COSTS_H

#include <stdbool.h>

#include "options.h"
#include "source.h"

/* Measure what the library's work costs on this machine, in calls of all kinds, and write it to a file for
 * --charge, in place of the one that may be there. A place where none can be is found out first. Collective;
 * all ranks return whether it went well. Rank 0 prints the costs, or what went wrong. */
bool perf_costs(const char *path, const struct perf_options *options, const struct perf_source *source,
                const struct perf_world *world);

#endif
