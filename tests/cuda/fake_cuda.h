/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions of the fake CUDA runtime beyond CUDA's own. Tests look them up by name. */

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

/* For the runtime's own files, whose CUDA functions begin with one of the first two. fake_cuda_forbid aborts
 * if a host function calls CUDA, which CUDA does not allow. The next one also counts the call, and tells
 * whether it must fail, as every call does on a broken device. */
void fake_cuda_forbid(const char *call);
bool fake_cuda_refuses_of(const char *call);
#define fake_cuda_refuses() fake_cuda_refuses_of(__func__)
bool fake_cuda_is_in_function(void);

/* In order: count an allocation and its pinned bytes; count a wait for a stream or for a device; count a
 * kernel launch; tell whether the device is broken; tell the thread's device, and count a release on another
 * device; load the driver, as CUDA does on demand; tell whether memory is shared with the host, and free it;
 * close such memory while a kernel is watched, and open it. */
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

/* In order: tell whether work queued in a stream goes into a graph, which counts it, or would wait for a
 * captured stream, which invalidates the capture. Wait for a stream, or run a function that is forbidden
 * while another stream is captured. */
bool fake_cuda_captures(void *stream);
void fake_cuda_disturb(void *stream);
void fake_cuda_risk(void);

/* In order: make a stream, which the default stream (NULL) waits for if `blocking`, and tell whether it does.
 * Queue work, a host function, or a wait until another stream has completed an amount of work; tell how much
 * is queued, and wait until an amount is completed. */
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
