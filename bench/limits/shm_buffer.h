/* SPDX-License-Identifier: BSD-3-Clause */
/* A buffer of each rank that the other ranks of its node read, like the buffers of scheme `shared`. */
#ifndef PERF_SHM_BUFFER_H
#define PERF_SHM_BUFFER_H

#include "bench/lib/base.h"
#include "comm/shm/region.h"

struct perf_shm_buffer {
    int rank, ranks;                 /**< own rank and number of ranks in the node */
    struct sar_shm_region *regions;  /**< shared memory of each rank, own first, in reading order */
    struct perf_block private_block; /**< used instead if ranks cannot share memory */
};

/** Allocates `bytes` bytes on each rank and writes to them. Ranks may pass different sizes. Collective. */
void perf_shm_buffer_open(struct perf_shm_buffer *buffer, const struct perf_world *world, size_t bytes);

/** Returns the address of this rank's buffer. */
void *perf_shm_buffer_data(const struct perf_shm_buffer *buffer);

/** Reads `bytes` bytes: an equal share of each rank's buffer, repeatedly if the buffers are smaller.
 * `written` is the number of bytes written to each buffer, about the same on all ranks. Local. */
void perf_shm_buffer_read(const struct perf_shm_buffer *buffer, size_t bytes, size_t written);

void perf_shm_buffer_close(struct perf_shm_buffer *buffer);

#endif
