/* SPDX-License-Identifier: BSD-3-Clause */
/* What the runtime that stands in for CUDA's tells and does beyond it. Tests look for these by name. */

#ifndef SAR_TESTS_CUDA_FAKE_CUDA_H
#define SAR_TESTS_CUDA_FAKE_CUDA_H

#include <stdbool.h>

long fake_cuda_allocations(void);
long fake_cuda_pinned(void);
long fake_cuda_taken(void);
long fake_cuda_copied(void);
long fake_cuda_waits(void);
long fake_cuda_stops(void);
long fake_cuda_kernels(void);
long fake_cuda_pools(void);
long fake_cuda_pinned_on(void);
long fake_cuda_strayed(void);
long fake_cuda_pageable(void);
void *fake_cuda_stream(void);
void fake_cuda_launch(void *stream, void (*work)(void *), void *argument);
long fake_cuda_calls(void);
void fake_cuda_refuse(long n);
void fake_cuda_break(long on);
void fake_cuda_watch(long on);
long fake_cuda_touched(void);
void *fake_cuda_reach(const void *address);

/* For its own files, whose functions of CUDA all begin with one of the first two: end the program if a
 * function of the host calls one, which CUDA does not allow; and the same, counting a call, which may have to
 * be refused, as all are while the device is broken. */
void fake_cuda_forbid(const char *call);
bool fake_cuda_refuses_of(const char *call);
#define fake_cuda_refuses() fake_cuda_refuses_of(__func__)
bool fake_cuda_is_in_function(void);

/* Count an allocation, of so many bytes of pinned memory; count a wait for a stream, or for all of a device;
 * count that a kernel was launched; tell whether the device is broken; tell which device is the thread's, and
 * count if it is not the one of what is given back; load the driver, as CUDA does when it is needed; tell
 * whether devices share memory of the host, and give it back; close such memory while a kernel is watched,
 * and open it. */
void fake_cuda_count(long bytes);
void fake_cuda_count_wait(bool all);
void fake_cuda_count_kernel(void);
bool fake_cuda_is_broken(void);
int fake_cuda_device(void);
void fake_cuda_expect_device(int place);
void fake_cuda_load_driver(void);
bool fake_cuda_shares(const void *address);
void fake_cuda_unshare(void *memory);
void fake_cuda_guard(bool on);

/* Whether what is queued in a stream goes into a graph, which notes it, or would have to wait for one that is
 * captured, which is spoilt then. Wait for a stream, or do what may not be done while some other one is
 * captured. */
bool fake_cuda_captures(void *stream);
void fake_cuda_disturb(void *stream);
void fake_cuda_risk(void);

/* Make a stream, which the default one waits for or does not, and tell that; NULL is the default one. Queue
 * work, or a function of the host, or a wait until another stream has done so much; tell how much has been
 * queued, and wait until so much is done. */
void *fake_cuda_make_stream(bool blocking);
bool fake_cuda_is_blocking(void *stream);
void fake_cuda_queue(void *stream, void (*work)(void *), void *argument);
void fake_cuda_queue_function(void *stream, void (*work)(void *), void *argument);
void fake_cuda_queue_wait(void *stream, void *other, long mark);
long fake_cuda_mark(void *stream);
void fake_cuda_drain(void *stream, long mark);
void fake_cuda_drain_all(void);
bool fake_cuda_is_done(void *stream);

#endif
