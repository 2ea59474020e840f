/* SPDX-License-Identifier: BSD-3-Clause */
/* Regions: memory that other processes of the node can map. A region exists as long as a process has it
 * mapped. */

#ifndef SAR_COMM_SHM_REGION_H
#define SAR_COMM_SHM_REGION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/** A mapped region, or a part of one. All zero if there is none. */
struct sar_shm_region {
    void *memory;
    size_t bytes;
    bool is_part; /**< a part of another region, which owns the mapping */
};

/** The data by which another process maps a region. Sent between ranks as bytes. */
struct sar_shm_handle {
    int64_t pid;     /**< of the process that created the region */
    uint64_t serial; /**< number of the region in that process, from 1 on; 0 if there is no region */
    uint64_t bytes;
    int64_t fd; /**< file descriptor of the region in that process, or -1 once it is closed */
};

/** True if a failure means that shared memory is unavailable; private memory may be available. */
static inline bool sar_shm_region_is_unavailable(enum sar_status status)
{
    return status == SAR_NO_SHM || status == SAR_NO_FDS || status == SAR_MANY_RESULTS;
}

/** Creates and maps a region of zero bytes. Its pages are allocated when they are first touched, on the NUMA
 * node of the processor that does so. sar_shm_region_unmap frees it. Local. */
enum sar_status sar_shm_region_create(size_t bytes, struct sar_shm_region *region,
                                      struct sar_shm_handle *handle);

/** Maps a region of another process, which must not have closed its file descriptor. Local. */
enum sar_status sar_shm_region_map(const struct sar_shm_handle *handle, struct sar_shm_region *region);

/** True while other processes can map a region that this process created. The region then holds a file
 * descriptor. */
static inline bool sar_shm_handle_is_open(const struct sar_shm_handle *handle)
{
    return handle->serial != 0 && handle->fd >= 0;
}

/** Closes the file descriptor of a region that this process created: no process can map it from then on.
 * Local. */
void sar_shm_handle_close_fd(struct sar_shm_handle *handle);

/** Unmaps a region; no effect on a part, or if there is none. Local. */
void sar_shm_region_unmap(struct sar_shm_region *region);

/** True if two handles name the same region. */
bool sar_shm_handle_equal(const struct sar_shm_handle *a, const struct sar_shm_handle *b);

#endif
