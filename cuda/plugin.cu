/* SPDX-License-Identifier: BSD-3-Clause */
/* The plug-in for CUDA, libmpix_sparse_cuda.so: exports struct sar_accelerator, and runs each function on
 * the device that its arguments name. Only the plug-in calls the CUDA runtime. */

#include "cuda/launch.h"

/* Makes a device the thread's device, and restores the thread's own at the end of its scope, since the
 * thread may be the progress thread or one of the program's threads. Clears the runtime's last error first:
 * an error that the program left would look like a kernel's.
 *
 * The guard also sets the thread's capture mode to relaxed. In the other modes CUDA treats allocations and
 * waits for events, in any thread, as errors while some stream is captured, and invalidates that capture. */
struct device_guard {
    int device_id, previous;
    cudaStreamCaptureMode capture_mode = cudaStreamCaptureModeRelaxed;
    bool entered; /* else the device cannot be set, and nothing was changed */

    explicit device_guard(int device_id) : device_id(device_id), entered(enter())
    {
    }

    ~device_guard()
    {
        if (!entered)
            return;
        (void)cudaThreadExchangeStreamCaptureMode(&capture_mode);
        restore_device();
    }

  private:
    bool enter()
    {
        (void)cudaGetLastError();
        if (sar_cuda_status(cudaGetDevice(&previous)) != SAR_OK)
            return false;
        if (previous != device_id && sar_cuda_status(cudaSetDevice(device_id)) != SAR_OK)
            return false;
        if (sar_cuda_status(cudaThreadExchangeStreamCaptureMode(&capture_mode)) == SAR_OK)
            return true;
        restore_device();
        return false;
    }

    void restore_device() const
    {
        if (previous != device_id)
            (void)cudaSetDevice(previous);
    }
};

/* Make a call of the runtime on a device. */
template <class Call> static enum sar_status on_device(int device_id, const Call &call)
{
    device_guard guard(device_id);
    return guard.entered ? sar_cuda_status(call()) : SAR_DEVICE_FAILED;
}

/* Make a call that releases a resource on its device, so that CUDA creates no context on another device. The
 * progress thread has no current device. The call is made even if the device cannot be set. */
template <class Call> static void release_on_device(int device_id, const Call &call)
{
    device_guard guard(device_id);
    (void)sar_cuda_status(call());
}

/* Call a function on the vector's device. */
template <auto function, class... Args>
static enum sar_status on_vector(const struct sar_device_vec *vector, Args... args)
{
    device_guard guard(vector->device_id);
    return guard.entered ? function(vector, args...) : SAR_DEVICE_FAILED;
}

/* True if there is no device; the runtime may then fail with other errors. */
static bool has_no_device(void)
{
    int devices;
    return cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0;
}

/* Managed memory counts as device memory, since the host must not access it while a kernel does. Older
 * runtimes return cudaErrorInvalidValue for host memory. */
static enum sar_status find_device(const void *address, int *device_id)
{
    struct cudaPointerAttributes attributes = {};
    cudaError_t error = cudaPointerGetAttributes(&attributes, address);
    if (error != cudaSuccess && error != cudaErrorInvalidValue && !has_no_device())
        return sar_cuda_status(error);
    bool own = attributes.type == cudaMemoryTypeDevice || attributes.type == cudaMemoryTypeManaged;
    *device_id = error == cudaSuccess && own ? attributes.device : -1;
    return SAR_OK;
}

static enum sar_status allocate(int device_id, size_t bytes, void **memory)
{
    return on_device(device_id, [=] { return cudaMalloc(memory, bytes); });
}

static void release(int device_id, void *memory)
{
    release_on_device(device_id, [=] { return cudaFree(memory); });
}

static enum sar_status allocate_pinned(int device_id, size_t bytes, void **memory)
{
    return on_device(device_id, [=] { return cudaHostAlloc(memory, bytes, cudaHostAllocPortable); });
}

static void release_pinned(int device_id, void *memory)
{
    release_on_device(device_id, [=] { return cudaFreeHost(memory); });
}

static enum sar_status copy(int device_id, void *to, const void *from, size_t bytes, void *stream)
{
    return on_device(device_id, [=] {
        return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, (cudaStream_t)stream);
    });
}

static enum sar_status copy_strided(int device_id, const struct sar_strided_copy *copy, void *stream)
{
    return on_device(device_id, [=] {
        return cudaMemcpy2DAsync(copy->to, copy->to_stride, copy->from, copy->from_stride, copy->piece_bytes,
                                 copy->pieces, cudaMemcpyDeviceToDevice, (cudaStream_t)stream);
    });
}

static enum sar_status host_callback(int device_id, void (*function)(void *), void *argument, void *stream)
{
    return on_device(device_id, [=] { return cudaLaunchHostFunc((cudaStream_t)stream, function, argument); });
}

static enum sar_status wait(int device_id, void *stream)
{
    return on_device(device_id, [=] { return cudaStreamSynchronize((cudaStream_t)stream); });
}

