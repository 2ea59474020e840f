/* SPDX-License-Identifier: BSD-3-Clause */
/* Pinning memory takes milliseconds, so a list keeps the blocks that are not in use. Their sizes are powers
 * of two; an allocation takes the first block of its size. Systems limit how much memory a process may pin.
 * Blocks that could not be pinned serve as well, but copies from them are slower, so pinned blocks are taken
 * first.
 *
 * An allocation with a limit may unpin blocks of other sizes. It does so MAX_EVICTIONS times at most: tensors
 * that alternate, and do not fit together, would otherwise unpin each other's blocks in every call. */

#include "device/host_copy.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/log.h"

enum { SMALLEST_BLOCK = 4096 /* bytes */, MAX_EVICTIONS = 256 };

/* Kinds of allocations, which do not share blocks: without a limit, within the limit, beyond the limit. */
enum kind { UNLIMITED, LIMITED, BEYOND_LIMIT };

struct sar_pinned_block {
    const struct sar_accelerator *accelerator; /* pinned the memory; NULL if it is not pinned */
    int device_id;
    struct sar_pinned_block *next;
    void *memory;
    size_t size;
    enum kind kind;
    bool abandoned; /* a device may still write to the memory */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sar_pinned_block *unused; /* blocks that allocations may take */
static struct sar_pinned_block
    *abandoned;              /* blocks that stay reachable for leak checkers, and nothing more */
static size_t limited_bytes; /* bytes pinned by allocations with a limit */
static unsigned evictions;   /* LIMITED blocks freed for other sizes */

/* Unlinks the first unused block of a kind and size; size 0 matches all. The caller holds the lock. */
static struct sar_pinned_block *unlink_block(enum kind kind, size_t size, bool pinned)
{
    for (struct sar_pinned_block **at = &unused; *at != NULL; at = &(*at)->next) {
        struct sar_pinned_block *found = *at;
        bool fits = size == 0 || found->size == size;
        if (found->kind == kind && fits && (found->accelerator != NULL) == pinned) {
            *at = found->next;
            return found;
        }
    }
    return NULL;
}

static struct sar_pinned_block *find_block(enum kind kind, size_t size, bool pinned)
{
    pthread_mutex_lock(&lock);
    struct sar_pinned_block *found = unlink_block(kind, size, pinned);
    pthread_mutex_unlock(&lock);
    return found;
}

static void count_limited(size_t bytes, bool more)
{
    pthread_mutex_lock(&lock);
    limited_bytes = more ? limited_bytes + bytes : limited_bytes - bytes;
    pthread_mutex_unlock(&lock);
}

static void free_block(struct sar_pinned_block *block)
{
    if (block->kind == LIMITED)
        count_limited(block->size, false);
    if (block->accelerator == NULL)
        free(block->memory);
    else
        block->accelerator->release_pinned(block->device_id, block->memory);
    free(block);
}

static enum sar_status make_block(const struct sar_device_ctx *ctx, enum kind kind, size_t size,
                                  struct sar_pinned_block **made)
{
    struct sar_pinned_block *block = malloc(sizeof *block);
    if (block == NULL)
        return SAR_NO_MEMORY;
    *block = (struct sar_pinned_block){
        .accelerator = ctx->accelerator, .device_id = ctx->device_id, .size = size, .kind = kind
    };
    bool pin = kind != BEYOND_LIMIT;
    if (pin && ctx->accelerator->allocate_pinned(ctx->device_id, size, &block->memory) != SAR_OK) {
        SAR_LOG(INFO, DEVICE, "%zu bytes could not be pinned: they are copied from memory that is not", size);
        pin = false;
    }
    if (!pin) {
        block->accelerator = NULL;
        block->memory = aligned_alloc(SMALLEST_BLOCK, size);
    }
    if (block->memory == NULL) {
        free(block);
        return SAR_NO_MEMORY;
    }
    *made = block;
    return SAR_OK;
}

static enum sar_status take_block(const struct sar_device_ctx *ctx, enum kind kind, size_t size,
                                  struct sar_host_copy *copy)
{
    struct sar_pinned_block *block = find_block(kind, size, true);
    if (block == NULL)
        block = find_block(kind, size, false);
    if (block == NULL)
        SAR_TRY(make_block(ctx, kind, size, &block));
    *copy = (struct sar_host_copy){ .host = block->memory, .bytes = size, .block = block };
    return SAR_OK;
}

static size_t block_size(size_t bytes)
{
    size_t size = SMALLEST_BLOCK;
    while (size < bytes)
        size *= 2;
    return size;
}

enum sar_status sar_host_copy_alloc(const struct sar_device_ctx *ctx, const void *device, size_t bytes,
                                    struct sar_host_copy *copy)
{
    if (bytes > SIZE_MAX / 4)
        return SAR_NO_MEMORY;
    SAR_TRY(take_block(ctx, UNLIMITED, block_size(bytes), copy));
    copy->device = (void *)(uintptr_t)device;
    copy->bytes = bytes;
    return SAR_OK;
}

enum sar_status sar_host_copy_alloc_pinned(const struct sar_device_ctx *ctx, size_t bytes,
                                           struct sar_host_copy *copy)
{
    if (bytes > SIZE_MAX / 4)
        return SAR_NO_MEMORY;
    struct sar_pinned_block *block = find_block(UNLIMITED, block_size(bytes), true);
    if (block == NULL)
        SAR_TRY(make_block(ctx, UNLIMITED, block_size(bytes), &block));
    if (block->accelerator == NULL) {
        free_block(block);
        return SAR_NO_MEMORY;
    }
    *copy = (struct sar_host_copy){ .host = block->memory, .bytes = bytes, .block = block };
    return SAR_OK;
}

/* Unlinks a LIMITED block if `size` more bytes exceed the limit; NULL if none is left, or too many were
 * evicted. */
static struct sar_pinned_block *evict_block(size_t size, size_t limit)
{
    struct sar_pinned_block *block = NULL;
    pthread_mutex_lock(&lock);
    if (limited_bytes + size > limit && evictions < MAX_EVICTIONS) {
        block = unlink_block(LIMITED, 0, true);
        evictions += block != NULL;
    }
    pthread_mutex_unlock(&lock);
    return block;
}

/* Counts `size` more bytes as pinned if the limit allows, after evicting unused blocks. Returns false
 * otherwise. */
static bool reserve(size_t size, size_t limit)
{
    struct sar_pinned_block *block;
    while (size <= limit && (block = evict_block(size, limit)) != NULL)
        free_block(block);
    pthread_mutex_lock(&lock);
    bool fits = limited_bytes + size <= limit;
    limited_bytes += fits ? size : 0;
    pthread_mutex_unlock(&lock);
    return fits;
}

/* Makes a block for bytes that `reserve` has counted. A block that cannot be pinned does not count. */
static enum sar_status make_limited_block(const struct sar_device_ctx *ctx, size_t size,
                                          struct sar_pinned_block **made)
{
    struct sar_pinned_block *block = NULL;
    enum sar_status status = make_block(ctx, LIMITED, size, &block);
    if (status != SAR_OK || block->accelerator == NULL)
        count_limited(size, false);
    SAR_TRY(status);
    if (block->accelerator == NULL)
        block->kind = BEYOND_LIMIT;
    *made = block;
    return SAR_OK;
}

enum sar_status sar_host_copy_alloc_bounded(const struct sar_device_ctx *ctx, size_t bytes, size_t limit,
                                            struct sar_host_copy *copy)
{
    if (bytes > SIZE_MAX / 4)
        return SAR_NO_MEMORY;
    size_t size = block_size(bytes);
    struct sar_pinned_block *block = find_block(LIMITED, size, true);
    if (block == NULL) {
        if (!reserve(size, limit))
            return take_block(ctx, BEYOND_LIMIT, size, copy);
        SAR_TRY(make_limited_block(ctx, size, &block));
    }
    *copy = (struct sar_host_copy){ .host = block->memory, .bytes = size, .block = block };
    return SAR_OK;
}

void sar_host_copy_release(struct sar_host_copy *copy)
{
    struct sar_pinned_block *block = copy->block;
    *copy = (struct sar_host_copy){ 0 };
    if (block == NULL)
        return;
    pthread_mutex_lock(&lock);
    struct sar_pinned_block **list = block->abandoned ? &abandoned : &unused;
    block->next = *list;
    *list = block;
    pthread_mutex_unlock(&lock);
}

void sar_host_copy_abandon(struct sar_host_copy *copy)
{
    if (copy->block != NULL)
        copy->block->abandoned = true;
    sar_host_copy_release(copy);
}

bool sar_host_copies_are_pinned(const struct sar_host_copy copies[], size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (copies[i].block != NULL && copies[i].block->accelerator == NULL)
            return false;
    return true;
}

static enum sar_status queue(const struct sar_device_ctx *ctx, void *to, const void *from, size_t bytes)
{
    return bytes == 0 ? SAR_OK : ctx->accelerator->copy(ctx->device_id, to, from, bytes, ctx->stream);
}

enum sar_status sar_host_copies_queue_read(const struct sar_device_ctx *ctx,
                                           const struct sar_host_copy copies[], size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (copies[i].copy_in)
            SAR_TRY(queue(ctx, copies[i].host, copies[i].device, copies[i].bytes));
    return SAR_OK;
}

enum sar_status sar_host_copies_queue_write(const struct sar_device_ctx *ctx,
                                            const struct sar_host_copy copies[], size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (copies[i].copy_out)
            SAR_TRY(queue(ctx, copies[i].device, copies[i].host, copies[i].bytes));
    return SAR_OK;
}

/* Waits even if queueing failed, since copies queued before the failure may be in progress. */
static enum sar_status wait_queued(const struct sar_device_ctx *ctx, const struct sar_host_copy copies[],
                                   size_t n, enum sar_status queued)
{
    enum sar_status waited = ctx->accelerator->wait(ctx->device_id, ctx->stream);
    for (size_t i = 0; i < n && waited != SAR_OK; i++)
        if (copies[i].block != NULL)
            copies[i].block->abandoned = true;
    return queued == SAR_OK ? waited : queued;
}

enum sar_status sar_host_copies_read(const struct sar_device_ctx *ctx, const struct sar_host_copy copies[],
                                     size_t n)
{
    return wait_queued(ctx, copies, n, sar_host_copies_queue_read(ctx, copies, n));
}

enum sar_status sar_host_copies_write(const struct sar_device_ctx *ctx, const struct sar_host_copy copies[],
                                      size_t n)
{
    bool any = false;
    for (size_t i = 0; i < n; i++)
        any |= copies[i].copy_out;
    if (!any)
        return SAR_OK;
    return wait_queued(ctx, copies, n, sar_host_copies_queue_write(ctx, copies, n));
}

void sar_host_copy_cleanup(void)
{
    pthread_mutex_lock(&lock);
    struct sar_pinned_block *block = unused, *next;
    unused = NULL;
    pthread_mutex_unlock(&lock);
    for (; block != NULL; block = next) {
        next = block->next;
        free_block(block);
    }
}
