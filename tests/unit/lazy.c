/* SPDX-License-Identifier: BSD-3-Clause */
#include "lazy.h"

#include <stdlib.h>
#include <string.h>

#include "device/berth.h"
#include "device/staging.h"

enum { JOBS = 4096, BLOCKS = 4096 };

/* Work in a stream: a kernel; or, without one, a wait for another stream. */
static struct job {
    void *stream, *other;
    size_t until;
    lazy_kernel_fn kernel;
    struct lazy_arguments arguments;
    bool done;
} jobs[JOBS];
static size_t jobs_n;

struct event {
    void *stream;
    size_t until;
};

static struct block {
    unsigned char *memory; /* NULL once it was released */
    size_t bytes;
} blocks[BLOCKS];

static int refused;
struct lazy_work lazy_work;
struct lazy_memory lazy_memory;

static enum sar_status function(void)
{
    return ++lazy_work.functions == refused ? SAR_DEVICE_FAILED : SAR_OK;
}

void lazy_begin(int refuse)
{
    jobs_n = 0;
    refused = refuse;
    lazy_work = (struct lazy_work){ 0 };
}

/* All that is in a stream among the first jobs, and what it waits for. */
static void run_until(void *stream, size_t until)
{
    for (struct job *job = jobs; job < jobs + until; job++) {
        if (job->stream != stream || job->done)
            continue;
        if (job->kernel == NULL) {
            run_until(job->other, job->until);
        } else {
            job->kernel(&job->arguments);
            lazy_work.waiting--;
        }
        job->done = true;
    }
}

void lazy_run(void *stream)
{
    run_until(stream, jobs_n);
}

static enum sar_status add(const struct job *job)
{
    SAR_TRY(function());
    if (jobs_n == JOBS)
        abort();
    jobs[jobs_n++] = *job;
    return SAR_OK;
}

enum sar_status lazy_queue(void *stream, lazy_kernel_fn kernel, const struct lazy_arguments *arguments)
{
    SAR_TRY(add(&(struct job){ .stream = stream, .kernel = kernel, .arguments = *arguments }));
    lazy_work.queued++;
    if (++lazy_work.waiting > lazy_work.most_waiting)
        lazy_work.most_waiting = lazy_work.waiting;
    return SAR_OK;
}

static enum sar_status allocate_pinned(int place, size_t bytes, void **memory)
{
    (void)place;
    SAR_TRY(function());
    if (lazy_memory.pinned_ever == BLOCKS || (*memory = aligned_alloc(64, bytes)) == NULL)
        abort();
    blocks[lazy_memory.pinned_ever++] = (struct block){ *memory, bytes };
    lazy_memory.pinned++;
    lazy_memory.pinned_bytes += bytes;
    if (lazy_memory.pinned_bytes > lazy_memory.pinned_most)
        lazy_memory.pinned_most = lazy_memory.pinned_bytes;
    return SAR_OK;
}

/* The block that an address is in. */
static struct block *find(const void *address)
{
    const unsigned char *at = address;
    for (struct block *b = blocks; b < blocks + lazy_memory.pinned_ever; b++)
        if (b->memory != NULL && at >= b->memory && at < b->memory + b->bytes)
            return b;
    return NULL;
}

static void release_pinned(int place, void *memory)
{
    struct block *block = find(memory);
    (void)place;
    if (block == NULL || block->memory != memory)
        abort();
    free(memory);
    block->memory = NULL;
    lazy_memory.pinned--;
    lazy_memory.pinned_bytes -= block->bytes;
}

bool lazy_is_pinned(const void *address)
{
    return find(address) != NULL;
}

static void copy_bytes(const struct lazy_arguments *a)
{
    memcpy(a->to, a->from, a->bytes);
}

static enum sar_status copy(int place, void *to, const void *from, size_t bytes, void *stream)
{
    (void)place;
    return lazy_queue(stream, copy_bytes, &(struct lazy_arguments){ .to = to, .from = from, .bytes = bytes });
}

/* What is queued is done even where waiting for it fails. */
static enum sar_status wait_for(int place, void *stream)
{
    (void)place;
    lazy_run(stream);
    return function();
}

/* Lanes are events that nobody records. */
static enum sar_status make_event(int place, void **event)
{
    (void)place;
    SAR_TRY(function());
    *event = calloc(1, sizeof(struct event));
    lazy_memory.open++;
    return SAR_OK;
}

static void drop_event(int place, void *event)
{
    (void)place;
    free(event);
    lazy_memory.open--;
}

static enum sar_status record(int place, void *event, void *stream)
{
    (void)place;
    SAR_TRY(function());
    *(struct event *)event = (struct event){ stream, jobs_n };
    return SAR_OK;
}

static enum sar_status follow(int place, void *event, void *stream)
{
    const struct event *of = event;
    (void)place;
    return add(&(struct job){ .stream = stream, .other = of->stream, .until = of->until });
}

static enum sar_status await(int place, void *event)
{
    const struct event *of = event;
    (void)place;
    SAR_TRY(function());
    run_until(of->stream, of->until);
    return SAR_OK;
}

static enum sar_status take(int place, size_t bytes, void *stream, void **memory)
{
    (void)place, (void)stream;
    SAR_TRY(function());
    *memory = malloc(bytes);
    lazy_memory.open++;
    return SAR_OK;
}

/* Behind what is queued in that stream. */
static void give_back(int place, void *memory, void *stream)
{
    (void)place;
    lazy_run(stream);
    free(memory);
    lazy_memory.open--;
}

static enum sar_status allocate(int place, size_t bytes, void **memory)
{
    lazy_memory.arrays_ever++;
    return take(place, bytes, NULL, memory);
}

static void release(int place, void *memory)
{
    (void)place;
    free(memory);
    lazy_memory.open--;
}

static const struct sar_lanes lanes = { make_event, drop_event, make_event, drop_event, record,
                                        follow,     await,      take,       give_back };

struct sar_accelerator lazy_accelerator = { .version = SAR_ACCELERATOR_VERSION,
                                            .allocate = allocate,
                                            .release = release,
                                            .allocate_pinned = allocate_pinned,
                                            .release_pinned = release_pinned,
                                            .copy = copy,
                                            .wait = wait_for,
                                            .lanes = &lanes };

void lazy_end(void)
{
    refused = 0;
    sar_staging_cleanup();
    sar_mirror_cleanup();
    sar_berths_cleanup();
}

int lazy_free_lost(void **state)
{
    (void)state;
    for (size_t i = 0; i < lazy_memory.pinned_ever; i++)
        free(blocks[i].memory);
    return 0;
}
