/* SPDX-License-Identifier: BSD-3-Clause */
#include "bounds.h"

void perf_bounds_find(const struct perf_set *sets, int ranks, uint64_t count, uint32_t parts, uint64_t *bound)
{
    for (uint32_t p = 0; p < parts; p++) {
        double sum = 0;
        for (int r = 0; r < ranks && p > 0; r++) {
            size_t at = (size_t)((double)sets[r].n * p / parts);
            sum += at < sets[r].n ? (double)sets[r].at[at] : (double)(count / parts * p);
        }
        bound[p] = (uint64_t)(sum / ranks);
    }
    bound[parts] = count;
}

uint32_t perf_bounds_part(const uint64_t *bound, uint32_t parts, uint64_t index)
{
    uint32_t low = 0, high = parts;

    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (bound[middle] <= index)
            low = middle;
        else
            high = middle;
    }
    return low;
}
