/* SPDX-License-Identifier: BSD-3-Clause */
/* What the programs that call CUDA themselves have in common. */

#ifndef TESTS_CUDA_DEVICE_MEMORY_H
#define TESTS_CUDA_DEVICE_MEMORY_H

#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include "check.h"

static inline void require(cudaError_t error)
{
    check(error == cudaSuccess, "expected success from CUDA, found error %d", (int)error);
}

static inline void *to_device(const void *host, size_t bytes)
{
    void *device;
    require(cudaMalloc(&device, bytes));
    require(cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice));
    return device;
}

static inline void to_host(void *host, const void *device, size_t bytes)
{
    require(cudaMemcpy(host, device, bytes, cudaMemcpyDeviceToHost));
}

/* What the runtime of fake_runtime.c counts, and no other. */
static inline long count_of(const char *name)
{
    long (*count)(void) = (long (*)(void))dlsym(RTLD_DEFAULT, name);
    return count == NULL ? 0 : count();
}

/* What fake_runtime.c does beyond CUDA's, if it stands in. */
static inline void tell_runtime(const char *name, long number)
{
    void (*tell)(long) = (void (*)(long))dlsym(RTLD_DEFAULT, name);
    if (tell != NULL)
        tell(number);
}

#endif
