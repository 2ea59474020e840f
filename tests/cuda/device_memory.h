/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions shared by programs that call CUDA themselves. */

#ifndef TESTS_CUDA_DEVICE_MEMORY_H
#define TESTS_CUDA_DEVICE_MEMORY_H

#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include "check.h"

static inline void require(cudaError_t error)
{
    check(error == cudaSuccess, "expected success from CUDA, found error %d", (int)error);
}

/* Copy to device memory. cudaMemcpy may return before the device has what came from memory that is not
 * pinned, and streams of the program do not wait for that. */
static inline void fill_device(void *device, const void *host, size_t bytes)
{
    require(cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice));
    require(cudaStreamSynchronize(NULL));
}

static inline void *to_device(const void *host, size_t bytes)
{
    void *device;
    require(cudaMalloc(&device, bytes));
    fill_device(device, host, bytes);
    return device;
}

static inline void to_host(void *host, const void *device, size_t bytes)
{
    require(cudaMemcpy(host, device, bytes, cudaMemcpyDeviceToHost));
}

/* Read a counter of fake_runtime.c; the real runtime has none. */
static inline long count_of(const char *name)
{
    long (*count)(void) = (long (*)(void))dlsym(RTLD_DEFAULT, name);
    return count == NULL ? 0 : count();
}

/* Call a function of fake_runtime.c, if it is loaded. */
static inline void tell_runtime(const char *name, long number)
{
    void (*tell)(long) = (void (*)(long))dlsym(RTLD_DEFAULT, name);
    if (tell != NULL)
        tell(number);
}

#endif
