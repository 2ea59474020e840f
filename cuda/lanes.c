/* SPDX-License-Identifier: BSD-3-Clause */
/* Streams, events and memory in the order of streams. The streams do not wait for the default one, nor it
 * for them: what is to follow on something says so by an event. Events keep no time, which would make them
 * slow. */

#include "cuda/lanes.h"

#include "cuda/place.h"
#include "cuda/pool.h"

static enum sar_status open_lane(int device, void **lane)
{
    return SAR_AT(device, sar_cuda(cudaStreamCreateWithFlags((cudaStream_t *)lane, cudaStreamNonBlocking)));
}

static void close_lane(int device, void *lane)
{
    SAR_GIVE_BACK_AT(device, sar_cuda(cudaStreamDestroy((cudaStream_t)lane)));
}

static enum sar_status make_event(int device, void **event)
{
    return SAR_AT(device, sar_cuda(cudaEventCreateWithFlags((cudaEvent_t *)event, cudaEventDisableTiming)));
}

static void drop_event(int device, void *event)
{
    SAR_GIVE_BACK_AT(device, sar_cuda(cudaEventDestroy((cudaEvent_t)event)));
}

static enum sar_status record(int device, void *event, void *stream)
{
    return SAR_AT(device, sar_cuda(cudaEventRecord((cudaEvent_t)event, (cudaStream_t)stream)));
}

static enum sar_status follow(int device, void *event, void *stream)
{
    return SAR_AT(device, sar_cuda(cudaStreamWaitEvent((cudaStream_t)stream, (cudaEvent_t)event, 0)));
}

static enum sar_status await(int device, void *event)
{
    return SAR_AT(device, sar_cuda(cudaEventSynchronize((cudaEvent_t)event)));
}

static enum sar_status take(int device, size_t bytes, void *stream, void **memory)
{
    return SAR_AT(device, sar_cuda_take(bytes, (cudaStream_t)stream, memory));
}

static void give_back(int device, void *memory, void *stream)
{
    SAR_GIVE_BACK_AT(device, sar_cuda(cudaFreeAsync(memory, (cudaStream_t)stream)));
}

const struct sar_lanes sar_cuda_lanes = {
    .open = open_lane,
    .close = close_lane,
    .make_event = make_event,
    .drop_event = drop_event,
    .record = record,
    .follow = follow,
    .await = await,
    .take = take,
    .give_back = give_back,
};
