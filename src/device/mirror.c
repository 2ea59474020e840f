/* SPDX-License-Identifier: BSD-3-Clause */
/* Pinning takes milliseconds, so pinned memory is kept in a list: blocks whose sizes are powers of two, of
 * which a mirror gets the first that is of its size. Systems limit how much is pinned; what is not serves as
 * well, and is slower: it comes after all that is.
 *
 * Of memory with a bound blocks of sizes that are no longer wanted are unpinned for others. That ends after
 * a while: where tensors take turns that have no room side by side, each would unpin the other's blocks. */

#include "device/mirror.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/log.h"

enum { LEAST = 4096, MOST_UNPINNED = 256 };

/* Who may have a block: mirrors without a bound, those with one, and what is beyond it. */
enum kind { FREE, BOUNDED, BEYOND };

struct sar_block {
    const struct sar_accelerator *accelerator; /* that pinned it, or NULL */
    int place;
    struct sar_block *next;
    void *memory;
    size_t size;
    enum kind kind;
    bool lost; /* a device may be writing to it */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sar_block *blocks; /* that nobody has */
static struct sar_block *lost;   /* that nobody may have again */
static size_t bounded;           /* bytes that are pinned with a bound */
static unsigned unpinned;        /* blocks of these that were given up for others */

/* The first block of a kind, of this size unless that is 0, pinned or not. Under the lock. */
static struct sar_block *unlink_one(enum kind kind, size_t size, bool pinned)
{
    for (struct sar_block **at = &blocks; *at != NULL; at = &(*at)->next) {
        struct sar_block *found = *at;
        bool fits = size == 0 || found->size == size;
        if (found->kind == kind && fits && (found->accelerator != NULL) == pinned) {
            *at = found->next;
            return found;
        }
    }
    return NULL;
}

static struct sar_block *find(enum kind kind, size_t size, bool pinned)
{
    pthread_mutex_lock(&lock);
    struct sar_block *found = unlink_one(kind, size, pinned);
    pthread_mutex_unlock(&lock);
    return found;
}

static void count_bounded(size_t bytes, bool more)
{
    pthread_mutex_lock(&lock);
    bounded = more ? bounded + bytes : bounded - bytes;
    pthread_mutex_unlock(&lock);
}

static void drop(struct sar_block *block)
{
    if (block->kind == BOUNDED)
        count_bounded(block->size, false);
    if (block->accelerator == NULL)
        free(block->memory);
    else
        block->accelerator->release_pinned(block->place, block->memory);
    free(block);
}

static enum sar_status make(const struct sar_memory *memory, enum kind kind, size_t size,
                            struct sar_block **made)
{
    struct sar_block *block = malloc(sizeof *block);
    if (block == NULL)
        return SAR_NO_MEMORY;
    *block = (struct sar_block){
        .accelerator = memory->accelerator, .place = memory->place, .size = size, .kind = kind
    };
    bool pin = kind != BEYOND;
    if (pin && memory->accelerator->allocate_pinned(memory->place, size, &block->memory) != SAR_OK) {
        SAR_LOG(INFO, DEVICE, "%zu bytes could not be pinned: they are copied from memory that is not", size);
        pin = false;
    }
    if (!pin) {
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

static enum sar_status take(const struct sar_memory *memory, enum kind kind, size_t size,
                            struct sar_mirror *mirror)
{
    struct sar_block *block = find(kind, size, true);
    if (block == NULL)
        block = find(kind, size, false);
    if (block == NULL)
        SAR_TRY(make(memory, kind, size, &block));
    *mirror = (struct sar_mirror){ .host = block->memory, .bytes = size, .block = block };
    return SAR_OK;
}

static size_t size_of(size_t bytes)
{
    size_t size = LEAST;
    while (size < bytes)
        size *= 2;
    return size;
}

enum sar_status sar_mirror_take(const struct sar_memory *memory, const void *device, size_t bytes,
                                struct sar_mirror *mirror)
{
    if (bytes > SIZE_MAX / 4)
        return SAR_NO_MEMORY;
    SAR_TRY(take(memory, FREE, size_of(bytes), mirror));
    mirror->device = (void *)(uintptr_t)device;
    mirror->bytes = bytes;
    return SAR_OK;
}

enum sar_status sar_mirror_take_pinned(const struct sar_memory *memory, size_t bytes,
                                       struct sar_mirror *mirror)
{
    if (bytes > SIZE_MAX / 4)
        return SAR_NO_MEMORY;
    struct sar_block *block = find(FREE, size_of(bytes), true);
    if (block == NULL)
        SAR_TRY(make(memory, FREE, size_of(bytes), &block));
    if (block->accelerator == NULL) {
        drop(block);
        return SAR_NO_MEMORY;
    }
    *mirror = (struct sar_mirror){ .host = block->memory, .bytes = bytes, .block = block };
    return SAR_OK;
}

/* A block that is to go so that others have room; NULL where none is left, or too many have gone. */
static struct sar_block *next_to_go(size_t size, size_t most)
{
    struct sar_block *block = NULL;
    pthread_mutex_lock(&lock);
    if (bounded + size > most && unpinned < MOST_UNPINNED) {
        block = unlink_one(BOUNDED, 0, true);
        unpinned += block != NULL;
    }
    pthread_mutex_unlock(&lock);
    return block;
}

/* Whether so much more may be pinned, which counts as such then. */
static bool claim(size_t size, size_t most)
{
    struct sar_block *block;
    while (size <= most && (block = next_to_go(size, most)) != NULL)
        drop(block);
    pthread_mutex_lock(&lock);
    bool fits = bounded + size <= most;
    bounded += fits ? size : 0;
    pthread_mutex_unlock(&lock);
    return fits;
}

/* Of bytes that have been claimed. What could not be pinned needs no bound. */
static enum sar_status make_bounded(const struct sar_memory *memory, size_t size, struct sar_block **made)
{
    struct sar_block *block = NULL;
    enum sar_status status = make(memory, BOUNDED, size, &block);
    if (status != SAR_OK || block->accelerator == NULL)
        count_bounded(size, false);
    SAR_TRY(status);
    if (block->accelerator == NULL)
        block->kind = BEYOND;
    *made = block;
    return SAR_OK;
}

enum sar_status sar_mirror_take_bounded(const struct sar_memory *memory, size_t bytes, size_t most,
                                        struct sar_mirror *mirror)
{
    if (bytes > SIZE_MAX / 4)
        return SAR_NO_MEMORY;
    size_t size = size_of(bytes);
    struct sar_block *block = find(BOUNDED, size, true);
    if (block == NULL) {
        if (!claim(size, most))
            return take(memory, BEYOND, size, mirror);
        SAR_TRY(make_bounded(memory, size, &block));
    }
    *mirror = (struct sar_mirror){ .host = block->memory, .bytes = size, .block = block };
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

static struct sar_block *unlink_first(void)
{
    pthread_mutex_lock(&lock);
    struct sar_block *block = blocks;
    blocks = block == NULL ? NULL : block->next;
    pthread_mutex_unlock(&lock);
    return block;
}

void sar_mirror_cleanup(void)
{
    struct sar_block *block;
    while ((block = unlink_first()) != NULL)
        drop(block);
}
