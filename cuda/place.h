/* SPDX-License-Identifier: BSD-3-Clause */
/* A place's device is the calling thread's for the time of a call only, since that thread may be the progress
 * thread, or another of the program's. For so long it also says that what it does belongs to no graph: else
 * CUDA takes memory that is allocated and events that are waited for, in any thread, for mistakes in one that
 * is being captured in a stream which the library has nothing to do with, and gives that up. */

#ifndef SAR_CUDA_PLACE_H
#define SAR_CUDA_PLACE_H

#include "cuda/status.h"

static _Thread_local int sar_place_before;
static _Thread_local enum cudaStreamCaptureMode sar_capture_before;

/* An error that the program left behind would be taken for that of a kernel. */
static inline enum sar_status sar_place_enter(int place)
{
    (void)cudaGetLastError();
    SAR_TRY(sar_cuda(cudaGetDevice(&sar_place_before)));
    if (sar_place_before != place)
        SAR_TRY(sar_cuda(cudaSetDevice(place)));
    sar_capture_before = cudaStreamCaptureModeRelaxed;
    enum sar_status status = sar_cuda(cudaThreadExchangeStreamCaptureMode(&sar_capture_before));
    if (status != SAR_OK && sar_place_before != place)
        (void)cudaSetDevice(sar_place_before);
    return status;
}

static inline enum sar_status sar_place_leave(int place, enum sar_status status)
{
    (void)cudaThreadExchangeStreamCaptureMode(&sar_capture_before);
    if (sar_place_before != place)
        (void)cudaSetDevice(sar_place_before);
    return status;
}

/** The status of a call that is made on a place's device. */
#define SAR_AT(place, call) \
    (sar_place_enter(place) == SAR_OK ? sar_place_leave((place), (call)) : SAR_DEVICE_FAILED)

/** Make a call that gives something back on a place's device, so that no context is made on another; where
 * the device cannot be entered, all the same. */
#define SAR_GIVE_BACK_AT(place, call)                         \
    do {                                                      \
        enum sar_status sar_entered = sar_place_enter(place); \
        (void)(call);                                         \
        if (sar_entered == SAR_OK)                            \
            (void)sar_place_leave((place), SAR_OK);           \
    } while (0)

#endif
