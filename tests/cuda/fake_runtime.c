/* SPDX-License-Identifier: BSD-3-Clause */
/* A fake CUDA runtime for machines without a device, with the functions that the library and its tests call.
 * The host faults on device memory: its pages are mapped twice, without access rights for the program. New
 * and freed memory is not zero. Streams run their work later (fake_queue.c). Kernels are the twins of
 * tests/cuda/twin, which open all arrays while they run. Any call can be made to fail, except releases, and
 * queries of an address on a working device. */

#include <cuda_runtime_api.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fake_cuda.h"

enum { MOST_ARRAYS = 16384, REGION = 1 << 30, LARGE = 1 << 16 };

struct array {
    char *device, *alias;
    size_t bytes, room;
    int place;
    bool taken; /* else the next array of this size may reuse it */
};

struct copy {
    void *to;
    const void *from; /* or NULL to set the bytes to one value */
    size_t bytes;
    int byte;
    size_t pieces, to_stride, from_stride; /* of a strided copy, else 0 */
    void *taken;                           /* copied at once, from memory that is not pinned */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct array arrays[MOST_ARRAYS];
static int arrays_used;
static char *region, *region_alias;
static size_t region_used;
static int opened;
static long copied, pageable;

/* Bytes copied in streams from and to the host, and those from or to pageable memory. */
long fake_cuda_copied(void)
{
    return __atomic_load_n(&copied, __ATOMIC_RELAXED);
}

long fake_cuda_pageable(void)
{
    return __atomic_load_n(&pageable, __ATOMIC_RELAXED);
}

static struct array *find(const void *address)
{
    const char *at = address;
    for (int i = 0; i < arrays_used; i++)
        if (arrays[i].taken && at >= arrays[i].device && at < arrays[i].device + arrays[i].bytes)
            return &arrays[i];
    return NULL;
}

/* Host address of device memory. */
static void *reach(const void *address)
{
    pthread_mutex_lock(&lock);
    const struct array *array = find(address);
    char *at =
        array == NULL ? (char *)(uintptr_t)address : array->alias + ((const char *)address - array->device);
    pthread_mutex_unlock(&lock);
    return at;
}

/* Host address of device memory, for the fake CUDA-aware MPI. */
void *fake_cuda_reach(const void *address)
{
    return reach(address);
}

/* True for host memory that CUDA does not know. */
static bool is_pageable(const void *address)
{
    return reach(address) == address && !fake_cuda_shares(address);
}

static void do_copy(void *argument)
{
    struct copy *copy = argument;
    for (size_t i = 0; i < copy->pieces; i++)
        memcpy((char *)reach(copy->to) + i * copy->to_stride,
               (char *)reach(copy->from) + i * copy->from_stride, copy->bytes);
    if (copy->pieces > 0)
        copy->bytes = 0;
    if (copy->from == NULL)
        memset(reach(copy->to), copy->byte, copy->bytes);
    else
        memmove(reach(copy->to), copy->taken != NULL ? copy->taken : reach(copy->from), copy->bytes);
    free(copy->taken);
    free(copy);
}

/* A copy from pageable memory reads it at once, since it may change after the return; a copy to it completes
 * at once. */
static void queue_copy(cudaStream_t stream, struct copy wanted)
{
    struct copy *copy = malloc(sizeof *copy);
    *copy = wanted;
    if (is_pageable(wanted.to) || (wanted.from != NULL && is_pageable(wanted.from)))
        __atomic_fetch_add(&pageable, (long)wanted.bytes, __ATOMIC_RELAXED);
    if (wanted.from != NULL && is_pageable(wanted.from)) {
        copy->taken = malloc(wanted.bytes + 1);
        memcpy(copy->taken, wanted.from, wanted.bytes);
    }
    fake_cuda_queue(stream, do_copy, copy);
    if (is_pageable(wanted.to))
        fake_cuda_drain(stream, fake_cuda_mark(stream));
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    if (fake_cuda_refuses())
        return cudaErrorUnknown;
    fake_cuda_count_wait(false);
    fake_cuda_disturb(stream);
    fake_cuda_drain(stream, fake_cuda_mark(stream));
    return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void)
{
    if (fake_cuda_refuses())
        return cudaErrorUnknown;
    fake_cuda_count_wait(true);
    fake_cuda_drain_all();
    return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    fake_cuda_forbid(__func__);
    return fake_cuda_is_done(stream) ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    (void)kind;
    if (fake_cuda_refuses())
        return cudaErrorUnknown;
    if (reach(to) == to || reach(from) == from)
        __atomic_fetch_add(&copied, (long)bytes, __ATOMIC_RELAXED);
    queue_copy(stream, (struct copy){ .to = to, .from = from, .bytes = bytes });
    return cudaSuccess;
}

/* Between arrays of the device. */
cudaError_t cudaMemcpy2DAsync(void *to, size_t to_stride, const void *from, size_t from_stride, size_t bytes,
                              size_t pieces, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    (void)kind;
    if (fake_cuda_refuses() || bytes > to_stride || bytes > from_stride)
        return cudaErrorUnknown;
    queue_copy(stream, (struct copy){ .to = to,
                                      .from = from,
                                      .bytes = bytes,
                                      .pieces = pieces,
                                      .to_stride = to_stride,
                                      .from_stride = from_stride });
    return cudaSuccess;
}

/* Copy in the default stream. */
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    if (fake_cuda_refuses())
        return cudaErrorUnknown;
    if ((kind == cudaMemcpyDeviceToHost && fake_cuda_reach(from) == from) ||
        (kind == cudaMemcpyHostToDevice && fake_cuda_reach(to) == to))
        return cudaErrorInvalidValue;
    fake_cuda_count_wait(true);
    queue_copy(NULL, (struct copy){ .to = to, .from = from, .bytes = bytes });
    fake_cuda_drain(NULL, fake_cuda_mark(NULL));
    return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *argument)
{
    if (fake_cuda_refuses())
        return cudaErrorUnknown;
    fake_cuda_queue_function(stream, function, argument);
    return cudaSuccess;
}

