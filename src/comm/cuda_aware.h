/* SPDX-License-Identifier: BSD-3-Clause */
/* A test for MPI libraries that accept device memory. */

#ifndef SAR_COMM_CUDA_AWARE_H
#define SAR_COMM_CUDA_AWARE_H

#include "device/host_copy.h"
#include "comm/comm.h"

/** True if MPI accepts buffers in the memory of this device: it says so, and a message of this rank to itself
 * arrives intact. Local, takes milliseconds. */
bool sar_comm_is_cuda_aware(const struct sar_comm *comm, const struct sar_device_ctx *memory);

#endif
