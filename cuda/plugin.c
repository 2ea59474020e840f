/* SPDX-License-Identifier: BSD-3-Clause */
/* The plug-in for CUDA: the only code that calls its runtime. It makes the device of a place the calling
 * thread's for the time of a call, since that thread may be the progress thread, or another of the program's. */

#include <cuda_runtime_api.h>
#include <stdbool.h>

#include "device/accelerator.h"

static enum sar_status status_of(cudaError_t error)
{
    if (error == cudaSuccess)
        return SAR_OK;
    (void)cudaGetLastError(); /* or the program would take it for one of its own */
    return error == cudaErrorMemoryAllocation ? SAR_NO_MEMORY : SAR_DEVICE_FAILED;
}

/* Managed memory counts as the device's: the host may touch it only where no kernel does. */
static int place(const void *address)
{
    struct cudaPointerAttributes attributes;
    if (status_of(cudaPointerGetAttributes(&attributes, address)) != SAR_OK)
        return -1;
    bool own = attributes.type == cudaMemoryTypeDevice || attributes.type == cudaMemoryTypeManaged;
    return own ? attributes.device : -1;
}

static enum sar_status enter(int device, int *before)
{
    SAR_TRY(status_of(cudaGetDevice(before)));
    return *before == device ? SAR_OK : status_of(cudaSetDevice(device));
}

static enum sar_status leave(int device, int before, cudaError_t error)
{
    if (before != device)
        (void)cudaSetDevice(before);
    return status_of(error);
}

static enum sar_status allocate(int device, size_t bytes, void **memory)
{
    int before;
    SAR_TRY(enter(device, &before));
    return leave(device, before, cudaMalloc(memory, bytes));
}

static void release(void *memory)
{
    (void)status_of(cudaFree(memory));
}

static enum sar_status allocate_pinned(size_t bytes, void **memory)
{
    return status_of(cudaHostAlloc(memory, bytes, cudaHostAllocPortable));
}

static void release_pinned(void *memory)
{
    (void)status_of(cudaFreeHost(memory));
}

static enum sar_status copy(int device, void *to, const void *from, size_t bytes, void *stream)
{
    int before;
    SAR_TRY(enter(device, &before));
    return leave(device, before, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, (cudaStream_t)stream));
}

static enum sar_status call(int device, void (*function)(void *), void *argument, void *stream)
{
    int before;
    SAR_TRY(enter(device, &before));
    return leave(device, before, cudaLaunchHostFunc((cudaStream_t)stream, function, argument));
}

static enum sar_status wait(int device, void *stream)
{
    int before;
    SAR_TRY(enter(device, &before));
    return leave(device, before, cudaStreamSynchronize((cudaStream_t)stream));
}

extern const struct sar_accelerator sar_accelerator;
const struct sar_accelerator sar_accelerator = {
    .version = SAR_ACCELERATOR_VERSION,
    .name = "cuda",
    .place = place,
    .allocate = allocate,
    .release = release,
    .allocate_pinned = allocate_pinned,
    .release_pinned = release_pinned,
    .copy = copy,
    .call = call,
    .wait = wait,
};
