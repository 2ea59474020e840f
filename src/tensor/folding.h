/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_TENSOR_FOLDING_H
#define SAR_TENSOR_FOLDING_H

#include "tensor/shape.h"

enum { SAR_FOLDED = 16 /**< most runs that are folded at once */ };

/** Runs that are folded in their order, stretch by stretch of the index space. */
struct sar_folding {
    const struct sar_run *runs;
    size_t n;
    size_t next[SAR_FOLDED]; /**< of each run the first element that is not folded yet */
    /** Fold elements with indices from `start` to below `limit`, before which all are folded, into what `at`
     * has for them, and mark each line of 64 bytes where such an element begins. */
    void (*put)(struct sar_folding *, const struct sar_shape *, uint64_t start, uint64_t limit, void *at,
                uint8_t marks[]);
};

/** Whether x op 0 is x, so that zeros can be folded into, and what is not done yet needs no wider type. */
bool sar_folding_suits(const struct sar_shape *shape);

/** @param n  at most SAR_FOLDED */
struct sar_folding sar_folding_begin(const struct sar_shape *shape, const struct sar_run runs[], size_t n);

/** The least index that is not folded yet, or the largest number. */
uint64_t sar_folding_next(const struct sar_folding *folding, const struct sar_shape *shape);

#endif
