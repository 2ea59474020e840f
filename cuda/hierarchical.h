/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_CUDA_HIERARCHICAL_H
#define SAR_CUDA_HIERARCHICAL_H

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

#include "base/status.h"
#include "hash/hierarchical.h"

/** One run of hierarchical hashing. The structures are the host's, all pointers in them the device's: the
 * caller lays out memory.first and memory.serial with sar_hash_layout and copies them. */
struct sar_cuda_hash {
    struct sar_hash_memory memory;
    struct sar_map map;
    struct sar_hash_input input;
    size_t cells; /**< memory.first[map.parts] */
};

/* All of these queue work on the stream and do not wait for it. */

/** Empty the cells and hash all occurrences. memory.appends then tells, copied to the host together with the
 * layout, by sar_hash_overflowed whether another run is needed. */
enum sar_status sar_cuda_hash_fill(const struct sar_cuda_hash *job, cudaStream_t stream);

/** totals[p] = occurrences in part p, for laying out another run. */
enum sar_status sar_cuda_hash_count(const struct sar_cuda_hash *job, unsigned long long *totals,
                                    cudaStream_t stream);

/** Bytes of device memory that sar_cuda_hash_extract needs. */
enum sar_status sar_cuda_hash_scratch(const struct sar_cuda_hash *job, size_t *bytes);

/** Read the lists off the cells into out->first, ->index, ->value and, unless NULL, ->position, which are the
 * caller's device memory. The lists are in the order of the cells, also if job->memory.how.sorted is set. */
enum sar_status sar_cuda_hash_extract(const struct sar_cuda_hash *job, void *scratch, size_t bytes,
                                      const struct sar_hash_output *out, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
