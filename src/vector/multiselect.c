/* SPDX-License-Identifier: BSD-3-Clause */
/* Selection among sorted vecs by bisection, which shared memory schemes use to divide a reduction among
 * ranks. For each vec a range contains the cut. Each step takes the middle index of the widest range,
 * searches for it in all ranges, and keeps the lower or upper halves by the number of elements below it. Both
 * ends of all ranges are always cuts at one index, so the search may stop early.
 *
 *     time = vecs * log2(nnz)^2 probes at most */

#include "vector/multiselect.h"

#include <string.h>

/* For each vec, the range [low, high] that contains the cut. */
struct ranges {
    const struct sar_spvec *vecs;
    size_t n;
    unsigned index_size;
    size_t *low, *high, *at; /* for each vec; at is the cut of the current step */
};

/* Returns the vec with the widest range; sets `left` to the length of all ranges. */
static size_t widest_range(const struct ranges *w, size_t *left)
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

/* Set `at` to the cuts at an index; returns the elements below it in all vecs. */
static size_t count_below(const struct ranges *w, uint64_t limit)
{
    size_t below = 0;
    for (size_t r = 0; r < w->n; r++) {
        SAR_FOR_INDEX_SIZE(w->index_size, w->at[r] = sar_index_lower_bound(w->vecs[r].index, INDEX_SIZE,
                                                                           w->low[r], w->high[r], limit));
        below += w->at[r];
    }
    return below;
}

/* Move `at` from cuts at an index to cuts after it; returns the number of vecs with this index. */
static size_t step_past(const struct ranges *w, uint64_t index)
{
    size_t have = 0;
    for (size_t r = 0; r < w->n; r++) {
        bool here =
            w->at[r] < w->vecs[r].nnz && sar_index_get(w->vecs[r].index, w->index_size, w->at[r]) == index;
        w->at[r] += here;
        have += here;
    }
    return have;
}

void sar_multiselect(const struct sar_vec_desc *desc, const struct sar_spvec vecs[], size_t n,
                     struct sar_multiselect_target aim, size_t cut[], size_t scratch[])
{
    struct ranges w = { vecs, n, desc->index_size, cut, scratch, scratch + n };
    size_t left;
    for (size_t r = 0; r < n; r++) {
        w.low[r] = 0;
        w.high[r] = vecs[r].nnz;
    }
    for (size_t r = widest_range(&w, &left); left > 0; r = widest_range(&w, &left)) {
        size_t middle = w.low[r] + (w.high[r] - w.low[r]) / 2;
        uint64_t index = sar_index_get(vecs[r].index, w.index_size, middle);
        size_t below = count_below(&w, index);
        if (below > aim.target) {
            memcpy(w.high, w.at, n * sizeof *w.at);
            continue;
        }
        memcpy(w.low, w.at, n * sizeof *w.at);
        if (aim.target - below <= aim.slack || below + step_past(&w, index) > aim.target)
            return;
        memcpy(w.low, w.at, n * sizeof *w.at);
    }
}
