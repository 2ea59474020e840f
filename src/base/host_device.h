/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_BASE_HOST_DEVICE_H
#define SAR_BASE_HOST_DEVICE_H

/** Functions that are one text for the host and for CUDA. */
#ifdef __CUDACC__
#define SAR_HOST_DEVICE __host__ __device__
#else
#define SAR_HOST_DEVICE
#endif

#endif
