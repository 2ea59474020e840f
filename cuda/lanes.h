/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_CUDA_LANES_H
#define SAR_CUDA_LANES_H

#include "device/accelerator.h"

extern const struct sar_lanes sar_cuda_lanes;

#endif
