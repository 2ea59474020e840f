/* SPDX-License-Identifier: BSD-3-Clause */
/* Errors of the CUDA runtime as the library's status, for all sources of the plug-in. */

#ifndef SAR_CUDA_STATUS_H
#define SAR_CUDA_STATUS_H

#include <cuda_runtime_api.h>

#include "base/status.h"

/** Convert an error of the CUDA runtime. Clears the runtime's last error, so that the program does not see
 * it. */
static inline enum sar_status sar_cuda_status(cudaError_t error)
{
    if (error == cudaSuccess)
        return SAR_OK;
    (void)cudaGetLastError();
    return error == cudaErrorMemoryAllocation ? SAR_NO_MEMORY : SAR_DEVICE_FAILED;
}

#endif
