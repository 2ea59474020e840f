/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_DEVICE_ARRIVAL_H
#define SAR_DEVICE_ARRIVAL_H

#include "base/arena.h"
#include "device/staging.h"

/** Elements on their way from a device: a run in memory of the host that fills from its beginning, a block of
 * a ring at a time, while the next ones are copied. */
struct sar_arrival {
    struct sar_memory memory;
    struct sar_run from; /**< the device's */
    struct sar_run run;  /**< the host's; the first `here` elements are there */
    size_t here;
    size_t index_size, element_size;
    struct sar_staging *staging;
    size_t each;   /**< elements of a block */
    size_t queued; /**< blocks */
};

/** Take memory of the device for nnz elements: arrival->from, for a kernel to write to in the memory's
 * stream. To be ended, also on failure.
 * @param arrival  with index_size and element_size, all else zero */
enum sar_status sar_arrival_open(struct sar_arrival *arrival, const struct sar_memory *memory, size_t nnz);

/** Once that is queued, and arrival->from.nnz is what there is: take arrival->run of the arena, and begin to
 * bring the elements, through blocks of so many bytes. */
enum sar_status sar_arrival_begin(struct sar_arrival *arrival, size_t room, struct sar_arena *arena);

/** Wait until n elements are there. */
enum sar_status sar_arrival_until(struct sar_arrival *arrival, size_t n);

/** Give back what was taken but for the run. */
void sar_arrival_end(struct sar_arrival *arrival);

#endif
