/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_CUDA_BASELINE_H
#define SAR_CUDA_BASELINE_H

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

#include "device/accelerator.h"

/** For the benchmark: what sar_cuda_mark and sar_cuda_split do of a vector of elements of 4 bytes, by what
 * CUB has ready. All arrays are the device's; run->nnz is set. */
enum sar_status sar_cuda_select_and_sort(const struct sar_vector *vector, const struct sar_map *map,
                                         struct sar_run *run);

#ifdef __cplusplus
}
#endif

#endif
