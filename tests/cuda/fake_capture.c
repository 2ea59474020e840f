/* SPDX-License-Identifier: BSD-3-Clause */
/* Stream capture of the fake CUDA runtime. Work queued in a captured stream is counted and not run. As in
 * CUDA, a capture becomes invalid if a thread waits for its stream, or queues work in the default stream that
 * the captured one waits for. It also does if a thread allocates or waits for an event without a relaxed
 * capture mode. */

#include <cuda_runtime_api.h>

#include <pthread.h>
#include <stdlib.h>

#include "fake_cuda.h"

enum { MOST = 4 };

struct capture {
    void *stream; /* NULL where there is none */
    enum cudaStreamCaptureMode mode;
    pthread_t thread;
    size_t nodes;
    bool invalid;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct capture captures[MOST];
static __thread enum cudaStreamCaptureMode thread_mode = cudaStreamCaptureModeGlobal;

static struct capture *find(const void *stream)
{
    for (int i = 0; i < MOST; i++)
        if (stream != NULL && captures[i].stream == stream)
            return &captures[i];
    return NULL;
}

/* A captured stream that the default stream would have to wait for. */
static struct capture *find_blocking(void)
{
    for (int i = 0; i < MOST; i++)
        if (captures[i].stream != NULL && fake_cuda_is_blocking(captures[i].stream))
            return &captures[i];
    return NULL;
}

bool fake_cuda_captures(void *stream)
{
    pthread_mutex_lock(&lock);
    struct capture *found = stream == NULL ? find_blocking() : find(stream);
    if (found != NULL && stream == NULL)
        found->invalid = true;
    else if (found != NULL)
        found->nodes++;
    pthread_mutex_unlock(&lock);
    return found != NULL;
}

void fake_cuda_disturb(void *stream)
{
    pthread_mutex_lock(&lock);
    struct capture *found = stream == NULL ? find_blocking() : find(stream);
    if (found != NULL)
        found->invalid = true;
    pthread_mutex_unlock(&lock);
}

static bool is_forbidden_by(const struct capture *capture)
{
    bool own = pthread_equal(capture->thread, pthread_self());
    if (thread_mode == cudaStreamCaptureModeRelaxed || capture->mode == cudaStreamCaptureModeRelaxed)
        return false;
    return own ||
           (capture->mode == cudaStreamCaptureModeGlobal && thread_mode == cudaStreamCaptureModeGlobal);
}

void fake_cuda_risk(void)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MOST; i++)
        if (captures[i].stream != NULL && is_forbidden_by(&captures[i]))
            captures[i].invalid = true;
    pthread_mutex_unlock(&lock);
}

cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
    enum cudaStreamCaptureMode before = thread_mode;
    fake_cuda_forbid(__func__);
    thread_mode = *mode;
    *mode = before;
    return fake_cuda_is_broken() ? cudaErrorUnknown : cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status)
{
    if (fake_cuda_refuses())
        return cudaErrorUnknown;
    pthread_mutex_lock(&lock);
    const struct capture *found = find(stream);
    bool waits = stream == NULL && find_blocking() != NULL;
    *status = found == NULL    ? cudaStreamCaptureStatusNone
              : found->invalid ? cudaStreamCaptureStatusInvalidated
                               : cudaStreamCaptureStatusActive;
    pthread_mutex_unlock(&lock);
    return waits ? cudaErrorStreamCaptureImplicit : cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
    cudaError_t error = cudaErrorStreamCaptureUnsupported;
    fake_cuda_forbid(__func__);
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MOST && stream != NULL && error != cudaSuccess; i++) {
        if (captures[i].stream != NULL)
            continue;
        captures[i] = (struct capture){ stream, mode, pthread_self(), 0, false };
        error = cudaSuccess;
    }
    pthread_mutex_unlock(&lock);
    return error;
}

/* A graph is its number of nodes. */
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
    fake_cuda_forbid(__func__);
    pthread_mutex_lock(&lock);
    struct capture *found = find(stream);
    struct capture ended = found == NULL ? (struct capture){ .invalid = true } : *found;
    if (found != NULL)
        found->stream = NULL;
    pthread_mutex_unlock(&lock);
    size_t *nodes = ended.invalid ? NULL : malloc(sizeof *nodes);
    *graph = (cudaGraph_t)nodes;
    if (nodes == NULL)
        return cudaErrorStreamCaptureInvalidated;
    *nodes = ended.nodes;
    return cudaSuccess;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *number)
{
    (void)nodes;
    fake_cuda_forbid(__func__);
    *number = *(size_t *)graph;
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    fake_cuda_forbid(__func__);
    free(graph);
    return cudaSuccess;
}
