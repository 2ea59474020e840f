/* SPDX-License-Identifier: BSD-3-Clause */
/* Segments: consecutive ranges of the slots of all parts, which owner-based schemes process one after the
 * other. Messages and work of a segment grow with its elements. Where these are spread unevenly, segments of
 * equal length would leave now the network idle and now the processors, since one segment is in flight while
 * another one is worked on. So a segment is shorter where there are more elements. */

#ifndef SAR_SCHEME_ENGINE_SEGMENTS_H
#define SAR_SCHEME_ENGINE_SEGMENTS_H

#include "scheme/engine/agreed.h"

/** Segments of a part. Equal on all ranks. */
struct sar_segments {
    uint64_t slots; /**< of the longest part */
    uint64_t equal; /**< slots of a segment, but for the last one, unless `weighted` */
    uint64_t unit;  /**< a segment has a multiple of so many slots */
    uint32_t n;
    bool weighted;
    double position[SAR_QUANTILE_BINS + 1]; /**< ascending from 0 to 1, shares of the slots … */
    double weight[SAR_QUANTILE_BINS + 1];   /**< … and of the elements that lie below */
};

/** Returns segments of `equal` slots, a multiple of unit. */
struct sar_segments sar_segments_equal(uint64_t slots, uint64_t equal, uint64_t unit);

/** Returns as many segments as sar_segments_equal does. Each has about equally many elements, those of a rank
 * and those of the result, if the agreed quantiles are known. */
struct sar_segments sar_segments_weighted(const struct sar_agreed *agreed, uint64_t slots, uint64_t equal,
                                          uint64_t unit);

/** Returns the first slot of segment i <= n; begin(0) is 0, begin(n) is slots, and each segment has slots. */
uint64_t sar_segments_begin(const struct sar_segments *segments, uint32_t i);

#endif
