/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls of the CUDA runtime with another current device. The guard sets the device for one call and then
 * restores the thread's own, since the thread may be the progress thread or one of the program's threads.
 *
 * The guard also sets the thread's capture mode to relaxed. In the other modes CUDA treats allocations and
 * waits for events, in any thread, as errors while some stream is captured, and invalidates that capture.
 *
 * C only: sar_device_guard_previous is _Thread_local. */

#ifndef SAR_CUDA_DEVICE_GUARD_H
#define SAR_CUDA_DEVICE_GUARD_H

#include "cuda/status.h"

static _Thread_local int sar_device_guard_previous; /* the thread's device before the call */
static _Thread_local enum cudaStreamCaptureMode sar_device_guard_capture_mode;

/** Make device_id the thread's device. Clears the runtime's last error first: an error that the program left
 * would look like a kernel's. */
static inline enum sar_status sar_device_guard_enter(int device_id)
{
    (void)cudaGetLastError();
    SAR_TRY(sar_cuda_status(cudaGetDevice(&sar_device_guard_previous)));
    if (sar_device_guard_previous != device_id)
        SAR_TRY(sar_cuda_status(cudaSetDevice(device_id)));
    sar_device_guard_capture_mode = cudaStreamCaptureModeRelaxed;
    enum sar_status status =
        sar_cuda_status(cudaThreadExchangeStreamCaptureMode(&sar_device_guard_capture_mode));
    if (status != SAR_OK && sar_device_guard_previous != device_id)
        (void)cudaSetDevice(sar_device_guard_previous);
    return status;
}

/** Restore the thread's device and capture mode; returns status. */
static inline enum sar_status sar_device_guard_leave(int device_id, enum sar_status status)
{
    (void)cudaThreadExchangeStreamCaptureMode(&sar_device_guard_capture_mode);
    if (sar_device_guard_previous != device_id)
        (void)cudaSetDevice(sar_device_guard_previous);
    return status;
}

/** Make a call on a device; the status of the call, or SAR_DEVICE_FAILED if the device cannot be set. */
#define SAR_ON_DEVICE(device_id, call)                                                         \
    (sar_device_guard_enter(device_id) == SAR_OK ? sar_device_guard_leave((device_id), (call)) \
                                                 : SAR_DEVICE_FAILED)

/** Make a call that releases a resource on its device, so that CUDA creates no context on another device.
 * The call is made even if the device cannot be set. */
#define SAR_RELEASE_ON_DEVICE(device_id, call)                                       \
    do {                                                                             \
        enum sar_status sar_device_guard_status = sar_device_guard_enter(device_id); \
        (void)(call);                                                                \
        if (sar_device_guard_status == SAR_OK)                                       \
            (void)sar_device_guard_leave((device_id), SAR_OK);                       \
    } while (0)

#endif
