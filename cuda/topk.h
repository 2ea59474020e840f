/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_CUDA_TOPK_H
#define SAR_CUDA_TOPK_H

#ifdef __cplusplus
extern "C" {
#endif

#include "device/accelerator.h"

/* These are what struct sar_accelerator says, on the calling thread's device, with memory from its pool. */

enum sar_status sar_cuda_sample(const struct sar_vector *vector, const struct sar_dgc *of, size_t n,
                                uint32_t seed, uint64_t *magnitudes);
enum sar_status sar_cuda_select(const struct sar_vector *vector, const struct sar_dgc *of,
                                const struct sar_cutoff *cutoff, struct sar_marks *marks);
enum sar_status sar_cuda_clear(const struct sar_vector *vector, const struct sar_dgc *of, uint64_t masked,
                               const struct sar_marks *marks);

#ifdef __cplusplus
}
#endif

#endif
