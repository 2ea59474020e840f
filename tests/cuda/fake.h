/* SPDX-License-Identifier: BSD-3-Clause */
/* What the runtime that stands in for CUDA's tells and does beyond it. Tests look for these by name. */

#ifndef FAKE_H
#define FAKE_H

#include <stdbool.h>

long fake_cuda_allocations(void);
long fake_cuda_pinned(void);
long fake_cuda_taken(void);
long fake_cuda_copied(void);
long fake_cuda_waits(void);
long fake_cuda_stops(void);
long fake_cuda_kernels(void);
void *fake_cuda_stream(void);
void fake_cuda_open(void);
void fake_cuda_close(void);
long fake_cuda_calls(void);
void fake_cuda_refuse(long n);
void fake_cuda_break(long on);

/* For its own files: count an allocation, of so many bytes of pinned memory; count a wait for a stream, or
 * for all of a device; count that memory was opened for a kernel; count a call, which may have to be refused,
 * as all are while the device is broken;
 * tell which device is the thread's; tell how much work was queued, and wait until so much is done. */
void fake_cuda_count(long bytes);
void fake_cuda_count_wait(bool all);
void fake_cuda_count_kernel(void);
bool fake_cuda_refuses(void);
bool fake_cuda_is_broken(void);
int fake_cuda_device(void);
long fake_cuda_queued(void);
void fake_cuda_wait(long queued);

#endif
