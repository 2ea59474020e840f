/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_CUDA_DENSE_H
#define SAR_CUDA_DENSE_H

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

#include "device/accelerator.h"

/* These are what struct sar_accelerator says, on the calling thread's device. Memory they need comes from the
 * device's pool, in the order of the stream. */

enum sar_status sar_cuda_mark(const struct sar_vector *vector, struct sar_marks *marks);
void sar_cuda_unmark(const struct sar_vector *vector, struct sar_marks *marks);
enum sar_status sar_cuda_compact(const struct sar_vector *vector, const struct sar_marks *marks,
                                 const struct sar_run *run);
enum sar_status sar_cuda_split(const struct sar_vector *vector, const struct sar_marks *marks,
                               const struct sar_division *split, const struct sar_run *run,
                               unsigned long long first[]);
enum sar_status sar_cuda_scatter(const struct sar_vector *vector, const struct sar_run runs[], size_t n,
                                 bool clear);
enum sar_status sar_cuda_pack(const struct sar_vector *vector, const struct sar_parcel *parcel);
enum sar_status sar_cuda_unpack(const struct sar_vector *vector, const struct sar_parcel *parcel);

/** The number of a bitmap's bits; waits for it. */
enum sar_status sar_cuda_count(const uint32_t *bits, size_t words, size_t *n, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
