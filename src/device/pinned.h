/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_DEVICE_PINNED_H
#define SAR_DEVICE_PINNED_H

#include "base/arena.h"
#include "device/mirror.h"

/** Blocks of arenas in pinned memory of the pool (mirror.h), as long as no more than `most` bytes are pinned
 * for arenas; beyond that in memory that is not, from which copies take longer. */
struct sar_pinned {
    struct sar_supply supply; /**< first */
    const struct sar_memory *memory;
    size_t most;
    bool lost; /**< a device may still be writing: blocks that are given back are nobody's any more */
};

struct sar_pinned sar_pinned_make(const struct sar_memory *memory, size_t most);

#endif
