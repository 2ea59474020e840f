/* SPDX-License-Identifier: BSD-3-Clause */
/* Buffers in device memory. The library's CUDA plug-in allocates them, so the benchmark does not link CUDA.
 * Local. */
#ifndef PERF_DEVICE_BUFFERS_H
#define PERF_DEVICE_BUFFERS_H

#include <stdbool.h>
#include <stddef.h>

/** Opens the plug-in on ranks where a device is wanted, for device n of the devices here, counted from 0 and
 * again from 0 after the last. Returns false on all ranks, after one sentence on standard error, if a rank
 * has no device. Collective over MPI_COMM_WORLD. */
bool perf_device_open(int n, bool wanted);
/** True after perf_device_open: the buffers of this rank are in device memory. */
bool perf_device_is_open(void);

/** Copies a host array to new device memory, for perf_device_free. Ends all ranks if memory is short. */
void *perf_device_make(const void *from, size_t bytes);
/** Frees device memory; NULL is allowed. */
void perf_device_free(void *memory);

/** Copies between arrays in host or device memory and waits for completion. */
void perf_device_copy(void *to, const void *from, size_t bytes);

#endif
