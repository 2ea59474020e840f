/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_CUDA_POOL_H
#define SAR_CUDA_POOL_H

#include <stddef.h>

#include "cuda/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Take memory of the calling thread's device, in the order of a stream. It comes from a pool of our own,
 * which keeps what is given back for the next call. */
enum sar_status sar_cuda_take(size_t bytes, cudaStream_t stream, void **memory);

/** Give the pools' memory back to the system, as soon as nobody has any of it. */
void sar_cuda_close_pools(void);

#ifdef __cplusplus
}
#endif

#endif
