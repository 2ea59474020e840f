/* SPDX-License-Identifier: BSD-3-Clause */
/* An accelerator whose device is the host. It delays work as long as the interface permits: a queued job runs
 * only when a caller waits for its stream, for an event after it, or for a stream that depends on it. Code
 * that waits too little, or frees memory too early, therefore computes wrong numbers. */

#ifndef SAR_TESTS_SUPPORT_FAKE_ACCELERATOR_H
#define SAR_TESTS_SUPPORT_FAKE_ACCELERATOR_H

#include <stdbool.h>
#include <stddef.h>

#include "device/accelerator.h"

/** Arguments of a kernel. They are copies, so that the caller may change its own after queueing. */
struct fake_accel_args {
    struct sar_device_vec vector;
    struct sar_nonzero_mask marks;
    struct sar_spvec run;
    void *to;
    const void *from;
    size_t bytes;
};

typedef void (*fake_accel_kernel_fn)(const struct fake_accel_args *arguments);

/** Counters since fake_accel_begin: copies and kernels queued, those still waiting, the maximum that waited
 * at a time; and functions called. */
struct fake_accel_work {
    size_t queued, waiting, most_waiting;
    int functions;
};

/** Resources not yet released: open streams, events and device arrays; pinned blocks and their bytes. Also
 * the total number of pinned blocks, the maximum of pinned bytes, and the number of device arrays made
 * outside of pools. */
struct fake_accel_memory {
    int open, arrays_ever;
    size_t pinned, pinned_bytes, pinned_most, pinned_ever;
};

extern struct fake_accel_work fake_accel_work;
extern struct fake_accel_memory fake_accel_memory;

/** The table of functions. It has copy, wait, memory and streams; a test adds the functions that it uses. */
extern struct sar_accelerator fake_accelerator;

/** Forget queued jobs, and let function call number `refused` from now on fail; 0 for none. */
void fake_accel_begin(int refused);

/** Queue a kernel. Counts as a function call, and may fail. */
enum sar_status fake_accel_queue(void *stream, fake_accel_kernel_fn kernel,
                                 const struct fake_accel_args *arguments);

/** Run all jobs of a stream. */
void fake_accel_run(void *stream);

/** True if an address is in pinned memory. */
bool fake_accel_is_pinned(const void *address);

/** Make the library release the memory that it keeps for later calls. */
void fake_accel_end(void);

/** Free pinned memory that the library must not free, because a device may still write to it. Runs at the end
 * of a test group. */
int fake_accel_free_lost(void **state);

#endif
