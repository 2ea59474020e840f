/* SPDX-License-Identifier: BSD-3-Clause */
/* What the programs that call CUDA themselves have in common. */

#ifndef TESTS_CUDA_DEVICE_MEMORY_H
#define TESTS_CUDA_DEVICE_MEMORY_H

#include <cuda_runtime_api.h>

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

#endif
