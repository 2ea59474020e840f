/* SPDX-License-Identifier: BSD-3-Clause */
/* Segments: consecutive ranges of the slots of all parts, which owner-based schemes process one after the
 * other. Messages and work of a segment grow with its elements. One segment is in flight while another one is
 * worked on: if their sizes differ, the network waits for the processor, or the processor for the network. So
 * a segment is shorter where there are more elements. */

#ifndef SAR_SCHEME_ENGINE_SEGMENTS_H
#define SAR_SCHEME_ENGINE_SEGMENTS_H

#include "scheme/engine/spread.h"

/** Segments of a part. Equal on all ranks. */
struct sar_segments {
    uint64_t slots; /**< of the longest part */
    uint64_t equal; /**< slots of a segment, but for the last one, unless `weighted` */
    uint64_t unit;  /**< a segment has a multiple of so many slots */
    uint32_t n;
    bool weighted;
    struct sar_spread spread; /**< of the slots, and the elements of a rank and of the result */
};

/** Returns segments of `equal` slots, a multiple of unit. */
struct sar_segments sar_segments_equal(uint64_t slots, uint64_t equal, uint64_t unit);

/** Moves the bounds so that segments have about equally many elements, those of a rank and those of the
 * result. Does nothing if the agreed quantiles are unknown, or about those of an even vector. */
void sar_segments_weigh(const struct sar_agreed *agreed, struct sar_segments *segments);

/** Returns the first slot of segment i <= n. It is 0 for i = 0 and `slots` for i = n. No segment is empty,
 * unless `slots` is 0. */
uint64_t sar_segments_begin(const struct sar_segments *segments, uint32_t i);

#endif
