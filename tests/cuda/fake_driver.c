/* SPDX-License-Identifier: BSD-3-Clause */
/* A fake CUDA driver for machines without one: functions for programs that do not use the runtime,
 * implemented by the fake CUDA runtime. */

#include <cuda.h>
#include <cuda_runtime_api.h>

CUresult CUDAAPI cuPointerGetAttribute(void *answer, CUpointer_attribute attribute, CUdeviceptr address)
{
    struct cudaPointerAttributes found;
    if (cudaPointerGetAttributes(&found, (const void *)address) != cudaSuccess ||
        found.type == cudaMemoryTypeUnregistered)
        return CUDA_ERROR_INVALID_VALUE;
    if (attribute == CU_POINTER_ATTRIBUTE_MEMORY_TYPE)
        *(unsigned *)answer = CU_MEMORYTYPE_DEVICE;
    else
        *(int *)answer = attribute == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL ? found.device : 0;
    return CUDA_SUCCESS;
}