/* cudaStreamIsCapturing fails for the default stream while a stream that waits for it is captured. */
static enum sar_status check_capture(int device_id, void *stream)
{
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    bool is_implicit = false;
    enum sar_status status = on_device(device_id, [&] {
        cudaError_t error = cudaStreamIsCapturing((cudaStream_t)stream, &capture);
        is_implicit = error == cudaErrorStreamCaptureImplicit;
        return error;
    });
    return is_implicit || (status == SAR_OK && capture != cudaStreamCaptureStatusNone) ? SAR_CAPTURED
                                                                                       : status;
}

static void free_mask(const struct sar_device_vec *vector, struct sar_nonzero_mask *mask)
{
    device_guard guard(vector->device_id);
    sar_cuda_free_mask(vector, mask);
}

static enum sar_status reduce(const struct sar_device_vec *vector, const struct sar_spvec vecs[], size_t n,
                              struct sar_spvec *out)
{
    return sar_cuda_reduce(vector->desc, vecs, n, out, (cudaStream_t)vector->stream);
}

static void close_pools(void)
{
    for (int device_id = 0; device_id < SAR_CUDA_DEVICES; device_id++) {
        if (!sar_cuda_pool_exists(device_id))
            continue;
        device_guard guard(device_id);
        sar_cuda_pool_close(device_id);
    }
}

static enum sar_status create_stream(int device_id, void **stream)
{
    return on_device(device_id, [=] {
        return cudaStreamCreateWithFlags((cudaStream_t *)stream, cudaStreamNonBlocking);
    });
}

static void destroy_stream(int device_id, void *stream)
{
    release_on_device(device_id, [=] { return cudaStreamDestroy((cudaStream_t)stream); });
}

static enum sar_status create_event(int device_id, void **event)
{
    return on_device(device_id,
                     [=] { return cudaEventCreateWithFlags((cudaEvent_t *)event, cudaEventDisableTiming); });
}

static void destroy_event(int device_id, void *event)
{
    release_on_device(device_id, [=] { return cudaEventDestroy((cudaEvent_t)event); });
}

static enum sar_status record(int device_id, void *event, void *stream)
{
    return on_device(device_id, [=] { return cudaEventRecord((cudaEvent_t)event, (cudaStream_t)stream); });
}

static enum sar_status wait_event(int device_id, void *event, void *stream)
{
    return on_device(device_id,
                     [=] { return cudaStreamWaitEvent((cudaStream_t)stream, (cudaEvent_t)event, 0); });
}

static enum sar_status sync_event(int device_id, void *event)
{
    return on_device(device_id, [=] { return cudaEventSynchronize((cudaEvent_t)event); });
}

static enum sar_status alloc_in_stream(int device_id, size_t bytes, void *stream, void **memory)
{
    device_guard guard(device_id);
    return guard.entered ? sar_cuda_pool_alloc(bytes, (cudaStream_t)stream, memory) : SAR_DEVICE_FAILED;
}

static void release_in_stream(int device_id, void *memory, void *stream)
{
    release_on_device(device_id, [=] { return cudaFreeAsync(memory, (cudaStream_t)stream); });
}

/* The streams and the default stream do not wait for each other; callers order work with events. Events
 * record no time, which would make them slow. */
static const struct sar_stream_ops stream_ops = {
    .create = create_stream,
    .destroy = destroy_stream,
    .create_event = create_event,
    .destroy_event = destroy_event,
    .record = record,
    .wait_event = wait_event,
    .sync_event = sync_event,
    .alloc = alloc_in_stream,
    .release = release_in_stream,
};

/* The library finds it by name (SAR_ACCELERATOR_SYMBOL), so no header declares it. */
extern "C" const struct sar_accelerator sar_accelerator;
const struct sar_accelerator sar_accelerator = {
    .version = SAR_ACCELERATOR_VERSION,
    .name = "cuda",
    .find_device = find_device,
    .allocate = allocate,
    .release = release,
    .allocate_pinned = allocate_pinned,
    .release_pinned = release_pinned,
    .copy = copy,
    .copy_strided = copy_strided,
    .host_callback = host_callback,
    .wait = wait,
    .check_capture = check_capture,
    .canonicalize = on_vector<sar_cuda_canonicalize>,
    .find_nonzeros = on_vector<sar_cuda_find_nonzeros>,
    .free_mask = free_mask,
    .compact = on_vector<sar_cuda_compact>,
    .compact_parts = on_vector<sar_cuda_compact_parts>,
    .scatter = on_vector<sar_cuda_scatter>,
    .pack = on_vector<sar_cuda_pack>,
    .unpack = on_vector<sar_cuda_unpack>,
    .sample = on_vector<sar_cuda_sample>,
    .select = on_vector<sar_cuda_select>,
    .clear_selected = on_vector<sar_cuda_clear_selected>,
    .find_minus_zero = on_vector<sar_cuda_find_minus_zero>,
    .encode = on_vector<sar_cuda_encode>,
    .decode = on_vector<sar_cuda_decode>,
    .reduce = on_vector<reduce>,
    .partition = on_vector<sar_cuda_partition>,
    .slots_to_indices = on_vector<sar_cuda_slots_to_indices>,
    .hash_indices = on_vector<sar_cuda_hash_indices>,
    .expect_hash = on_vector<sar_cuda_expect_hash>,
    .cleanup = close_pools,
    .stream_ops = &stream_ops,
};
