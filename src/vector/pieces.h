/* SPDX-License-Identifier: BSD-3-Clause */
/* The number of pieces of a loop that keeps an array of them. */

#ifndef SAR_VECTOR_PIECES_H
#define SAR_VECTOR_PIECES_H

#include "base/parallel.h"

enum {
    SAR_RANGES_MAX = 256, /**< most pieces of a loop in this component, so that arrays of them are small */
    SAR_MERGE_STEP_BYTES =
        4096 /**< of each part, in a step of a merge: beginning a step costs two searches a part */
};

/** As sar_parallel_pieces, at most SAR_RANGES_MAX. */
static inline size_t sar_pieces(size_t bytes)
{
    size_t pieces = sar_parallel_pieces(bytes);
    return pieces < SAR_RANGES_MAX ? pieces : SAR_RANGES_MAX;
}

enum { SAR_ROW_GAP_BYTES = 192 /**< three cache lines, of which two are fetched together */ };

/** Returns the elements of a row of n that a thread writes, with a gap: no other row is in its cache lines,
 * nor in those which the processor fetches with them. */
static inline size_t sar_row_stride(size_t n, size_t size)
{
    return n + (SAR_ROW_GAP_BYTES + size - 1) / size;
}

#endif
