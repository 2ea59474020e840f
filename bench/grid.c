/* SPDX-License-Identifier: BSD-3-Clause */
#include "grid.h"

#include <stdlib.h>
#include <string.h>

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

static const long long counts[] = { 1 << 10, 1 << 14, 1 << 18, 1 << 22, 1 << 26 };
static const double densities[] = { 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 0.5 };
static const double overlaps[] = { 0, 0.3, 1 }, skews[] = { 0, 0.6 };
static const size_t rows[] = { 1, 64 };

struct axes {
    struct perf_counts count;
    struct perf_reals density;
};

static struct axes axes_of(const struct perf_study *study)
{
    struct axes axes = { study->options->count,
                         perf_study_densities(study, densities, (int)LENGTH(densities)) };

    if (axes.count.n == 0) {
        memcpy(axes.count.at, counts, sizeof counts);
        axes.count.n = (int)LENGTH(counts);
    }
    return axes;
}

/* The number of a place on an axis of so many, taken off *code. */
static size_t digit(size_t *code, size_t base)
{
    size_t place = *code % base;

    *code /= base;
    return place;
}

static struct perf_point point_of(const struct axes *axes, size_t code)
{
    struct perf_point point;

    point.row = rows[digit(&code, LENGTH(rows))];
    point.skew = skews[digit(&code, LENGTH(skews))];
    point.overlap = overlaps[digit(&code, LENGTH(overlaps))];
    point.density = axes->density.at[digit(&code, (size_t)axes->density.n)];
    point.count = (size_t)axes->count.at[code] / point.row;
    return point;
}

struct perf_point *perf_grid_make(const struct perf_study *study, int *points)
{
    struct axes axes = axes_of(study);
    size_t all =
        (size_t)axes.count.n * (size_t)axes.density.n * LENGTH(overlaps) * LENGTH(skews) * LENGTH(rows);
    size_t step = perf_coprime((size_t)(0.618 * (double)all) + 1, all); /* about the golden section */
    struct perf_point *point = perf_alloc(all, sizeof *point);

    *points = 0;
    for (size_t i = 0; i < all; i++) {
        point[*points] = point_of(&axes, i * step % all);
        if ((double)point[*points].count * point[*points].density >= 0.5)
            ++*points;
    }
    return point;
}
