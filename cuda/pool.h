/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_CUDA_POOL_H
#define SAR_CUDA_POOL_H

#include <stdbool.h>
#include <stddef.h>

#include "cuda/status.h"

/** Devices that may have a pool. */
enum { SAR_CUDA_DEVICES = 64 };

#ifdef __cplusplus
extern "C" {
#endif

/** Take memory of the calling thread's device, in the order of a stream. It comes from a pool of our own,
 * which keeps what is given back for the next call. */
enum sar_status sar_cuda_take(size_t bytes, cudaStream_t stream, void **memory);

/** Whether a device has such a pool. Then give its memory back to the system, as soon as nobody has any of
 * it; the calling thread's device is that one. */
bool sar_cuda_has_pool(int device);
void sar_cuda_close_pool(int device);

#ifdef __cplusplus
}
#endif

#endif
