/* SPDX-License-Identifier: BSD-3-Clause */
/* Selection among sorted runs by bisection. In each run the cut lies in a window; the middle of the largest
 * window is looked up in all others, and counting what is below it tells in which half they go on. Both ends
 * of the windows are cuts at one index all the time, so the search may stop early. */

#include "tensor/cut.h"

/* First place in [low, high) of a run whose index is not below `limit`, or high. */
SAR_INLINE size_t find(const void *index, unsigned size, size_t low, size_t high, uint64_t limit)
{
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (sar_index_get(index, size, middle) < limit)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct windows {
    const struct sar_run *runs;
    size_t n;
    unsigned index_size;
    size_t *low, *high, *at; /* of each run */
};

/* The run with the largest window, and what is left in all of them. */
static size_t largest(const struct windows *w, size_t *left)
{
    size_t best = 0;
    *left = 0;
    for (size_t r = 0; r < w->n; r++) {
        *left += w->high[r] - w->low[r];
        if (w->high[r] - w->low[r] > w->high[best] - w->low[best])
            best = r;
    }
    return best;
}

/* Cut all windows below an index; returns what is below in all runs. */
static size_t look_up(const struct windows *w, uint64_t limit)
{
    size_t below = 0;
    for (size_t r = 0; r < w->n; r++) {
        SAR_FOR_INDEX_SIZE(w->index_size,
                           w->at[r] = find(w->runs[r].index, INDEX_SIZE, w->low[r], w->high[r], limit));
        below += w->at[r];
    }
    return below;
}

/* Move the cuts behind an index below which they are; returns how many runs have it. */
static size_t step_over(const struct windows *w, uint64_t index)
{
    size_t have = 0;
    for (size_t r = 0; r < w->n; r++) {
        bool here =
            w->at[r] < w->runs[r].nnz && sar_index_get(w->runs[r].index, w->index_size, w->at[r]) == index;
        w->at[r] += here;
        have += here;
    }
    return have;
}

static void copy(size_t *to, const size_t *from, size_t n)
{
    for (size_t r = 0; r < n; r++)
        to[r] = from[r];
}

void sar_runs_cut(const struct sar_shape *shape, const struct sar_run runs[], size_t n,
                  struct sar_cut_aim aim, size_t cut[], size_t spare[])
{
    struct windows w = { runs, n, shape->index_size, cut, spare, spare + n };
    size_t left;
    for (size_t r = 0; r < n; r++) {
        w.low[r] = 0;
        w.high[r] = runs[r].nnz;
    }
    for (size_t r = largest(&w, &left); left > 0; r = largest(&w, &left)) {
        size_t middle = w.low[r] + (w.high[r] - w.low[r]) / 2;
        uint64_t index = sar_index_get(runs[r].index, w.index_size, middle);
        size_t below = look_up(&w, index);
        if (below > aim.target) {
            copy(w.high, w.at, n);
            continue;
        }
        copy(w.low, w.at, n);
        if (aim.target - below <= aim.slack || below + step_over(&w, index) > aim.target)
            return;
        copy(w.low, w.at, n);
    }
}
