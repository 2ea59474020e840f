/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_CUDA_PLACE_H
#define SAR_CUDA_PLACE_H

#include "cuda/status.h"

/* A place's device is the calling thread's for the time of a call only, since that thread may be the progress
 * thread, or another of the program's. */

static inline enum sar_status enter(int device, int *before)
{
    SAR_TRY(sar_cuda(cudaGetDevice(before)));
    return *before == device ? SAR_OK : sar_cuda(cudaSetDevice(device));
}

static inline enum sar_status leave(int device, int before, enum sar_status status)
{
    if (before != device)
        (void)cudaSetDevice(before);
    return status;
}

#endif
