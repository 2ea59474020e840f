/* SPDX-License-Identifier: BSD-3-Clause */
/* Loops over ranges of items, on the threads of base/parallel.h. */

#ifndef SAR_VECTOR_PIECES_H
#define SAR_VECTOR_PIECES_H

#include "base/parallel.h"

enum {
    SAR_RANGES_MAX = 256 /**< most pieces of a loop in this component, so that arrays of them are small */
};

/** As sar_parallel_pieces, at most SAR_RANGES_MAX. */
static inline size_t sar_pieces(size_t bytes)
{
    size_t pieces = sar_parallel_pieces(bytes);
    return pieces < SAR_RANGES_MAX ? pieces : SAR_RANGES_MAX;
}

/** A loop over n items in pieces that begin at multiples of `unit` items. */
struct sar_ranges {
    size_t n, unit, pieces;
    void (*body)(void *arg, size_t from, size_t to); /**< does items [from, to), at least one */
    void *arg;                                       /**< of body */
};

/** A sar_parallel_body that does piece i of a sar_ranges, unless it is empty. */
static inline enum sar_status sar_ranges_piece(void *ranges, size_t i)
{
    const struct sar_ranges *r = ranges;
    size_t from = sar_parallel_bound(r->n, r->unit, r->pieces, i),
           to = sar_parallel_bound(r->n, r->unit, r->pieces, i + 1);
    if (from < to)
        r->body(r->arg, from, to);
    return SAR_OK;
}

/** Calls ranges.body for all pieces that are not empty; a single piece may be. */
static inline void sar_ranges_run(struct sar_ranges ranges)
{
    if (ranges.pieces == 1)
        ranges.body(ranges.arg, 0, ranges.n);
    else
        sar_parallel_for(ranges.pieces, sar_ranges_piece, &ranges);
}

#endif
