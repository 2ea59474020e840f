/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of the fake CUDA runtime: two devices, their pools, and memory shared with the host, pinned or
 * managed. Accesses of kernels to shared memory can be watched: its pages are closed before a kernel, and
 * each page opened by a fault is counted. */

#include <cuda_runtime_api.h>

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "fake_cuda.h"

enum { DEVICES = 2, PAGE = 4096 };

static __thread int current;
static long pools, pinned_on, strayed;

struct shared {
    const char *memory;
    size_t bytes;
    int place;
    struct shared *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct shared *shared;

int fake_cuda_device(void)
{
    return current;
}

/* Number of releases while the thread was on another device, where CUDA would create a context. */
long fake_cuda_strayed(void)
{
    return __atomic_load_n(&strayed, __ATOMIC_RELAXED);
}

void fake_cuda_expect_device(int place)
{
    if (place != current)
        __atomic_fetch_add(&strayed, 1, __ATOMIC_RELAXED);
}

cudaError_t cudaGetDeviceCount(int *devices)
{
    fake_cuda_forbid(__func__);
    *devices = DEVICES;
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device)
{
    *device = current;
    return fake_cuda_refuses() ? cudaErrorUnknown : cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
    fake_cuda_forbid(__func__);
    if (device < 0 || device >= DEVICES)
        return cudaErrorInvalidDevice;
    current = device;
    return cudaSuccess;
}

/* Number of pools besides the devices' own. */
long fake_cuda_pools(void)
{
    return __atomic_load_n(&pools, __ATOMIC_RELAXED);
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool, const struct cudaMemPoolProps *wanted)
{
    if (fake_cuda_refuses())
        return cudaErrorMemoryAllocation;
    if (wanted->location.id < 0 || wanted->location.id >= DEVICES)
        return cudaErrorInvalidDevice;
    int *made = malloc(sizeof *made);
    *made = wanted->location.id;
    *pool = (cudaMemPool_t)made;
    __atomic_fetch_add(&pools, 1, __ATOMIC_RELAXED);
    return cudaSuccess;
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value)
{
    (void)pool, (void)attribute, (void)value;
    return fake_cuda_refuses() ? cudaErrorUnknown : cudaSuccess;
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool)
{
    fake_cuda_forbid(__func__);
    fake_cuda_expect_device(*(int *)pool);
    free(pool);
    __atomic_fetch_sub(&pools, 1, __ATOMIC_RELAXED);
    return cudaSuccess;
}

bool fake_cuda_shares(const void *address)
{
    const char *at = address;
    pthread_mutex_lock(&lock);
    const struct shared *found = shared;
    while (found != NULL && (at < found->memory || at >= found->memory + found->bytes))
        found = found->next;
    pthread_mutex_unlock(&lock);
    return found != NULL;
}

/* Use whole pages, so that they hold no other data. */
static cudaError_t share(void **memory, size_t bytes)
{
    struct shared *made = malloc(sizeof *made);
    bytes = bytes / PAGE * PAGE + PAGE;
    if (posix_memalign(memory, PAGE, bytes) != 0)
        return cudaErrorMemoryAllocation;
    pthread_mutex_lock(&lock);
    *made = (struct shared){ *memory, bytes, current, shared };
    shared = made;
    pthread_mutex_unlock(&lock);
    return cudaSuccess;
}

void fake_cuda_unshare(void *memory)
{
    pthread_mutex_lock(&lock);
    for (struct shared **at = &shared; *at != NULL; at = &(*at)->next) {
        struct shared *found = *at;
        if (found->memory == memory) {
            fake_cuda_expect_device(found->place);
            *at = found->next;
            free(found);
            break;
        }
    }
    pthread_mutex_unlock(&lock);
    free(memory); /* if it was not shared, the C library reports it */
}

/* The device for which memory was last pinned. */
long fake_cuda_pinned_on(void)
{
    return pinned_on;
}

cudaError_t cudaHostAlloc(void **memory, size_t bytes, unsigned flags)
{
    (void)flags;
    fake_cuda_load_driver();
    fake_cuda_count((long)bytes);
    fake_cuda_risk();
    pinned_on = current;
    return fake_cuda_refuses() ? cudaErrorMemoryAllocation : share(memory, bytes);
}

cudaError_t cudaFreeHost(void *memory)
{
    fake_cuda_forbid(__func__);
    fake_cuda_risk();
    fake_cuda_count_wait(true);
    fake_cuda_drain_all();
    fake_cuda_unshare(memory);
    return cudaSuccess;
}

/* Host memory, as the kernels run on the host. */
cudaError_t cudaMallocManaged(void **memory, size_t bytes, unsigned flags)
{
    (void)flags;
    fake_cuda_forbid(__func__);
    return share(memory, bytes);
}

cudaError_t cudaGetLastError(void)
{
    fake_cuda_forbid(__func__);
    return cudaSuccess;
}

static long watching, touched;

static void set_rights(const struct shared *memory, int rights)
{
    if (mprotect((void *)(uintptr_t)memory->memory, memory->bytes, rights) != 0)
        abort();
}

/* A fault elsewhere repeats after the handler is restored, and ends the program. */
static void open_page(int number, siginfo_t *info, void *context)
{
    const char *at = info->si_addr;
    const struct shared *found = shared;
    (void)context;
    while (found != NULL && (at < found->memory || at >= found->memory + found->bytes))
        found = found->next;
    if (found == NULL) {
        signal(number, SIG_DFL);
        return;
    }
    __atomic_fetch_add(&touched, PAGE, __ATOMIC_RELAXED);
    char *page = (char *)(uintptr_t)found->memory + (at - found->memory) / PAGE * PAGE;
    if (mprotect(page, PAGE, PROT_READ | PROT_WRITE) != 0)
        abort();
}

/* Start or stop watching; only kernels may use pinned memory in between. */
void fake_cuda_watch(long on)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = open_page;
    action.sa_flags = SA_SIGINFO;
    if (sigaction(SIGSEGV, &action, NULL) != 0)
        abort();
    __atomic_store_n(&watching, on, __ATOMIC_RELAXED);
}

/* Bytes of the pages that watched kernels touched, in total. */
long fake_cuda_touched(void)
{
    return __atomic_load_n(&touched, __ATOMIC_RELAXED);
}

void fake_cuda_guard(bool on)
{
    if (__atomic_load_n(&watching, __ATOMIC_RELAXED) == 0)
        return;
    pthread_mutex_lock(&lock);
    for (const struct shared *memory = shared; memory != NULL; memory = memory->next)
        set_rights(memory, on ? PROT_NONE : PROT_READ | PROT_WRITE);
    pthread_mutex_unlock(&lock);
}
