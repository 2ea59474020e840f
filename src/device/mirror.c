/* SPDX-License-Identifier: BSD-3-Clause */
/* Pinning takes milliseconds, so pinned memory is kept in a list: blocks whose sizes are powers of two, of
 * which a mirror gets the first that is of its size. Systems limit how much is pinned; what is not serves as
 * well, and is slower. */

#include "device/mirror.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/log.h"

enum { LEAST = 4096 };

struct sar_block {
    const struct sar_accelerator *accelerator; /* that pinned it, or NULL */
    struct sar_block *next;
    void *memory;
    size_t size;
    bool lost; /* a device may be writing to it */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sar_block *blocks; /* that nobody has */
static struct sar_block *lost;   /* that nobody may have again */

static struct sar_block *find(size_t size)
{
    struct sar_block *found = NULL;
    pthread_mutex_lock(&lock);
    for (struct sar_block **at = &blocks; *at != NULL && found == NULL; at = &(*at)->next) {
        if ((*at)->size == size) {
            found = *at;
            *at = found->next;
            break;
        }
    }
    pthread_mutex_unlock(&lock);
    return found;
}

static enum sar_status make(const struct sar_memory *memory, size_t size, struct sar_block **made)
{
    struct sar_block *block = malloc(sizeof *block);
    if (block == NULL)
        return SAR_NO_MEMORY;
    *block = (struct sar_block){ .accelerator = memory->accelerator, .size = size };
    if (memory->accelerator->allocate_pinned(memory->place, size, &block->memory) != SAR_OK) {
        SAR_LOG(INFO, DEVICE, "%zu bytes could not be pinned: they are copied from memory that is not", size);
        block->accelerator = NULL;
        block->memory = aligned_alloc(LEAST, size);
    }
    if (block->memory == NULL) {
        free(block);
        return SAR_NO_MEMORY;
    }
    *made = block;
    return SAR_OK;
}

static void drop(struct sar_block *block)
{
    if (block->accelerator == NULL)
        free(block->memory);
    else
        block->accelerator->release_pinned(block->memory);
    free(block);
}

enum sar_status sar_mirror_take(const struct sar_memory *memory, const void *device, size_t bytes,
                                struct sar_mirror *mirror)
{
    size_t size = LEAST;
    if (bytes > SIZE_MAX / 4)
        return SAR_NO_MEMORY;
    while (size < bytes)
        size *= 2;
    struct sar_block *block = find(size);
    if (block == NULL)
        SAR_TRY(make(memory, size, &block));
    *mirror = (struct sar_mirror){
        .device = (void *)(uintptr_t)device, .host = block->memory, .bytes = bytes, .block = block
    };
    return SAR_OK;
}

void sar_mirror_release(struct sar_mirror *mirror)
{
    struct sar_block *block = mirror->block;
    *mirror = (struct sar_mirror){ 0 };
    if (block == NULL)
        return;
    pthread_mutex_lock(&lock);
    struct sar_block **list = block->lost ? &lost : &blocks;
    block->next = *list;
    *list = block;
    pthread_mutex_unlock(&lock);
}

void sar_mirror_abandon(struct sar_mirror *mirror)
{
    if (mirror->block != NULL)
        mirror->block->lost = true;
    sar_mirror_release(mirror);
}

bool sar_mirrors_are_pinned(const struct sar_mirror mirrors[], size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (mirrors[i].block != NULL && mirrors[i].block->accelerator == NULL)
            return false;
    return true;
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

/* Of what was queued before something failed as well. */
static enum sar_status settle(const struct sar_memory *memory, const struct sar_mirror mirrors[], size_t n,
                              enum sar_status queued)
{
    enum sar_status waited = memory->accelerator->wait(memory->place, memory->stream);
    for (size_t i = 0; i < n && waited != SAR_OK; i++)
        if (mirrors[i].block != NULL)
            mirrors[i].block->lost = true;
    return queued == SAR_OK ? waited : queued;
}

enum sar_status sar_mirrors_read(const struct sar_memory *memory, const struct sar_mirror mirrors[], size_t n)
{
    return settle(memory, mirrors, n, sar_mirrors_queue_read(memory, mirrors, n));
}

enum sar_status sar_mirrors_write(const struct sar_memory *memory, const struct sar_mirror mirrors[],
                                  size_t n)
{
    bool any = false;
    for (size_t i = 0; i < n; i++)
        any |= mirrors[i].out;
    if (!any)
        return SAR_OK;
    return settle(memory, mirrors, n, sar_mirrors_queue_write(memory, mirrors, n));
}

void sar_mirror_cleanup(void)
{
    pthread_mutex_lock(&lock);
    while (blocks != NULL) {
        struct sar_block *block = blocks;
        blocks = block->next;
        drop(block);
    }
    pthread_mutex_unlock(&lock);
}
