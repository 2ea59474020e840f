/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_DEVICE_SPLITTER_H
#define SAR_DEVICE_SPLITTER_H

#include "device/accelerator.h"

/** Where elements come from that are not in a request's input: a vector in device memory, split there. */
struct sar_splitter {
    /** Give this rank's elements of a segment of each part, in slots of 4 bytes that count from the segment
     * on. To be called for one segment after the other, with equal splits; sets the request's
     * input.nnz for the first, and minus_zero for one in which it finds a -0.0. */
    enum sar_status (*give)(struct sar_splitter *splitter, const struct sar_division *split, uint32_t segment,
                            struct sar_run parts[]);
    void *owner, *state; /**< the splitter's own */
};

#endif
