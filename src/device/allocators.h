/* SPDX-License-Identifier: BSD-3-Clause */
/* Allocators of a call's memory: device memory that MPI can access, and pinned memory for arenas. */

#ifndef SAR_DEVICE_ALLOCATORS_H
#define SAR_DEVICE_ALLOCATORS_H

#include "base/arena.h"
#include "device/host_copy.h"

struct sar_device_block;

/** Device memory for buffers of MPI. MPI cannot use the pool of stream_ops, whose memory other processes
 * cannot share, and which is valid in the order of a stream only. Blocks have powers of two as sizes. */
struct sar_device_blocks {
    struct sar_allocator allocator; /**< first member; its release does nothing */
    const struct sar_device_ctx *ctx;
    struct sar_device_block *blocks; /**< blocks taken, owned until sar_device_blocks_release */
};

/** Returns an allocator without blocks. ctx must outlive it. */
struct sar_device_blocks sar_device_blocks_make(const struct sar_device_ctx *ctx);

/** Takes at least `bytes` bytes, valid until sar_device_blocks_release. */
enum sar_status sar_device_blocks_alloc(struct sar_device_blocks *blocks, size_t bytes, void **memory);

/** Releases all blocks, and caches them for later calls. With lost, a device may still use them, and all are
 * freed instead. */
void sar_device_blocks_release(struct sar_device_blocks *blocks, bool lost);

/** Frees all cached blocks. Thread-safe. */
void sar_device_blocks_cleanup(void);

/** Pinned memory for the blocks of arenas, by sar_host_copy_alloc_bounded. */
struct sar_pinned_allocator {
    struct sar_allocator allocator; /**< first member */
    const struct sar_device_ctx *ctx;
    size_t limit; /**< most bytes pinned for arenas */
    bool lost;    /**< set by the caller if a device may still write: released blocks are abandoned */
};

/** Returns an allocator of pinned memory. ctx must outlive it. */
struct sar_pinned_allocator sar_pinned_allocator_make(const struct sar_device_ctx *ctx, size_t limit);

#endif
