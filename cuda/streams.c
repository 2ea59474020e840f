/* SPDX-License-Identifier: BSD-3-Clause */
/* Streams, events and stream-ordered memory of the plug-in (struct sar_stream_ops). The streams and the
 * default stream do not wait for each other; callers order work with events. Events record no time, which
 * would make them slow. */

#include "cuda/device_guard.h"
#include "cuda/launch.h"

static enum sar_status create_stream(int device_id, void **stream)
{
    return SAR_ON_DEVICE(device_id, sar_cuda_status(cudaStreamCreateWithFlags((cudaStream_t *)stream,
                                                                              cudaStreamNonBlocking)));
}

static void destroy_stream(int device_id, void *stream)
{
    SAR_RELEASE_ON_DEVICE(device_id, sar_cuda_status(cudaStreamDestroy((cudaStream_t)stream)));
}

static enum sar_status create_event(int device_id, void **event)
{
    return SAR_ON_DEVICE(device_id, sar_cuda_status(cudaEventCreateWithFlags((cudaEvent_t *)event,
                                                                             cudaEventDisableTiming)));
}

static void destroy_event(int device_id, void *event)
{
    SAR_RELEASE_ON_DEVICE(device_id, sar_cuda_status(cudaEventDestroy((cudaEvent_t)event)));
}

static enum sar_status record(int device_id, void *event, void *stream)
{
    return SAR_ON_DEVICE(device_id,
                         sar_cuda_status(cudaEventRecord((cudaEvent_t)event, (cudaStream_t)stream)));
}

static enum sar_status wait_event(int device_id, void *event, void *stream)
{
    return SAR_ON_DEVICE(device_id,
                         sar_cuda_status(cudaStreamWaitEvent((cudaStream_t)stream, (cudaEvent_t)event, 0)));
}

static enum sar_status sync_event(int device_id, void *event)
{
    return SAR_ON_DEVICE(device_id, sar_cuda_status(cudaEventSynchronize((cudaEvent_t)event)));
}

static enum sar_status alloc(int device_id, size_t bytes, void *stream, void **memory)
{
    return SAR_ON_DEVICE(device_id, sar_cuda_pool_alloc(bytes, (cudaStream_t)stream, memory));
}

static void release(int device_id, void *memory, void *stream)
{
    SAR_RELEASE_ON_DEVICE(device_id, sar_cuda_status(cudaFreeAsync(memory, (cudaStream_t)stream)));
}

const struct sar_stream_ops sar_cuda_stream_ops = {
    .create = create_stream,
    .destroy = destroy_stream,
    .create_event = create_event,
    .destroy_event = destroy_event,
    .record = record,
    .wait_event = wait_event,
    .sync_event = sync_event,
    .alloc = alloc,
    .release = release,
};
