/* SPDX-License-Identifier: BSD-3-Clause */
/* Plain sums of the elements of a tile, whose indices nobody lists: each element writes its own where it adds
 * its value. */

#ifndef SAR_TENSOR_TOTALS_H
#define SAR_TENSOR_TOTALS_H

#include "tensor/tile.h"

enum {
    SAR_TOTALS_SLOTS = 42 /**< most for an element; bits and counts of these take 8 bytes */
};

/** Add elements [from, end) of a run, which are marked in the tile and counted, to an outcome that begins
 * with the tile's first one. Its values are the op's identity at first. */
typedef void sar_totals_fn(const struct sar_tile *tile, const struct sar_run *run, size_t from, size_t end,
                           const struct sar_run *out);

/** NULL where elements are not summed so: other ops than sums, rows, wide indices, small types, absent ones
 * that count as zeros.
 * @param index_size  of the outcome's indices */
sar_totals_fn *sar_totals_of(const struct sar_shape *shape, unsigned index_size);

#endif
