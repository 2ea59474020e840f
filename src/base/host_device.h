/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions that the host and CUDA compile from one text. */

#ifndef SAR_BASE_HOST_DEVICE_H
#define SAR_BASE_HOST_DEVICE_H

/** Qualifier of a function for both. */
#ifdef __CUDACC__
#define SAR_HOST_DEVICE __host__ __device__
#else
#define SAR_HOST_DEVICE
#endif

#endif
