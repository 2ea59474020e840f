/* SPDX-License-Identifier: BSD-3-Clause */
#include "fake_accelerator.h"

#include <stdlib.h>
#include <string.h>

#include "device/allocators.h"
#include "device/pinned_ring.h"

enum { JOBS = 4096, BLOCKS = 4096 };

/* One job of a stream: a kernel, or a wait for another stream if there is no kernel. */
static struct job {
    void *stream, *other;
    size_t until;
    fake_accel_kernel_fn kernel;
    struct fake_accel_args arguments;
    bool done;
} jobs[JOBS];
static size_t jobs_n;

struct event {
    void *stream;
    size_t until;
};

static struct block {
    unsigned char *memory; /* NULL after its release */
    size_t bytes;
} blocks[BLOCKS];

static int refused;
struct fake_accel_work fake_accel_work;
struct fake_accel_memory fake_accel_memory;

static enum sar_status function(void)
{
    return ++fake_accel_work.functions == refused ? SAR_DEVICE_FAILED : SAR_OK;
}

void fake_accel_begin(int refuse)
{
    jobs_n = 0;
    refused = refuse;
    fake_accel_work = (struct fake_accel_work){ 0 };
}

/* Run all jobs of a stream among the first `until` jobs, and the jobs that they depend on. */
static void run_until(void *stream, size_t until)
{
    for (struct job *job = jobs; job < jobs + until; job++) {
        if (job->stream != stream || job->done)
            continue;
        if (job->kernel == NULL) {
            run_until(job->other, job->until);
        } else {
            job->kernel(&job->arguments);
            fake_accel_work.waiting--;
        }
        job->done = true;
    }
}

void fake_accel_run(void *stream)
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

enum sar_status fake_accel_queue(void *stream, fake_accel_kernel_fn kernel,
                                 const struct fake_accel_args *arguments)
{
    SAR_TRY(add(&(struct job){ .stream = stream, .kernel = kernel, .arguments = *arguments }));
    fake_accel_work.queued++;
    if (++fake_accel_work.waiting > fake_accel_work.most_waiting)
        fake_accel_work.most_waiting = fake_accel_work.waiting;
    return SAR_OK;
}

static enum sar_status allocate_pinned(int place, size_t bytes, void **memory)
{
    (void)place;
    SAR_TRY(function());
    if (fake_accel_memory.pinned_ever == BLOCKS || (*memory = aligned_alloc(64, bytes)) == NULL)
        abort();
    blocks[fake_accel_memory.pinned_ever++] = (struct block){ *memory, bytes };
    fake_accel_memory.pinned++;
    fake_accel_memory.pinned_bytes += bytes;
    if (fake_accel_memory.pinned_bytes > fake_accel_memory.pinned_most)
        fake_accel_memory.pinned_most = fake_accel_memory.pinned_bytes;
    return SAR_OK;
}

/* Find the block that contains an address. */
static struct block *find(const void *address)
{
    const unsigned char *at = address;
    for (struct block *b = blocks; b < blocks + fake_accel_memory.pinned_ever; b++)
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
    fake_accel_memory.pinned--;
    fake_accel_memory.pinned_bytes -= block->bytes;
}

bool fake_accel_is_pinned(const void *address)
{
    return find(address) != NULL;
}

static void copy_bytes(const struct fake_accel_args *a)
{
    memcpy(a->to, a->from, a->bytes);
}

static enum sar_status copy(int place, void *to, const void *from, size_t bytes, void *stream)
{
    (void)place;
    return fake_accel_queue(stream, copy_bytes,
                            &(struct fake_accel_args){ .to = to, .from = from, .bytes = bytes });
}

/* Run the queued jobs even if the wait itself fails. */
static enum sar_status wait_for(int place, void *stream)
{
    (void)place;
    fake_accel_run(stream);
    return function();
}

/* Make a stream as an event that nobody records. */
static enum sar_status make_event(int place, void **event)
{
    (void)place;
    SAR_TRY(function());
    *event = calloc(1, sizeof(struct event));
    fake_accel_memory.open++;
    return SAR_OK;
}

static void drop_event(int place, void *event)
{
    (void)place;
    free(event);
    fake_accel_memory.open--;
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
    fake_accel_memory.open++;
    return SAR_OK;
}

/* Free memory after the jobs queued in the stream. */
static void give_back(int place, void *memory, void *stream)
{
    (void)place;
    fake_accel_run(stream);
    free(memory);
    fake_accel_memory.open--;
}

static enum sar_status allocate(int place, size_t bytes, void **memory)
{
    fake_accel_memory.arrays_ever++;
    return take(place, bytes, NULL, memory);
}

static void release(int place, void *memory)
{
    (void)place;
    free(memory);
    fake_accel_memory.open--;
}

static const struct sar_stream_ops lanes = { make_event, drop_event, make_event, drop_event, record,
                                             follow,     await,      take,       give_back };

struct sar_accelerator fake_accelerator = { .version = SAR_ACCELERATOR_VERSION,
                                            .allocate = allocate,
                                            .release = release,
                                            .allocate_pinned = allocate_pinned,
                                            .release_pinned = release_pinned,
                                            .copy = copy,
                                            .wait = wait_for,
                                            .stream_ops = &lanes };

void fake_accel_end(void)
{
    refused = 0;
    sar_pinned_ring_cleanup();
    sar_host_copy_cleanup();
    sar_device_blocks_cleanup();
}

int fake_accel_free_lost(void **state)
{
    (void)state;
    for (size_t i = 0; i < fake_accel_memory.pinned_ever; i++)
        free(blocks[i].memory);
    return 0;
}
