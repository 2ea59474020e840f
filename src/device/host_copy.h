/* SPDX-License-Identifier: BSD-3-Clause */
/* Host copies of arrays in device memory, in a pool of pinned memory. All functions are thread-safe. */

#ifndef SAR_DEVICE_HOST_COPY_H
#define SAR_DEVICE_HOST_COPY_H

#include <stdbool.h>

#include "device/accelerator.h"

/** Memory that the caller's arrays are in. */
struct sar_device_ctx {
    const struct sar_accelerator *accelerator; /**< NULL for host memory */
    int device_id;
    void *stream; /**< stream that the caller uses the arrays in */
};

/** Returns a vector in device memory, as the accelerator's functions take it. buf is NULL for coordinates. */
static inline struct sar_device_vec sar_device_vec_of(const struct sar_device_ctx *ctx,
                                                      const struct sar_vec_desc *desc, void *buf)
{
    return (struct sar_device_vec){ desc, buf, ctx->device_id, ctx->stream };
}

/** An array in device memory and its copy in host memory, pinned if possible. */
struct sar_host_copy {
    void *device, *host;
    size_t bytes;
    bool copy_in, copy_out;         /**< set by the caller: read the device's array; write it back */
    struct sar_pinned_block *block; /**< block of the pool; NULL if the caller owns `host` */
};

/** Allocates the host copy of a device array from the pool. Blocks have powers of two as sizes, so that later
 * calls find blocks and allocate nothing. Falls back to memory that is not pinned. */
enum sar_status sar_host_copy_alloc(const struct sar_device_ctx *ctx, const void *device, size_t bytes,
                                    struct sar_host_copy *copy);

/** Allocates at least `bytes` bytes without a device array, and sets copy->bytes. The memory is pinned unless
 * more than `limit` bytes would be pinned by this function. */
enum sar_status sar_host_copy_alloc_bounded(const struct sar_device_ctx *ctx, size_t bytes, size_t limit,
                                            struct sar_host_copy *copy);

/** Allocates pinned memory without a device array. Returns SAR_NO_MEMORY if it cannot be pinned. */
enum sar_status sar_host_copy_alloc_pinned(const struct sar_device_ctx *ctx, size_t bytes,
                                           struct sar_host_copy *copy);

/** Returns the memory to the pool, or abandons it if a wait has failed and a device may still write to it. */
void sar_host_copy_release(struct sar_host_copy *copy);

/** Releases memory that a device may still write to. Nothing uses the memory again. */
void sar_host_copy_abandon(struct sar_host_copy *copy);

/** True if queued copies run in the order of their stream, because all host memory is pinned. */
bool sar_host_copies_are_pinned(const struct sar_host_copy copies[], size_t n);

/** Queues reads of the copies with copy_in set. */
enum sar_status sar_host_copies_queue_read(const struct sar_device_ctx *ctx,
                                           const struct sar_host_copy copies[], size_t n);

/** Queues writes of the copies with copy_out set. */
enum sar_status sar_host_copies_queue_write(const struct sar_device_ctx *ctx,
                                            const struct sar_host_copy copies[], size_t n);

/** Reads the copies with copy_in set, and waits. On failure their release abandons the memory. */
enum sar_status sar_host_copies_read(const struct sar_device_ctx *ctx, const struct sar_host_copy copies[],
                                     size_t n);

/** Writes the copies with copy_out set, and waits. On failure their release abandons the memory. */
enum sar_status sar_host_copies_write(const struct sar_device_ctx *ctx, const struct sar_host_copy copies[],
                                      size_t n);

/** Frees all memory of the pool that is not in use. */
void sar_host_copy_cleanup(void);

#endif
