/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_CUDA_CODEC_H
#define SAR_CUDA_CODEC_H

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

#include "device/accelerator.h"

/* These are what struct sar_accelerator says, on the calling thread's device. Memory they need comes from the
 * device's pool, in the order of the stream. */

enum sar_status sar_cuda_look(const struct sar_vector *vector, const struct sar_run *run,
                              struct sar_findings *findings);
enum sar_status sar_cuda_encode(const struct sar_vector *vector, const struct sar_run *run,
                                const struct sar_payload *payload);
enum sar_status sar_cuda_decode(const struct sar_vector *vector, const struct sar_payload *payload,
                                struct sar_run *run, struct sar_findings *findings);
enum sar_status sar_cuda_unsplit(const struct sar_vector *vector, const struct sar_part *part,
                                 const struct sar_run *run, void *index);

#ifdef __cplusplus
}
#endif

#endif
