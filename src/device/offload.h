/* SPDX-License-Identifier: BSD-3-Clause */
/* Dense vectors in device memory whose elements travel, and not the vectors. On return all is done. */

#ifndef SAR_DEVICE_OFFLOAD_H
#define SAR_DEVICE_OFFLOAD_H

#include "device/mirror.h"

/** Count the elements of buf with a bit set. */
enum sar_status sar_offload_count(const struct sar_memory *memory, const struct sar_shape *shape, void *buf,
                                  size_t *nnz);

/** Make a run of them.
 * @param room  that the run is in; the caller gives it back
 * @param run   nnz, as it was counted; the rest is set */
enum sar_status sar_offload_compact(const struct sar_memory *memory, const struct sar_shape *shape, void *buf,
                                    struct sar_mirror room[2], struct sar_run *run);

/** What is written to a vector: n runs, and zeros elsewhere if it is to be cleared. */
struct sar_delivery {
    const struct sar_run *runs;
    size_t n;
    bool clear;
};

enum sar_status sar_offload_write(const struct sar_memory *memory, const struct sar_shape *shape, void *buf,
                                  const struct sar_delivery *delivery);

#endif