/* The runtime loads the driver on demand. */
void fake_cuda_load_driver(void)
{
    static bool loaded;
    if (!__atomic_exchange_n(&loaded, true, __ATOMIC_SEQ_CST))
        dlopen("libcuda.so.1", RTLD_NOW);
}

/* All device memory is one mapping, so one system call opens it for kernels. */
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

/* Find a free array with this number of pages, or make one. */
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

/* Number of arrays that are not freed. */
long fake_cuda_taken(void)
{
    long taken = 0;
    fake_cuda_drain_all();
    pthread_mutex_lock(&lock);
    for (int i = 0; i < arrays_used; i++)
        taken += arrays[i].taken;
    pthread_mutex_unlock(&lock);
    return taken;
}

/* Fill new and freed memory with a pattern. */
static void fill_pattern(const struct array *array)
{
    memset(array->alias, 0xa5, array->bytes);
}

static cudaError_t take_array(void **memory, size_t bytes)
{
    enum { PAGE = 4096 };
    fake_cuda_load_driver();
    if (fake_cuda_refuses())
        return cudaErrorMemoryAllocation;
    pthread_mutex_lock(&lock);
    struct array *array = choose(bytes / PAGE * PAGE + PAGE);
    if (array != NULL) {
        array->taken = true;
        array->bytes = bytes + 1;
        array->place = fake_cuda_device();
        fill_pattern(array);
        *memory = array->device;
    }
    pthread_mutex_unlock(&lock);
    return array == NULL ? cudaErrorMemoryAllocation : cudaSuccess;
}

cudaError_t cudaMalloc(void **memory, size_t bytes)
{
    fake_cuda_count(0);
    fake_cuda_risk();
    return take_array(memory, bytes);
}

static void free_array(void *memory)
{
    pthread_mutex_lock(&lock);
    struct array *array = find(memory);
    if (array != NULL) {
        fill_pattern(array);
        array->taken = false;
        if (array->room >= LARGE) /* opening the memory later would take longer */
            madvise(array->device, array->room, MADV_DONTNEED);
    }
    pthread_mutex_unlock(&lock);
    if (array == NULL)
        fake_cuda_unshare(memory);
}

/* Waits for the device. */
cudaError_t cudaFree(void *memory)
{
    fake_cuda_forbid(__func__);
    fake_cuda_risk();
    fake_cuda_count_wait(true);
    fake_cuda_drain_all();
    pthread_mutex_lock(&lock);
    const struct array *array = find(memory);
    int place = array == NULL ? -1 : array->place;
    pthread_mutex_unlock(&lock);
    if (place >= 0)
        fake_cuda_expect_device(place);
    free_array(memory);
    return cudaSuccess;
}

/* For kernels that are host functions: while any is open, the host may access device memory. */
static void protect(int rights)
{
    if (region_used != 0)
        mprotect(region, region_used, rights);
}

struct launch {
    void (*work)(void *);
    void *argument;
};

static void do_launch(void *argument)
{
    struct launch launch = *(struct launch *)argument;
    free(argument);
    pthread_mutex_lock(&lock);
    opened++;
    protect(PROT_READ | PROT_WRITE);
    fake_cuda_guard(true);
    pthread_mutex_unlock(&lock);
    launch.work(launch.argument);
    pthread_mutex_lock(&lock);
    if (--opened == 0) {
        protect(PROT_NONE);
        fake_cuda_guard(false);
    }
    pthread_mutex_unlock(&lock);
}

void fake_cuda_launch(void *stream, void (*work)(void *), void *argument)
{
    fake_cuda_forbid("a kernel");
    struct launch *launch = malloc(sizeof *launch);
    *launch = (struct launch){ work, argument };
    fake_cuda_count_kernel();
    fake_cuda_queue(stream, do_launch, launch);
}

/* The pool's memory is not counted; it exists after the first call. */
cudaError_t cudaMallocFromPoolAsync(void **memory, size_t bytes, cudaMemPool_t pool, cudaStream_t stream)
{
    (void)pool, (void)stream;
    return take_array(memory, bytes);
}

cudaError_t cudaFreeAsync(void *memory, cudaStream_t stream)
{
    fake_cuda_forbid(__func__);
    fake_cuda_queue(stream, free_array, memory);
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *memory, int byte, size_t bytes, cudaStream_t stream)
{
    if (fake_cuda_refuses())
        return cudaErrorUnknown;
    queue_copy(stream, (struct copy){ .to = memory, .byte = byte, .bytes = bytes });
    return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *address)
{
    fake_cuda_forbid(__func__);
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
