/* SPDX-License-Identifier: BSD-3-Clause */
/* Creating the streams and events of a ring takes long, so a list caches the rings. The memory of their
 * blocks belongs to the pool of device/host_copy.h and returns there after each use.
 *
 * Host pipeline: while the host works on chunk k, the next two are copied to the host, and chunk k - 1 from
 * the host. The chunk that reuses a block's memory has the same stream, so that no copy waits for the host.
 *
 * Device-to-host copy: a block holds values, followed by the indices of the same elements. Every block of the
 * ring is queued at once, and again as soon as it has been emptied. */

#include "device/pinned_ring.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* AHEAD: chunks that a host pipeline copies to the host ahead of the one in use. */
enum { STREAMS = 2, ALIGNMENT = 64, AHEAD = 2 };

_Static_assert(SAR_PINNED_RING_BLOCKS % STREAMS == 0, "blocks that share memory share a stream");
_Static_assert(AHEAD + 2 <= SAR_PINNED_RING_BLOCKS, "each chunk in progress has its own memory");

struct block {
    struct sar_host_copy memory;
    void *event;
    bool recorded; /* the event is recorded and was not waited for */
};

struct sar_pinned_ring {
    struct sar_device_ctx ctx;
    size_t block_bytes;
    void *stream[STREAMS];
    void *start; /* event of the context's stream */
    struct block block[SAR_PINNED_RING_BLOCKS];
    struct sar_pinned_ring *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sar_pinned_ring *cached; /* rings that callers may acquire */

size_t sar_pinned_ring_block_bytes(uint64_t staging)
{
    return (size_t)staging / ALIGNMENT * ALIGNMENT;
}

static const struct sar_stream_ops *stream_ops_of(const struct sar_pinned_ring *ring)
{
    return ring->ctx.accelerator->stream_ops;
}

static struct sar_pinned_ring *find_ring(const struct sar_device_ctx *ctx)
{
    struct sar_pinned_ring *found = NULL;
    pthread_mutex_lock(&lock);
    for (struct sar_pinned_ring **at = &cached; *at != NULL; at = &(*at)->next) {
        if ((*at)->ctx.accelerator == ctx->accelerator && (*at)->ctx.device_id == ctx->device_id) {
            found = *at;
            *at = found->next;
            break;
        }
    }
    pthread_mutex_unlock(&lock);
    return found;
}

static void close_ring(struct sar_pinned_ring *ring)
{
    const struct sar_stream_ops *ops = stream_ops_of(ring);
    int device_id = ring->ctx.device_id;
    for (int i = 0; i < STREAMS; i++)
        if (ring->stream[i] != NULL)
            ops->destroy(device_id, ring->stream[i]);
    for (int i = 0; i < SAR_PINNED_RING_BLOCKS; i++)
        if (ring->block[i].event != NULL)
            ops->destroy_event(device_id, ring->block[i].event);
    if (ring->start != NULL)
        ops->destroy_event(device_id, ring->start);
    free(ring);
}

static enum sar_status open_streams(struct sar_pinned_ring *ring)
{
    const struct sar_stream_ops *ops = stream_ops_of(ring);
    for (int i = 0; i < STREAMS; i++)
        SAR_TRY(ops->create(ring->ctx.device_id, &ring->stream[i]));
    for (int i = 0; i < SAR_PINNED_RING_BLOCKS; i++)
        SAR_TRY(ops->create_event(ring->ctx.device_id, &ring->block[i].event));
    return ops->create_event(ring->ctx.device_id, &ring->start);
}

static enum sar_status make_ring(const struct sar_device_ctx *ctx, struct sar_pinned_ring **made)
{
    struct sar_pinned_ring *ring = calloc(1, sizeof *ring);
    if (ring == NULL)
        return SAR_NO_MEMORY;
    ring->ctx = *ctx;
    enum sar_status status = open_streams(ring);
    if (status == SAR_OK)
        *made = ring;
    else
        close_ring(ring);
    return status;
}

static enum sar_status wait_caller(const struct sar_pinned_ring *ring)
{
    const struct sar_stream_ops *ops = stream_ops_of(ring);
    SAR_TRY(ops->record(ring->ctx.device_id, ring->start, ring->ctx.stream));
    for (int i = 0; i < STREAMS; i++)
        SAR_TRY(ops->wait_event(ring->ctx.device_id, ring->start, ring->stream[i]));
    return SAR_OK;
}

enum sar_status sar_pinned_ring_acquire(const struct sar_device_ctx *ctx, size_t block_bytes,
                                        struct sar_pinned_ring **acquired)
{
    struct sar_pinned_ring *ring = find_ring(ctx);
    if (ring == NULL)
        SAR_TRY(make_ring(ctx, &ring));
    ring->block_bytes = block_bytes;
    ring->ctx.stream = ctx->stream;
    enum sar_status status = wait_caller(ring);
    if (status == SAR_OK)
        *acquired = ring;
    else
        close_ring(ring);
    return status;
}

enum sar_status sar_pinned_ring_release(struct sar_pinned_ring *ring)
{
    enum sar_status status = SAR_OK;
    if (ring == NULL)
        return SAR_OK;
    for (int i = 0; i < STREAMS; i++) {
        enum sar_status waited = ring->ctx.accelerator->wait(ring->ctx.device_id, ring->stream[i]);
        status = status == SAR_OK ? waited : status;
    }
    for (int i = 0; i < SAR_PINNED_RING_BLOCKS; i++) {
        ring->block[i].recorded = false;
        (status == SAR_OK ? sar_host_copy_release : sar_host_copy_abandon)(&ring->block[i].memory);
    }
    if (status != SAR_OK) {
        close_ring(ring);
        return status;
    }
    pthread_mutex_lock(&lock);
    ring->next = cached;
    cached = ring;
    pthread_mutex_unlock(&lock);
    return SAR_OK;
}

enum sar_status sar_pinned_ring_block(struct sar_pinned_ring *ring, size_t k, void **block)
{
    struct sar_host_copy *memory = &ring->block[k % SAR_PINNED_RING_BLOCKS].memory;
    if (memory->host == NULL)
        SAR_TRY(sar_host_copy_alloc(&ring->ctx, NULL, ring->block_bytes, memory));
    SAR_TRY(sar_pinned_ring_wait(ring, k));
    *block = memory->host;
    return SAR_OK;
}

void *sar_pinned_ring_stream(const struct sar_pinned_ring *ring, size_t k)
{
    return ring->stream[k % STREAMS];
}

enum sar_status sar_pinned_ring_queue_copy(struct sar_pinned_ring *ring, size_t k, void *to, const void *from,
                                           size_t bytes)
{
    const struct sar_device_ctx *ctx = &ring->ctx;
    if (bytes == 0)
        return SAR_OK;
    return ctx->accelerator->copy(ctx->device_id, to, from, bytes, sar_pinned_ring_stream(ring, k));
}

enum sar_status sar_pinned_ring_record(struct sar_pinned_ring *ring, size_t k)
{
    struct block *block = &ring->block[k % SAR_PINNED_RING_BLOCKS];
    SAR_TRY(stream_ops_of(ring)->record(ring->ctx.device_id, block->event, sar_pinned_ring_stream(ring, k)));
    block->recorded = true;
    return SAR_OK;
}

enum sar_status sar_pinned_ring_wait(struct sar_pinned_ring *ring, size_t k)
{
    struct block *block = &ring->block[k % SAR_PINNED_RING_BLOCKS];
    if (!block->recorded)
        return SAR_OK;
    SAR_TRY(stream_ops_of(ring)->sync_event(ring->ctx.device_id, block->event));
    block->recorded = false;
    return SAR_OK;
}

enum sar_status sar_pinned_ring_after_stream(struct sar_pinned_ring *ring, size_t k)
{
    const struct sar_stream_ops *ops = stream_ops_of(ring);
    const struct sar_device_ctx *ctx = &ring->ctx;
    SAR_TRY(ops->record(ctx->device_id, ring->start, ctx->stream));
    return ops->wait_event(ctx->device_id, ring->start, sar_pinned_ring_stream(ring, k));
}

enum sar_status sar_pinned_ring_before_stream(struct sar_pinned_ring *ring, size_t k)
{
    const struct sar_device_ctx *ctx = &ring->ctx;
    void *event = ring->block[k % SAR_PINNED_RING_BLOCKS].event;
    return stream_ops_of(ring)->wait_event(ctx->device_id, event, ctx->stream);
}

void sar_pinned_ring_cleanup(void)
{
    pthread_mutex_lock(&lock);
    while (cached != NULL) {
        struct sar_pinned_ring *ring = cached;
        cached = ring->next;
        close_ring(ring);
    }
    pthread_mutex_unlock(&lock);
}

static size_t chunk_length(const struct sar_host_pipeline *pipeline, size_t k)
{
    uint64_t rest = pipeline->bytes - (uint64_t)k * pipeline->chunk_bytes;
    return rest < pipeline->chunk_bytes ? (size_t)rest : pipeline->chunk_bytes;
}

static enum sar_status queue_chunks(struct sar_host_pipeline *pipeline, size_t last)
{
    for (; pipeline->chunks_queued <= last &&
           (uint64_t)pipeline->chunks_queued * pipeline->chunk_bytes < pipeline->bytes;
         pipeline->chunks_queued++) {
        size_t k = pipeline->chunks_queued;
        SAR_TRY(sar_pinned_ring_queue_copy(pipeline->ring, k, sar_host_pipeline_chunk(pipeline, k),
                                           pipeline->in + k * pipeline->chunk_bytes,
                                           chunk_length(pipeline, k)));
        SAR_TRY(sar_pinned_ring_record(pipeline->ring, k));
    }
    return SAR_OK;
}

enum sar_status sar_host_pipeline_open(struct sar_host_pipeline *pipeline, const struct sar_device_ctx *ctx,
                                       const struct sar_pipeline_args *args, size_t chunk_bytes)
{
    uint64_t bytes = args->bytes;
    *pipeline = (struct sar_host_pipeline){
        .in = args->in, .out = args->out, .bytes = bytes, .chunk_bytes = chunk_bytes
    };
    SAR_TRY(sar_pinned_ring_acquire(ctx, bytes < chunk_bytes ? (size_t)bytes : chunk_bytes, &pipeline->ring));
    for (size_t k = 0; k < SAR_PINNED_RING_BLOCKS && (k == 0 || k * chunk_bytes < bytes); k++)
        SAR_TRY(sar_pinned_ring_block(pipeline->ring, k, &pipeline->block[k]));
    return queue_chunks(pipeline, AHEAD);
}

enum sar_status sar_host_pipeline_wait(struct sar_host_pipeline *pipeline, size_t k)
{
    SAR_TRY(queue_chunks(pipeline, k + AHEAD));
    return sar_pinned_ring_wait(pipeline->ring, k);
}

enum sar_status sar_host_pipeline_write_back(struct sar_host_pipeline *pipeline, size_t k)
{
    return sar_pinned_ring_queue_copy(pipeline->ring, k, pipeline->out + k * pipeline->chunk_bytes,
                                      sar_host_pipeline_chunk(pipeline, k), chunk_length(pipeline, k));
}

enum sar_status sar_host_pipeline_close(struct sar_host_pipeline *pipeline)
{
    enum sar_status status = sar_pinned_ring_release(pipeline->ring);
    *pipeline = (struct sar_host_pipeline){ 0 };
    return status;
}

enum sar_status sar_d2h_copy_open(struct sar_d2h_copy *copy, const struct sar_device_ctx *ctx, size_t nnz)
{
    const struct sar_stream_ops *streams = ctx->accelerator->stream_ops;
    copy->ctx = *ctx;
    copy->device.nnz = nnz;
    if (nnz == 0)
        return SAR_OK;
    SAR_TRY(streams->alloc(ctx->device_id, nnz * copy->index_size, ctx->stream, &copy->device.index));
    return streams->alloc(ctx->device_id, nnz * copy->element_size, ctx->stream, &copy->device.value);
}

/* Returns the number of elements in block k. */
static size_t block_length(const struct sar_d2h_copy *copy, size_t k)
{
    size_t rest = copy->device.nnz - k * copy->block_elements;
    return rest < copy->block_elements ? rest : copy->block_elements;
}

static enum sar_status queue_next_block(struct sar_d2h_copy *copy)
{
    size_t k = copy->blocks_queued, first = k * copy->block_elements;
    if (first >= copy->device.nnz)
        return SAR_OK;
    size_t n = block_length(copy, k);
    void *block;
    SAR_TRY(sar_pinned_ring_block(copy->ring, k, &block));
    SAR_TRY(sar_pinned_ring_queue_copy(copy->ring, k, block,
                                       (const char *)copy->device.value + first * copy->element_size,
                                       n * copy->element_size));
    SAR_TRY(sar_pinned_ring_queue_copy(copy->ring, k,
                                       (char *)block + copy->block_elements * copy->element_size,
                                       (const char *)copy->device.index + first * copy->index_size,
                                       n * copy->index_size));
    copy->blocks_queued++;
    return sar_pinned_ring_record(copy->ring, k);
}

enum sar_status sar_d2h_copy_start(struct sar_d2h_copy *copy, size_t block_bytes, struct sar_arena *arena)
{
    size_t size = copy->element_size + copy->index_size, nnz = copy->device.nnz;
    SAR_TRY(sar_arena_alloc(arena, nnz, copy->index_size, &copy->host.index));
    SAR_TRY(sar_arena_alloc(arena, nnz, copy->element_size, &copy->host.value));
    copy->host.nnz = nnz;
    copy->block_elements = block_bytes / size > 0 ? block_bytes / size : 1;
    copy->block_elements = copy->block_elements < nnz ? copy->block_elements : nnz;
    if (nnz == 0)
        return SAR_OK;
    SAR_TRY(sar_pinned_ring_acquire(&copy->ctx, copy->block_elements * size, &copy->ring));
    for (int i = 0; i < SAR_PINNED_RING_BLOCKS; i++)
        SAR_TRY(queue_next_block(copy));
    return SAR_OK;
}

static enum sar_status drain_next_block(struct sar_d2h_copy *copy)
{
    size_t k = copy->arrived / copy->block_elements, n = block_length(copy, k);
    void *block;
    SAR_TRY(sar_pinned_ring_block(copy->ring, k, &block));
    memcpy((char *)copy->host.value + copy->arrived * copy->element_size, block, n * copy->element_size);
    memcpy((char *)copy->host.index + copy->arrived * copy->index_size,
           (char *)block + copy->block_elements * copy->element_size, n * copy->index_size);
    copy->arrived += n;
    return queue_next_block(copy);
}

enum sar_status sar_d2h_copy_wait(struct sar_d2h_copy *copy, size_t n)
{
    while (copy->arrived < n)
        SAR_TRY(drain_next_block(copy));
    return SAR_OK;
}

void sar_d2h_copy_close(struct sar_d2h_copy *copy)
{
    (void)sar_pinned_ring_release(copy->ring);
    if (copy->device.index != NULL)
        copy->ctx.accelerator->stream_ops->release(copy->ctx.device_id, copy->device.index, copy->ctx.stream);
    if (copy->device.value != NULL)
        copy->ctx.accelerator->stream_ops->release(copy->ctx.device_id, copy->device.value, copy->ctx.stream);
    *copy = (struct sar_d2h_copy){ 0 };
}
