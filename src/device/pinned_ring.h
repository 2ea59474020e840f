/* SPDX-License-Identifier: BSD-3-Clause */
/* Pinned rings: pinned memory of bounded size through which arrays of any size are copied between a device
 * and the host; and the two loops over a ring, the host pipeline and the device-to-host copy.
 *
 * A ring has SAR_PINNED_RING_BLOCKS blocks of memory. Block k here means the k-th block that passes through
 * the ring; it reuses the memory of block k - SAR_PINNED_RING_BLOCKS. While the host works on one block,
 * others are copied in streams of the ring. A ring belongs to one thread at a time. */

#ifndef SAR_DEVICE_PINNED_RING_H
#define SAR_DEVICE_PINNED_RING_H

#include "base/arena.h"
#include "device/host_copy.h"

enum { SAR_PINNED_RING_BLOCKS = 4 };

struct sar_pinned_ring;

/** Returns the bytes of a block for this value of MPIX_SPARSE_STAGING, a multiple of 64. */
size_t sar_pinned_ring_block_bytes(uint64_t staging);

/** Acquires a ring with blocks of block_bytes bytes. Its work runs after the work queued in ctx->stream so
 * far. Rings are cached, so that later calls allocate nothing. */
enum sar_status sar_pinned_ring_acquire(const struct sar_device_ctx *ctx, size_t block_bytes,
                                        struct sar_pinned_ring **ring);

/** Waits for all queued work and returns the ring to the cache. ring may be NULL. */
enum sar_status sar_pinned_ring_release(struct sar_pinned_ring *ring);

/** Sets *block to the memory of block k, after waiting for the block that used the memory before. */
enum sar_status sar_pinned_ring_block(struct sar_pinned_ring *ring, size_t k, void **block);

/** Returns the stream of block k. Successive blocks alternate between two streams; blocks that share memory
 * share a stream. */
void *sar_pinned_ring_stream(const struct sar_pinned_ring *ring, size_t k);

/** Queues a copy to or from block k. */
enum sar_status sar_pinned_ring_queue_copy(struct sar_pinned_ring *ring, size_t k, void *to, const void *from,
                                           size_t bytes);

/** Records that all work of block k is queued. */
enum sar_status sar_pinned_ring_record(struct sar_pinned_ring *ring, size_t k);

/** Waits for the recorded work of block k. */
enum sar_status sar_pinned_ring_wait(struct sar_pinned_ring *ring, size_t k);

/** Makes the stream of block k wait for the work queued in the context's stream so far. */
enum sar_status sar_pinned_ring_after_stream(struct sar_pinned_ring *ring, size_t k);

/** Makes the context's stream wait for the recorded work of block k. */
enum sar_status sar_pinned_ring_before_stream(struct sar_pinned_ring *ring, size_t k);

/** Frees all cached rings. Thread-safe. */
void sar_pinned_ring_cleanup(void);

/** A dense vector in device memory that the host works on in chunks. Each chunk is copied to a block of a
 * ring, modified there, and copied to the output. Copies of other chunks overlap with the work. */
struct sar_host_pipeline {
    struct sar_pinned_ring *ring;
    const char *in;
    char *out;
    uint64_t bytes;
    size_t chunk_bytes;   /**< bytes of each chunk but the last */
    size_t chunks_queued; /**< chunks whose copy to the host is queued or done */
    void *block[SAR_PINNED_RING_BLOCKS];
};

/** Input and output of a pipeline in device memory: one array, or two that do not overlap. */
struct sar_pipeline_args {
    const void *in;
    void *out;
    uint64_t bytes;
};

/** Acquires memory and queues copies of the first chunks. The caller closes the pipeline, also on failure. */
enum sar_status sar_host_pipeline_open(struct sar_host_pipeline *pipeline, const struct sar_device_ctx *ctx,
                                       const struct sar_pipeline_args *args, size_t chunk_bytes);

/** Returns the host memory of chunk k, also if a copy has failed. */
static inline void *sar_host_pipeline_chunk(const struct sar_host_pipeline *pipeline, size_t k)
{
    return pipeline->block[k % SAR_PINNED_RING_BLOCKS];
}

/** Waits until chunk k is on the host. Chunks are waited for in order. */
enum sar_status sar_host_pipeline_wait(struct sar_host_pipeline *pipeline, size_t k);

/** Queues the copy of chunk k to the output. */
enum sar_status sar_host_pipeline_write_back(struct sar_host_pipeline *pipeline, size_t k);

/** Waits for all copies and releases the memory. */
enum sar_status sar_host_pipeline_close(struct sar_host_pipeline *pipeline);

/** A sparse vector on its way from a device to host memory, block by block through a ring. */
struct sar_d2h_copy {
    struct sar_device_ctx ctx;
    struct sar_spvec device; /**< in device memory, owned */
    struct sar_spvec host;   /**< in the caller's arena; the first `arrived` elements are valid */
    size_t arrived;
    size_t index_size, element_size; /**< bytes; set by the caller */
    struct sar_pinned_ring *ring;
    size_t block_elements; /**< elements of a block */
    size_t blocks_queued;
};

/** Allocates copy->device for nnz elements, which a kernel writes in ctx->stream. The caller sets index_size
 * and element_size, zeroes all other fields, and closes the copy, also on failure. */
enum sar_status sar_d2h_copy_open(struct sar_d2h_copy *copy, const struct sar_device_ctx *ctx, size_t nnz);

/** Allocates copy->host in the arena and queues the first blocks, of block_bytes bytes. The kernel must be
 * queued, and copy->device.nnz final. */
enum sar_status sar_d2h_copy_start(struct sar_d2h_copy *copy, size_t block_bytes, struct sar_arena *arena);

/** Waits until the first n elements are in copy->host. */
enum sar_status sar_d2h_copy_wait(struct sar_d2h_copy *copy, size_t n);

/** Waits for all copies and releases everything but copy->host. */
void sar_d2h_copy_close(struct sar_d2h_copy *copy);

#endif
