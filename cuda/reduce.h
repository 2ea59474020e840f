/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_CUDA_REDUCE_H
#define SAR_CUDA_REDUCE_H

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

#include "device/accelerator.h"

/** Reduce runs in the device's memory into one, as sar_reduce does and to the same bits, but for those of
 * NaNs. The indices of a run ascend and differ. Takes shape->count / 3 bytes of the device's pool.
 * @param out  room as for sar_reduce; nnz is set, for which the stream is waited for */
enum sar_status sar_cuda_reduce(const struct sar_shape *shape, const struct sar_run runs[], size_t n,
                                struct sar_run *out, cudaStream_t stream);

/** Sort elements of any order by index, and fold those of equal index in the order in which they stand: what
 * sar_sort does. Likewise.
 * @param from  fewer than 2^32 elements, indices of shape->index_size bytes
 * @param most  the largest index */
enum sar_status sar_cuda_coalesce(const struct sar_shape *shape, const struct sar_run *from, uint64_t most,
                                  struct sar_run *out, cudaStream_t stream);

/** What struct sar_accelerator says of these, on the calling thread's device. */
enum sar_status sar_cuda_ingest(const struct sar_vector *vector, const struct sar_coo *coo,
                                struct sar_run *run, bool *ascends);
enum sar_status sar_cuda_partition(const struct sar_vector *vector, const struct sar_division *how,
                                   const struct sar_run *from, const struct sar_run *to,
                                   unsigned long long first[]);

#ifdef __cplusplus
}
#endif

#endif
