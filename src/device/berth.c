/* SPDX-License-Identifier: BSD-3-Clause */
#include "device/berth.h"

#include <pthread.h>
#include <stdlib.h>

enum { LEAST = 4096 };

struct sar_berth {
    const struct sar_accelerator *accelerator;
    int place;
    void *memory;
    size_t size;
    struct sar_berth *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sar_berth *kept; /* that nobody has */

static bool fits(const struct sar_berth *berth, const struct sar_memory *memory, size_t size)
{
    return berth->accelerator == memory->accelerator && berth->place == memory->place && berth->size == size;
}

static struct sar_berth *find(const struct sar_memory *memory, size_t size)
{
    pthread_mutex_lock(&lock);
    struct sar_berth **at = &kept, *found;
    while (*at != NULL && !fits(*at, memory, size))
        at = &(*at)->next;
    found = *at;
    if (found != NULL)
        *at = found->next;
    pthread_mutex_unlock(&lock);
    return found;
}

static void drop(struct sar_berth *berth)
{
    berth->accelerator->release(berth->place, berth->memory);
    free(berth);
}

static enum sar_status allocate(const struct sar_memory *memory, size_t size, void **made)
{
    return memory->accelerator->allocate(memory->place, size, made);
}

/* Where there is no memory left, what is kept for other sizes goes. */
static enum sar_status make(const struct sar_memory *memory, size_t size, struct sar_berth **made)
{
    struct sar_berth *berth = malloc(sizeof *berth);
    if (berth == NULL)
        return SAR_NO_MEMORY;
    *berth = (struct sar_berth){ .accelerator = memory->accelerator, .place = memory->place, .size = size };
    enum sar_status status = allocate(memory, size, &berth->memory);
    if (status == SAR_NO_MEMORY) {
        sar_berths_cleanup();
        status = allocate(memory, size, &berth->memory);
    }
    if (status == SAR_OK)
        *made = berth;
    else
        free(berth);
    return status;
}

enum sar_status sar_berths_take(struct sar_berths *berths, size_t bytes, void **memory)
{
    size_t size = LEAST;
    if (bytes > SIZE_MAX / 4)
        return SAR_NO_MEMORY;
    while (size < bytes)
        size *= 2;
    struct sar_berth *berth = find(berths->memory, size);
    if (berth == NULL)
        SAR_TRY(make(berths->memory, size, &berth));
    berth->next = berths->taken;
    berths->taken = berth;
    *memory = berth->memory;
    return SAR_OK;
}

static void *take(struct sar_supply *supply, size_t *bytes)
{
    void *memory;
    return sar_berths_take((struct sar_berths *)supply, *bytes, &memory) == SAR_OK ? memory : NULL;
}

static void leave(struct sar_supply *supply, void *memory)
{
    (void)supply, (void)memory;
}

struct sar_berths sar_berths_make(const struct sar_memory *memory)
{
    return (struct sar_berths){ .supply = { take, leave }, .memory = memory };
}

static void keep(struct sar_berth *berth)
{
    pthread_mutex_lock(&lock);
    berth->next = kept;
    kept = berth;
    pthread_mutex_unlock(&lock);
}

/* CUDA waits for the device before it gives memory to another. */
void sar_berths_end(struct sar_berths *berths, bool lost)
{
    struct sar_berth *berth;
    while ((berth = berths->taken) != NULL) {
        berths->taken = berth->next;
        (lost ? drop : keep)(berth);
    }
}

void sar_berths_cleanup(void)
{
    struct sar_berth *berth;
    do {
        pthread_mutex_lock(&lock);
        berth = kept;
        kept = berth == NULL ? NULL : berth->next;
        pthread_mutex_unlock(&lock);
        if (berth != NULL)
            drop(berth);
    } while (berth != NULL);
}
