/* SPDX-License-Identifier: BSD-3-Clause */
/* An accelerator whose device is the host, and as late as one may be: what is queued in a stream is done
 * only once somebody waits for the stream, for an event behind it, or for a stream that follows it. So
 * whoever waits for too little, or lets go of memory too early, has wrong numbers. */

#ifndef SAR_TESTS_SUPPORT_FAKE_ACCELERATOR_H
#define SAR_TESTS_SUPPORT_FAKE_ACCELERATOR_H

#include <stdbool.h>
#include <stddef.h>

#include "device/accelerator.h"

/** What kernels take: copies of what their caller may change once they are queued. */
struct fake_accel_args {
    struct sar_device_vec vector;
    struct sar_nonzero_mask marks;
    struct sar_spvec run;
    void *to;
    const void *from;
    size_t bytes;
};

typedef void (*fake_accel_kernel_fn)(const struct fake_accel_args *arguments);

/** Of all that was queued since fake_accel_begin: copies and kernels, how many of these are yet to be done,
 * and the most that ever were; and the functions called. */
struct fake_accel_work {
    size_t queued, waiting, most_waiting;
    int functions;
};

/** What is not given back: lanes, events and memory of the device; blocks of pinned memory and their bytes.
 * And how many blocks were ever pinned, and the most bytes at a time; and how many arrays of the device's
 * were ever made that are no pool's. */
struct fake_accel_memory {
    int open, arrays_ever;
    size_t pinned, pinned_bytes, pinned_most, pinned_ever;
};

extern struct fake_accel_work fake_accel_work;
extern struct fake_accel_memory fake_accel_memory;

/** For tests to set the functions that they need: here are copy, wait, memory and lanes. */
extern struct sar_accelerator fake_accelerator;

/** Forget what is queued, and let the refused-th function from now on fail; 0 for none. */
void fake_accel_begin(int refused);

/** Queue a kernel; counts as a function, and may fail. */
enum sar_status fake_accel_queue(void *stream, fake_accel_kernel_fn kernel,
                                 const struct fake_accel_args *arguments);

/** Do all that is queued in a stream. */
void fake_accel_run(void *stream);

/** Whether an address is in pinned memory. */
bool fake_accel_is_pinned(const void *address);

/** Have the library give back what it keeps for later calls. */
void fake_accel_end(void);

/** Free the pinned memory that the library must not give back, since a device may still be writing to it; for
 * the end of a group of tests. */
int fake_accel_free_lost(void **state);

#endif
