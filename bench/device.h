/* SPDX-License-Identifier: BSD-3-Clause */
/* Buffers in device memory. The library's plug-in makes them, so that the benchmark itself needs no CUDA. */
#ifndef PERF_DEVICE_H
#define PERF_DEVICE_H

#include <stdbool.h>
#include <stddef.h>

/* Get ready to make some, on device 0. False, with a line on standard error, where there can be none. */
bool perf_device_open(void);

/* A copy of an array of the host's; a lack of memory ends all ranks. */
void *perf_device_make(const void *from, size_t bytes);
void perf_device_free(void *memory);

/* Copy between arrays of any memory; on return it is done. */
void perf_device_copy(void *to, const void *from, size_t bytes);

#endif
