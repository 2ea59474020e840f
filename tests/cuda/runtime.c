/* SPDX-License-Identifier: BSD-3-Clause */
/* A runtime of CUDA for machines without a device, as far as the library and its tests call it. Device memory is
 * memory that faults when the host touches it: its pages are mapped twice, for the program without any rights. Work
 * in streams is done by a thread, later, in the order in which it was queued: one order for all streams, which
 * CUDA's rules allow. There are no kernels. */

#include <cuda_runtime_api.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MOST_ARRAYS = 4096, DEVICES = 2 };

struct array {
    char *device, *alias;
    size_t bytes;
    int place;
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
static pthread_cond_t queued = PTHREAD_COND_INITIALIZER, idle = PTHREAD_COND_INITIALIZER;
static struct array arrays[MOST_ARRAYS];
static struct job *first, **last = &first;
static bool working;
static long allocations;
static __thread int current;

/* How many arrays, of device and pinned memory, were ever made. */
long fake_cuda_allocations(void);
long fake_cuda_allocations(void)
{
    return __atomic_load_n(&allocations, __ATOMIC_RELAXED);
}

static struct array *find(const void *address)
{
    const char *at = address;
    for (int i = 0; i < MOST_ARRAYS; i++)
        if (arrays[i].device != NULL && at >= arrays[i].device && at < arrays[i].device + arrays[i].bytes)
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

static void *work(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&lock);
    for (;;) {
        while (first == NULL)
            pthread_cond_wait(&queued, &lock);
        struct job *job = first;
        pthread_mutex_unlock(&lock);
        do_job(job);
        pthread_mutex_lock(&lock);
        first = job->next;
        if (first == NULL)
            last = &first;
        free(job);
        pthread_cond_broadcast(&idle);
    }
    return NULL;
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
    pthread_cond_signal(&queued);
    pthread_mutex_unlock(&lock);
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    (void)stream;
    pthread_mutex_lock(&lock);
    while (first != NULL)
        pthread_cond_wait(&idle, &lock);
    pthread_mutex_unlock(&lock);
    return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    (void)stream;
    pthread_mutex_lock(&lock);
    bool busy = first != NULL;
    pthread_mutex_unlock(&lock);
    return busy ? cudaErrorNotReady : cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    (void)kind, (void)stream;
    return queue((struct job){ .to = to, .from = from, .bytes = bytes });
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    cudaMemcpyAsync(to, from, bytes, kind, NULL);
    return cudaStreamSynchronize(NULL);
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *argument)
{
    (void)stream;
    return queue((struct job){ .function = function, .argument = argument });
}

/* As the runtime does, the driver is loaded when it is needed. */
static void load_driver(void)
{
    static bool loaded;
    if (!__atomic_exchange_n(&loaded, true, __ATOMIC_SEQ_CST))
        dlopen("libcuda.so.1", RTLD_NOW);
}

static bool map(struct array *array, size_t bytes)
{
    int file = memfd_create("device", 0);
    bool sized = file >= 0 && ftruncate(file, (off_t)bytes) == 0;
    array->device = sized ? mmap(NULL, bytes, PROT_NONE, MAP_SHARED, file, 0) : MAP_FAILED;
    array->alias = sized ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
    array->bytes = bytes;
    array->place = current;
    if (file >= 0)
        close(file);
    return array->device != MAP_FAILED && array->alias != MAP_FAILED;
}

cudaError_t cudaMalloc(void **memory, size_t bytes)
{
    struct array made;
    load_driver();
    if (!map(&made, bytes + 1))
        return cudaErrorMemoryAllocation;
    pthread_mutex_lock(&lock);
    int i = 0;
    while (i < MOST_ARRAYS - 1 && arrays[i].device != NULL)
        i++;
    arrays[i] = made;
    allocations++;
    pthread_mutex_unlock(&lock);
    *memory = made.device;
    return cudaSuccess;
}

cudaError_t cudaFree(void *memory)
{
    cudaStreamSynchronize(NULL);
    pthread_mutex_lock(&lock);
    struct array *array = find(memory);
    if (array != NULL) {
        munmap(array->device, array->bytes);
        munmap(array->alias, array->bytes);
        array->device = NULL;
    }
    pthread_mutex_unlock(&lock);
    return array == NULL && memory != NULL ? cudaErrorInvalidValue : cudaSuccess;
}

cudaError_t cudaHostAlloc(void **memory, size_t bytes, unsigned flags)
{
    (void)flags;
    load_driver();
    __atomic_fetch_add(&allocations, 1, __ATOMIC_RELAXED);
    return posix_memalign(memory, 4096, bytes) == 0 ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaFreeHost(void *memory)
{
    free(memory);
    return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *address)
{
    pthread_mutex_lock(&lock);
    const struct array *array = find(address);
    *attributes = (struct cudaPointerAttributes){
        .type = array == NULL ? cudaMemoryTypeUnregistered : cudaMemoryTypeDevice,
        .device = array == NULL ? cudaInvalidDeviceId : array->place,
    };
    pthread_mutex_unlock(&lock);
    return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *devices)
{
    *devices = DEVICES;
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device)
{
    *device = current;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
    if (device < 0 || device >= DEVICES)
        return cudaErrorInvalidDevice;
    current = device;
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
    (void)flags;
    *stream = malloc(1);
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    cudaStreamSynchronize(stream);
    free(stream);
    return cudaSuccess;
}

cudaError_t cudaGetLastError(void)
{
    return cudaSuccess;
}
