/* SPDX-License-Identifier: BSD-3-Clause */
#include "device/allocators.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* HEADER: bytes before each pinned piece, which hold its struct sar_host_copy. */
enum { SMALLEST_BLOCK = 4096 /* bytes */, HEADER = SAR_ALIGNMENT };

_Static_assert(sizeof(struct sar_host_copy) <= HEADER, "the header holds the host copy");

struct sar_device_block {
    const struct sar_accelerator *accelerator;
    int device_id;
    void *memory;
    size_t size;
    struct sar_device_block *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sar_device_block *cached; /* blocks that calls may take */

static bool fits(const struct sar_device_block *block, const struct sar_device_ctx *ctx, size_t size)
{
    return block->accelerator == ctx->accelerator && block->device_id == ctx->device_id &&
           block->size == size;
}

static struct sar_device_block *find(const struct sar_device_ctx *ctx, size_t size)
{
    pthread_mutex_lock(&lock);
    struct sar_device_block **at = &cached, *found;
    while (*at != NULL && !fits(*at, ctx, size))
        at = &(*at)->next;
    found = *at;
    if (found != NULL)
        *at = found->next;
    pthread_mutex_unlock(&lock);
    return found;
}

static void free_block(struct sar_device_block *block)
{
    block->accelerator->release(block->device_id, block->memory);
    free(block);
}

/* Frees the cached blocks of other sizes if the device has no memory left. */
static enum sar_status make(const struct sar_device_ctx *ctx, size_t size, struct sar_device_block **made)
{
    struct sar_device_block *block = malloc(sizeof *block);
    if (block == NULL)
        return SAR_NO_MEMORY;
    *block = (struct sar_device_block){ .accelerator = ctx->accelerator,
                                        .device_id = ctx->device_id,
                                        .size = size };
    enum sar_status status = ctx->accelerator->allocate(ctx->device_id, size, &block->memory);
    if (status == SAR_NO_MEMORY) {
        sar_device_blocks_cleanup();
        status = ctx->accelerator->allocate(ctx->device_id, size, &block->memory);
    }
    if (status == SAR_OK)
        *made = block;
    else
        free(block);
    return status;
}

enum sar_status sar_device_blocks_alloc(struct sar_device_blocks *blocks, size_t bytes, void **memory)
{
    size_t size = SMALLEST_BLOCK;
    if (bytes > SIZE_MAX / 4)
        return SAR_NO_MEMORY;
    while (size < bytes)
        size *= 2;
    struct sar_device_block *block = find(blocks->ctx, size);
    if (block == NULL)
        SAR_TRY(make(blocks->ctx, size, &block));
    block->next = blocks->blocks;
    blocks->blocks = block;
    *memory = block->memory;
    return SAR_OK;
}

static void *alloc_device(struct sar_allocator *allocator, size_t *bytes)
{
    void *memory;
    return sar_device_blocks_alloc((struct sar_device_blocks *)allocator, *bytes, &memory) == SAR_OK ? memory
                                                                                                     : NULL;
}

static void release_nothing(struct sar_allocator *allocator, void *memory)
{
    (void)allocator, (void)memory;
}

struct sar_device_blocks sar_device_blocks_make(const struct sar_device_ctx *ctx)
{
    return (struct sar_device_blocks){ .allocator = { alloc_device, release_nothing }, .ctx = ctx };
}

static void cache_block(struct sar_device_block *block)
{
    pthread_mutex_lock(&lock);
    block->next = cached;
    cached = block;
    pthread_mutex_unlock(&lock);
}

/* Freeing is safe even if the device still uses a block: CUDA waits for the device first. */
void sar_device_blocks_release(struct sar_device_blocks *blocks, bool lost)
{
    struct sar_device_block *block;
    while ((block = blocks->blocks) != NULL) {
        blocks->blocks = block->next;
        (lost ? free_block : cache_block)(block);
    }
}

void sar_device_blocks_cleanup(void)
{
    pthread_mutex_lock(&lock);
    struct sar_device_block *block = cached, *next;
    cached = NULL;
    pthread_mutex_unlock(&lock);
    for (; block != NULL; block = next) {
        next = block->next;
        free_block(block);
    }
}

static void *alloc_pinned(struct sar_allocator *allocator, size_t *bytes)
{
    const struct sar_pinned_allocator *pinned = (const struct sar_pinned_allocator *)allocator;
    struct sar_host_copy copy;
    if (*bytes > SIZE_MAX - HEADER ||
        sar_host_copy_alloc_bounded(pinned->ctx, *bytes + HEADER, pinned->limit, &copy) != SAR_OK)
        return NULL;
    memcpy(copy.host, &copy, sizeof copy);
    *bytes = copy.bytes - HEADER;
    return (unsigned char *)copy.host + HEADER;
}

static void release_pinned(struct sar_allocator *allocator, void *memory)
{
    const struct sar_pinned_allocator *pinned = (const struct sar_pinned_allocator *)allocator;
    struct sar_host_copy copy;
    memcpy(&copy, (unsigned char *)memory - HEADER, sizeof copy);
    if (pinned->lost)
        sar_host_copy_abandon(&copy);
    else
        sar_host_copy_release(&copy);
}

struct sar_pinned_allocator sar_pinned_allocator_make(const struct sar_device_ctx *ctx, size_t limit)
{
    return (struct sar_pinned_allocator){ .allocator = { alloc_pinned, release_pinned },
                                          .ctx = ctx,
                                          .limit = limit };
}
