/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_DEVICE_BERTH_H
#define SAR_DEVICE_BERTH_H

#include "base/arena.h"
#include "device/mirror.h"

struct sar_berth;

/** Memory of a device's that MPI is handed: not the pool's, which processes cannot share, and which is there
 * only in the order of a stream. Blocks whose sizes are powers of two stay with who took them until the end,
 * and are kept for later calls then. */
struct sar_berths {
    struct sar_supply supply; /**< first; who takes of it need not give back */
    const struct sar_memory *memory;
    struct sar_berth *taken;
};

struct sar_berths sar_berths_make(const struct sar_memory *memory);

/** Take so many bytes at least. */
enum sar_status sar_berths_take(struct sar_berths *berths, size_t bytes, void **memory);

/** Give back all that was taken.
 * @param lost  a device may still be reading or writing: nothing is kept */
void sar_berths_end(struct sar_berths *berths, bool lost);

/** Give what is kept back to the system. */
void sar_berths_cleanup(void);

#endif
