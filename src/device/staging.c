/* SPDX-License-Identifier: BSD-3-Clause */
/* What a staging ring has of its own, two streams and an event a block, takes long to make, so rings are
 * kept in a list. Their blocks are the pool's (mirror.h), and go back there after each use. */

#include "device/staging.h"

#include <pthread.h>
#include <stdlib.h>

enum { LANES = 2, ALIGNMENT = 64 };

_Static_assert(SAR_STAGING_BLOCKS % LANES == 0, "a piece of memory belongs to one lane");

struct block {
    struct sar_mirror memory;
    void *event;
    bool marked; /* the event stands for what is queued */
};

struct sar_staging {
    struct sar_memory memory;
    size_t bytes;
    void *lane[LANES], *start;
    struct block block[SAR_STAGING_BLOCKS];
    struct sar_staging *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sar_staging *kept; /* that nobody has */

size_t sar_staging_room(uint64_t pinned)
{
    return (size_t)pinned / ALIGNMENT * ALIGNMENT;
}

static const struct sar_lanes *lanes_of(const struct sar_staging *staging)
{
    return staging->memory.accelerator->lanes;
}

static struct sar_staging *find(const struct sar_memory *memory)
{
    struct sar_staging *found = NULL;
    pthread_mutex_lock(&lock);
    for (struct sar_staging **at = &kept; *at != NULL; at = &(*at)->next) {
        if ((*at)->memory.accelerator == memory->accelerator && (*at)->memory.place == memory->place) {
            found = *at;
            *at = found->next;
            break;
        }
    }
    pthread_mutex_unlock(&lock);
    return found;
}

static void release_blocks(struct sar_staging *staging)
{
    for (int i = 0; i < SAR_STAGING_BLOCKS; i++)
        sar_mirror_release(&staging->block[i].memory);
}

static void close_staging(struct sar_staging *staging)
{
    const struct sar_lanes *lanes = lanes_of(staging);
    int place = staging->memory.place;
    for (int i = 0; i < LANES; i++)
        if (staging->lane[i] != NULL)
            lanes->close(place, staging->lane[i]);
    for (int i = 0; i < SAR_STAGING_BLOCKS; i++)
        if (staging->block[i].event != NULL)
            lanes->drop_event(place, staging->block[i].event);
    if (staging->start != NULL)
        lanes->drop_event(place, staging->start);
    release_blocks(staging);
    free(staging);
}

static enum sar_status open_lanes(struct sar_staging *staging)
{
    const struct sar_lanes *lanes = lanes_of(staging);
    for (int i = 0; i < LANES; i++)
        SAR_TRY(lanes->open(staging->memory.place, &staging->lane[i]));
    for (int i = 0; i < SAR_STAGING_BLOCKS; i++)
        SAR_TRY(lanes->make_event(staging->memory.place, &staging->block[i].event));
    return lanes->make_event(staging->memory.place, &staging->start);
}

static enum sar_status make(const struct sar_memory *memory, struct sar_staging **made)
{
    struct sar_staging *staging = calloc(1, sizeof *staging);
    if (staging == NULL)
        return SAR_NO_MEMORY;
    staging->memory = *memory;
    enum sar_status status = open_lanes(staging);
    if (status == SAR_OK)
        *made = staging;
    else
        close_staging(staging);
    return status;
}

static enum sar_status follow(const struct sar_staging *staging, void *stream)
{
    const struct sar_lanes *lanes = lanes_of(staging);
    SAR_TRY(lanes->record(staging->memory.place, staging->start, stream));
    for (int i = 0; i < LANES; i++)
        SAR_TRY(lanes->follow(staging->memory.place, staging->start, staging->lane[i]));
    return SAR_OK;
}

enum sar_status sar_staging_take(const struct sar_memory *memory, size_t bytes, struct sar_staging **taken)
{
    struct sar_staging *staging = find(memory);
    if (staging == NULL)
        SAR_TRY(make(memory, &staging));
    staging->bytes = bytes;
    staging->memory.stream = memory->stream;
    enum sar_status status = follow(staging, memory->stream);
    if (status == SAR_OK)
        *taken = staging;
    else
        close_staging(staging);
    return status;
}

static void keep(struct sar_staging *staging)
{
    pthread_mutex_lock(&lock);
    staging->next = kept;
    kept = staging;
    pthread_mutex_unlock(&lock);
}

static void abandon_blocks(struct sar_staging *staging)
{
    for (int i = 0; i < SAR_STAGING_BLOCKS; i++)
        sar_mirror_abandon(&staging->block[i].memory);
}

enum sar_status sar_staging_give_back(struct sar_staging *staging)
{
    enum sar_status status = SAR_OK;
    if (staging == NULL)
        return SAR_OK;
    for (int i = 0; i < LANES; i++) {
        enum sar_status waited = staging->memory.accelerator->wait(staging->memory.place, staging->lane[i]);
        status = status == SAR_OK ? waited : status;
    }
    for (int i = 0; i < SAR_STAGING_BLOCKS; i++)
        staging->block[i].marked = false;
    if (status == SAR_OK) {
        release_blocks(staging);
        keep(staging);
    } else {
        abandon_blocks(staging);
        close_staging(staging);
    }
    return status;
}

enum sar_status sar_staging_block(struct sar_staging *staging, size_t k, void **block)
{
    struct sar_mirror *memory = &staging->block[k % SAR_STAGING_BLOCKS].memory;
    if (memory->host == NULL)
        SAR_TRY(sar_mirror_take(&staging->memory, NULL, staging->bytes, memory));
    SAR_TRY(sar_staging_await(staging, k));
    *block = memory->host;
    return SAR_OK;
}

void *sar_staging_lane(const struct sar_staging *staging, size_t k)
{
    return staging->lane[k % LANES];
}

enum sar_status sar_staging_copy(struct sar_staging *staging, size_t k, void *to, const void *from,
                                 size_t bytes)
{
    const struct sar_memory *memory = &staging->memory;
    if (bytes == 0)
        return SAR_OK;
    return memory->accelerator->copy(memory->place, to, from, bytes, sar_staging_lane(staging, k));
}

enum sar_status sar_staging_mark(struct sar_staging *staging, size_t k)
{
    struct block *block = &staging->block[k % SAR_STAGING_BLOCKS];
    SAR_TRY(lanes_of(staging)->record(staging->memory.place, block->event, sar_staging_lane(staging, k)));
    block->marked = true;
    return SAR_OK;
}

enum sar_status sar_staging_await(struct sar_staging *staging, size_t k)
{
    struct block *block = &staging->block[k % SAR_STAGING_BLOCKS];
    if (!block->marked)
        return SAR_OK;
    SAR_TRY(lanes_of(staging)->await(staging->memory.place, block->event));
    block->marked = false;
    return SAR_OK;
}

enum sar_status sar_staging_follow(struct sar_staging *staging, size_t k)
{
    const struct sar_lanes *lanes = lanes_of(staging);
    const struct sar_memory *memory = &staging->memory;
    SAR_TRY(lanes->record(memory->place, staging->start, memory->stream));
    return lanes->follow(memory->place, staging->start, sar_staging_lane(staging, k));
}

enum sar_status sar_staging_join(struct sar_staging *staging, size_t k)
{
    const struct sar_memory *memory = &staging->memory;
    void *event = staging->block[k % SAR_STAGING_BLOCKS].event;
    return lanes_of(staging)->follow(memory->place, event, memory->stream);
}

void sar_staging_cleanup(void)
{
    pthread_mutex_lock(&lock);
    while (kept != NULL) {
        struct sar_staging *staging = kept;
        kept = staging->next;
        close_staging(staging);
    }
    pthread_mutex_unlock(&lock);
}
