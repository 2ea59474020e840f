/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_CUDA_HIERARCHICAL_H
#define SAR_CUDA_HIERARCHICAL_H

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

#include "base/status.h"
#include "hash/hierarchical.h"

/** Sort occurrences into a map's parts as sar_hierarchical_hash does: the same occurrences come into each
 * part, in the order of the cells, also if how->sorted is set. All arrays are the device's. Waits for the
 * stream once for each run, to learn whether another one is needed.
 * @param out  index, first and, unless NULL, value and position: the caller's memory, which is written;
 *   serial and reruns are set */
enum sar_status sar_cuda_hierarchical_hash(const struct sar_hierarchical *how, const struct sar_map *map,
                                           const struct sar_hash_input *input, struct sar_hash_output *out,
                                           cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
