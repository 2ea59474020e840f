/* SPDX-License-Identifier: BSD-3-Clause */
/* A runtime of CUDA for machines without a device, as far as the library and its tests call it. Device
 * memory is memory that faults when the host touches it: its pages are mapped twice, for the program
 * without any rights. What is new or was given back is not zero. Work in streams is done later, by a
 * thread or whoever waits, in the order in which it was queued: one order for all streams, which CUDA's
 * rules allow. Kernels are the twins of tests/cuda/twin, which open all arrays for as long as they run. Any
 * call can be refused, but for those that give back, and for the question what an address is, which fails
 * only where the device is broken. */

#include <cuda_runtime_api.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fake.h"

enum { MOST_ARRAYS = 16384, REGION = 1 << 30, LARGE = 1 << 16 };

struct array {
    char *device, *alias;
    size_t bytes, room;
    int place;
    bool taken; /* else the next array of this size may have it */
};

struct job {
    void *to;
    const void *from;
    size_t bytes;
    cudaHostFn_t function; /* instead of a copy; or NULL */
    void *argument;
    struct job *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t news = PTHREAD_COND_INITIALIZER;
static struct array arrays[MOST_ARRAYS];
static int arrays_used;
static char *region, *region_alias;
static size_t region_used;
static struct job *first, **last = &first; /* the first one is being done when `busy` */
static bool working, busy;
static int opened;
static long copied, jobs_queued, jobs_done;

/* How many bytes were ever copied in streams. */
long fake_cuda_copied(void)
{
    return __atomic_load_n(&copied, __ATOMIC_RELAXED);
}

static struct array *find(const void *address)
{
    const char *at = address;
    for (int i = 0; i < arrays_used; i++)
        if (arrays[i].taken && at >= arrays[i].device && at < arrays[i].device + arrays[i].bytes)
            return &arrays[i];
    return NULL;
}

/* Where the host may touch what is at an address. */
static void *reach(const void *address)
{
    pthread_mutex_lock(&lock);
    const struct array *array = find(address);
    char *at =
        array == NULL ? (char *)(uintptr_t)address : array->alias + ((const char *)address - array->device);
    pthread_mutex_unlock(&lock);
    return at;
}

static void do_job(const struct job *job)
{
    if (job->function != NULL)
        job->function(job->argument);
    else
        memmove(reach(job->to), reach(job->from), job->bytes);
}

/* Under the lock, which is free while the job is done. */
static void do_first(void)
{
    struct job *job = first;
    busy = true;
    pthread_mutex_unlock(&lock);
    do_job(job);
    pthread_mutex_lock(&lock);
    busy = false;
    first = job->next;
    if (first == NULL)
        last = &first;
    free(job);
    jobs_done++;
    pthread_cond_broadcast(&news);
}

static void *work(void *unused)
{
    pthread_mutex_lock(&lock);
    for (;;) {
        while (first == NULL || busy)
            pthread_cond_wait(&news, &lock);
        do_first();
    }
    return unused;
}

static cudaError_t queue(struct job wanted)
{
    pthread_t thread;
    struct job *job = malloc(sizeof *job);
    *job = wanted;
    pthread_mutex_lock(&lock);
    if (!working)
        working = pthread_create(&thread, NULL, work, NULL) == 0;
    *last = job;
    last = &job->next;
    jobs_queued++;
    pthread_cond_broadcast(&news);
    pthread_mutex_unlock(&lock);
    return cudaSuccess;
}

/* How much has been queued so far. */
long fake_cuda_queued(void)
{
    pthread_mutex_lock(&lock);
    long queued = jobs_queued;
    pthread_mutex_unlock(&lock);
    return queued;
}

/* Wait until so much is done. Functions are left to the thread, as CUDA has one for them. */
void fake_cuda_wait(long queued)
{
    pthread_mutex_lock(&lock);
    while (jobs_done < queued) {
        if (busy || first->function != NULL)
            pthread_cond_wait(&news, &lock);
        else
            do_first();
    }
    pthread_mutex_unlock(&lock);
}

static void wait_for_all(void)
{
    fake_cuda_wait(fake_cuda_queued());
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    (void)stream;
    if (fake_cuda_refuses())
        return cudaErrorUnknown;
    fake_cuda_count_wait(false);
    wait_for_all();
    return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void)
{
    if (fake_cuda_refuses())
        return cudaErrorUnknown;
    fake_cuda_count_wait(true);
    wait_for_all();
    return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    (void)stream;
    pthread_mutex_lock(&lock);
    bool waiting = first != NULL;
    pthread_mutex_unlock(&lock);
    return waiting ? cudaErrorNotReady : cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    (void)kind, (void)stream;
    if (fake_cuda_refuses())
        return cudaErrorUnknown;
    __atomic_fetch_add(&copied, (long)bytes, __ATOMIC_RELAXED);
    return queue((struct job){ .to = to, .from = from, .bytes = bytes });
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    (void)kind;
    if (fake_cuda_refuses())
        return cudaErrorUnknown;
    queue((struct job){ .to = to, .from = from, .bytes = bytes });
    fake_cuda_count_wait(true);
    wait_for_all();
    return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *argument)
{
    (void)stream;
    if (fake_cuda_refuses())
        return cudaErrorUnknown;
    return queue((struct job){ .function = function, .argument = argument });
}

/* As the runtime does, the driver is loaded when it is needed. */
static void load_driver(void)
{
    static bool loaded;
    if (!__atomic_exchange_n(&loaded, true, __ATOMIC_SEQ_CST))
        dlopen("libcuda.so.1", RTLD_NOW);
}

/* All device memory is one mapping, so that kernels open it by one call of the system's. */
static bool map_region(void)
{
    int file = memfd_create("device", 0);
    bool sized = file >= 0 && ftruncate(file, REGION) == 0;
    void *device = sized ? mmap(NULL, REGION, PROT_NONE, MAP_SHARED, file, 0) : MAP_FAILED;
    void *alias = sized ? mmap(NULL, REGION, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
    if (file >= 0)
        close(file);
    region = device == MAP_FAILED || alias == MAP_FAILED ? NULL : device;
    region_alias = alias;
    return region != NULL;
}

/* One of as many pages, or a new one. */
static struct array *choose(size_t room)
{
    for (int i = 0; i < arrays_used; i++)
        if (!arrays[i].taken && arrays[i].room == room)
            return &arrays[i];
    bool mapped = region != NULL || map_region();
    if (!mapped || arrays_used == MOST_ARRAYS || room > REGION - region_used)
        return NULL;
    struct array *array = &arrays[arrays_used++];
    *array = (struct array){ region + region_used, region_alias + region_used, 0, room, 0, false };
    region_used += room;
    return array;
}

/* How many arrays have not been given back. */
long fake_cuda_taken(void)
{
    long taken = 0;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < arrays_used; i++)
        taken += arrays[i].taken;
    pthread_mutex_unlock(&lock);
    return taken;
}

/* What is in new memory, and in memory that was given back. */
static void spoil(const struct array *array)
{
    memset(array->alias, 0xa5, array->bytes);
}

static cudaError_t take_array(void **memory, size_t bytes)
{
    enum { PAGE = 4096 };
    load_driver();
    if (fake_cuda_refuses())
        return cudaErrorMemoryAllocation;
    pthread_mutex_lock(&lock);
    struct array *array = choose(bytes / PAGE * PAGE + PAGE);
    if (array != NULL) {
        array->taken = true;
        array->bytes = bytes + 1;
        array->place = fake_cuda_device();
        spoil(array);
        *memory = array->device;
    }
    pthread_mutex_unlock(&lock);
    return array == NULL ? cudaErrorMemoryAllocation : cudaSuccess;
}

cudaError_t cudaMalloc(void **memory, size_t bytes)
{
    fake_cuda_count(0);
    return take_array(memory, bytes);
}

static cudaError_t free_array(void *memory)
{
    wait_for_all();
    pthread_mutex_lock(&lock);
    struct array *array = find(memory);
    if (array != NULL) {
        spoil(array);
        array->taken = false;
        if (array->room >= LARGE) /* else opening memory later on takes longer */
            madvise(array->device, array->room, MADV_DONTNEED);
    }
    pthread_mutex_unlock(&lock);
    if (array == NULL)
        free(memory); /* managed, or else the C library tells */
    return cudaSuccess;
}

/* The device stands still. */
cudaError_t cudaFree(void *memory)
{
    fake_cuda_count_wait(true);
    return free_array(memory);
}

/* For kernels that are functions of the host: while any is open, the host may touch device memory. */
static void protect(int rights)
{
    if (region_used != 0)
        mprotect(region, region_used, rights);
}

void fake_cuda_open(void)
{
    wait_for_all();
    fake_cuda_count_kernel();
    pthread_mutex_lock(&lock);
    opened++;
    protect(PROT_READ | PROT_WRITE);
    pthread_mutex_unlock(&lock);
}

void fake_cuda_close(void)
{
    pthread_mutex_lock(&lock);
    if (--opened == 0)
        protect(PROT_NONE);
    pthread_mutex_unlock(&lock);
}

/* The pool's memory is not counted: it is there already once a call was made. */
cudaError_t cudaMallocAsync(void **memory, size_t bytes, cudaStream_t stream)
{
    (void)stream;
    return take_array(memory, bytes);
}

cudaError_t cudaFreeAsync(void *memory, cudaStream_t stream)
{
    (void)stream;
    return free_array(memory);
}

cudaError_t cudaMemsetAsync(void *memory, int byte, size_t bytes, cudaStream_t stream)
{
    (void)stream;
    if (fake_cuda_refuses())
        return cudaErrorUnknown;
    wait_for_all();
    memset(reach(memory), byte, bytes);
    return cudaSuccess;
}

cudaError_t cudaHostAlloc(void **memory, size_t bytes, unsigned flags)
{
    (void)flags;
    load_driver();
    fake_cuda_count((long)bytes);
    if (fake_cuda_refuses())
        return cudaErrorMemoryAllocation;
    return posix_memalign(memory, 4096, bytes) == 0 ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaFreeHost(void *memory)
{
    fake_cuda_count_wait(true);
    free(memory);
    return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *address)
{
    if (fake_cuda_is_broken())
        return cudaErrorLaunchFailure;
    pthread_mutex_lock(&lock);
    const struct array *array = find(address);
    *attributes = (struct cudaPointerAttributes){
        .type = array == NULL ? cudaMemoryTypeUnregistered : cudaMemoryTypeDevice,
        .device = array == NULL ? cudaInvalidDeviceId : array->place,
    };
    pthread_mutex_unlock(&lock);
    return cudaSuccess;
}
