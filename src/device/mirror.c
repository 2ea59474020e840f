/* SPDX-License-Identifier: BSD-3-Clause */
/* Pinning takes milliseconds, so pinned memory is kept in a list: blocks whose sizes are powers of two, of
 * which a mirror gets the first that is of its size. */

#include "device/mirror.h"

#include <pthread.h>
#include <stdint.h>

enum { LEAST = 4096 };

/* What stands in the first SAR_MIRROR_HEAD bytes of a block. */
struct block {
    const struct sar_accelerator *accelerator;
    struct block *next;
    size_t size;
};

_Static_assert(sizeof(struct block) <= SAR_MIRROR_HEAD, "what follows is aligned to as many bytes");

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct block *blocks; /* that nobody has */

static struct block *find(size_t size)
{
    struct block *found = NULL;
    pthread_mutex_lock(&lock);
    for (struct block **at = &blocks; *at != NULL && found == NULL; at = &(*at)->next) {
        if ((*at)->size == size) {
            found = *at;
            *at = found->next;
            break;
        }
    }
    pthread_mutex_unlock(&lock);
    return found;
}

static enum sar_status make(const struct sar_accelerator *accelerator, size_t size, struct block **block)
{
    void *memory;
    SAR_TRY(accelerator->allocate_pinned(size, &memory));
    *block = memory;
    **block = (struct block){ .accelerator = accelerator, .size = size };
    return SAR_OK;
}

enum sar_status sar_mirror_take(const struct sar_memory *memory, const void *device, size_t bytes,
                                struct sar_mirror *mirror)
{
    size_t size = LEAST;
    if (bytes > SIZE_MAX / 4)
        return SAR_NO_MEMORY;
    while (size < bytes + SAR_MIRROR_HEAD)
        size *= 2;
    struct block *block = find(size);
    if (block == NULL)
        SAR_TRY(make(memory->accelerator, size, &block));
    *mirror = (struct sar_mirror){ .device = (void *)(uintptr_t)device,
                                   .host = (char *)block + SAR_MIRROR_HEAD,
                                   .bytes = bytes };
    return SAR_OK;
}

void sar_mirror_release(struct sar_mirror *mirror)
{
    if (mirror->host == NULL)
        return;
    struct block *block = (struct block *)((char *)mirror->host - SAR_MIRROR_HEAD);
    *mirror = (struct sar_mirror){ 0 };
    pthread_mutex_lock(&lock);
    block->next = blocks;
    blocks = block;
    pthread_mutex_unlock(&lock);
}

static enum sar_status queue(const struct sar_memory *memory, void *to, const void *from, size_t bytes)
{
    return bytes == 0 ? SAR_OK : memory->accelerator->copy(memory->place, to, from, bytes, memory->stream);
}

enum sar_status sar_mirrors_queue_read(const struct sar_memory *memory, const struct sar_mirror mirrors[],
                                       size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (mirrors[i].in)
            SAR_TRY(queue(memory, mirrors[i].host, mirrors[i].device, mirrors[i].bytes));
    return SAR_OK;
}

enum sar_status sar_mirrors_queue_write(const struct sar_memory *memory, const struct sar_mirror mirrors[],
                                        size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (mirrors[i].out)
            SAR_TRY(queue(memory, mirrors[i].device, mirrors[i].host, mirrors[i].bytes));
    return SAR_OK;
}

enum sar_status sar_mirrors_read(const struct sar_memory *memory, const struct sar_mirror mirrors[], size_t n)
{
    SAR_TRY(sar_mirrors_queue_read(memory, mirrors, n));
    return memory->accelerator->wait(memory->place, memory->stream);
}

enum sar_status sar_mirrors_write(const struct sar_memory *memory, const struct sar_mirror mirrors[],
                                  size_t n)
{
    bool any = false;
    for (size_t i = 0; i < n; i++)
        any |= mirrors[i].out;
    SAR_TRY(sar_mirrors_queue_write(memory, mirrors, n));
    return any ? memory->accelerator->wait(memory->place, memory->stream) : SAR_OK;
}

void sar_mirror_cleanup(void)
{
    pthread_mutex_lock(&lock);
    while (blocks != NULL) {
        struct block *block = blocks;
        blocks = block->next;
        block->accelerator->release_pinned(block);
    }
    pthread_mutex_unlock(&lock);
}
