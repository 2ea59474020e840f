/* SPDX-License-Identifier: BSD-3-Clause */
/* Streams and events of the fake CUDA runtime. An event with timing completes its stream's work when it is
 * recorded; others store the position in the stream. */

#include <cuda_runtime_api.h>

#include <stdlib.h>
#include <time.h>

#include "fake_cuda.h"

struct moment {
    bool timed;
    struct timespec time;
    long mark;
    cudaStream_t stream;
};

static cudaStream_t followed;

/* The last stream that another stream was made to wait for. */
void *fake_cuda_stream(void)
{
    return __atomic_load_n(&followed, __ATOMIC_RELAXED);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
    fake_cuda_count(0);
    if (fake_cuda_refuses())
        return cudaErrorMemoryAllocation;
    *stream = fake_cuda_make_stream((flags & cudaStreamNonBlocking) == 0);
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    fake_cuda_forbid(__func__);
    fake_cuda_drain(stream, fake_cuda_mark(stream));
    return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    fake_cuda_count(0);
    struct moment *moment = fake_cuda_refuses() ? NULL : calloc(1, sizeof *moment);
    if (moment == NULL)
        return cudaErrorMemoryAllocation;
    moment->timed = (flags & cudaEventDisableTiming) == 0;
    *event = (cudaEvent_t)moment;
    return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    struct moment *moment = (struct moment *)event;
    if (fake_cuda_refuses())
        return cudaErrorUnknown;
    (void)fake_cuda_captures(stream);
    moment->stream = stream;
    moment->mark = fake_cuda_mark(stream);
    if (moment->timed) {
        fake_cuda_drain(stream, moment->mark);
        clock_gettime(CLOCK_MONOTONIC, &moment->time);
    }
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
    const struct moment *moment = (const struct moment *)event;
    (void)flags;
    __atomic_store_n(&followed, moment->stream, __ATOMIC_RELAXED);
    if (fake_cuda_refuses())
        return cudaErrorUnknown;
    fake_cuda_queue_wait(stream, moment->stream, moment->mark);
    return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    const struct moment *moment = (const struct moment *)event;
    if (fake_cuda_refuses())
        return cudaErrorUnknown;
    fake_cuda_risk();
    fake_cuda_disturb(moment->stream);
    fake_cuda_drain(moment->stream, moment->mark);
    return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t begin, cudaEvent_t end)
{
    fake_cuda_forbid(__func__);
    const struct timespec *from = &((const struct moment *)begin)->time,
                          *to = &((const struct moment *)end)->time;
    *milliseconds =
        (float)((double)(to->tv_sec - from->tv_sec) * 1e3 + (double)(to->tv_nsec - from->tv_nsec) / 1e6);
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    fake_cuda_forbid(__func__);
    free(event);
    return cudaSuccess;
}
