/* SPDX-License-Identifier: BSD-3-Clause */
/* The grid of the study `selector`. */
#ifndef PERF_GRID_H
#define PERF_GRID_H

#include "study.h"

struct perf_point {
    size_t count, row; /* elements, and values in each */
    double density, overlap, skew;
};

/* All points at which some element is present, in an order of which every beginning is spread over the grid;
 * in fresh memory. Counts of the option are values, whatever the row. */
struct perf_point *perf_grid_make(const struct perf_study *study, int *points);

#endif
