/* SPDX-License-Identifier: BSD-3-Clause */
/* Of the runtime that stands in for CUDA's: two devices, their pools, and memory that they share with the
 * host. */

#include <cuda_runtime_api.h>

#include <stdlib.h>

#include "fake.h"

enum { DEVICES = 2 };

static __thread int current;

int fake_cuda_device(void)
{
    return current;
}

cudaError_t cudaGetDeviceCount(int *devices)
{
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
    if (device < 0 || device >= DEVICES)
        return cudaErrorInvalidDevice;
    current = device;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device)
{
    *pool = NULL;
    if (fake_cuda_refuses())
        return cudaErrorUnknown;
    return device >= 0 && device < DEVICES ? cudaSuccess : cudaErrorInvalidDevice;
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value)
{
    (void)pool, (void)attribute, (void)value;
    return fake_cuda_refuses() ? cudaErrorUnknown : cudaSuccess;
}

/* Memory of the host, which is what it is for kernels of the host. */
cudaError_t cudaMallocManaged(void **memory, size_t bytes, unsigned flags)
{
    (void)flags;
    *memory = malloc(bytes);
    return *memory != NULL ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaGetLastError(void)
{
    return cudaSuccess;
}
