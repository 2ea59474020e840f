/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_CUDA_STATUS_H
#define SAR_CUDA_STATUS_H

#include <cuda_runtime_api.h>

#include "base/status.h"

/** What an error is to the library. It is forgotten, or the program would take it for one of its own. */
static inline enum sar_status sar_cuda(cudaError_t error)
{
    if (error == cudaSuccess)
        return SAR_OK;
    (void)cudaGetLastError();
    return error == cudaErrorMemoryAllocation ? SAR_NO_MEMORY : SAR_DEVICE_FAILED;
}

#endif
