/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_CUDA_ELIAS_FANO_H
#define SAR_CUDA_ELIAS_FANO_H

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

#include "device/accelerator.h"
#include "wire/wire.h"

/** Write a run in the device's memory as the format elias_fano does, to the same bytes. Queued.
 * @param payload  the device's, at a multiple of 8 */
enum sar_status sar_cuda_elias_fano_encode(const struct sar_layout *layout, const struct sar_run *run,
                                           void *payload, cudaStream_t stream);

/** Read the indices of run->nnz elements into run->index, which has room for them. The values are the
 * payload's beginning. Queued. All indices are below the span, and findings tell unless they ascend and are
 * so many. */
enum sar_status sar_cuda_elias_fano_decode(const struct sar_layout *layout, const void *payload,
                                           const struct sar_run *run, struct sar_findings *findings,
                                           cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
