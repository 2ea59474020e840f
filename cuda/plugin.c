/* SPDX-License-Identifier: BSD-3-Clause */
/* The plug-in for CUDA, libmpix_sparse_cuda.so: exports struct sar_accelerator, and vecs each function on
 * the device that its arguments name. Only the plug-in calls the CUDA runtime. */

#include <cuda_runtime_api.h>
#include <stdbool.h>

#include "cuda/device_guard.h"
#include "cuda/launch.h"

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
    struct cudaPointerAttributes attributes = { .type = cudaMemoryTypeUnregistered };
    cudaError_t error = cudaPointerGetAttributes(&attributes, address);
    if (error != cudaSuccess && error != cudaErrorInvalidValue && !has_no_device())
        return sar_cuda_status(error);
    bool own = attributes.type == cudaMemoryTypeDevice || attributes.type == cudaMemoryTypeManaged;
    *device_id = error == cudaSuccess && own ? attributes.device : -1;
    return SAR_OK;
}

static enum sar_status allocate(int device_id, size_t bytes, void **memory)
{
    return SAR_ON_DEVICE(device_id, sar_cuda_status(cudaMalloc(memory, bytes)));
}

/* The progress thread has no current device: without the guard CUDA would create a context on device 0. */
static void release(int device_id, void *memory)
{
    SAR_RELEASE_ON_DEVICE(device_id, sar_cuda_status(cudaFree(memory)));
}

static enum sar_status allocate_pinned(int device_id, size_t bytes, void **memory)
{
    return SAR_ON_DEVICE(device_id, sar_cuda_status(cudaHostAlloc(memory, bytes, cudaHostAllocPortable)));
}

static void release_pinned(int device_id, void *memory)
{
    SAR_RELEASE_ON_DEVICE(device_id, sar_cuda_status(cudaFreeHost(memory)));
}

static enum sar_status copy(int device_id, void *to, const void *from, size_t bytes, void *stream)
{
    return SAR_ON_DEVICE(device_id, sar_cuda_status(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault,
                                                                    (cudaStream_t)stream)));
}

static enum sar_status host_callback(int device_id, void (*function)(void *), void *argument, void *stream)
{
    return SAR_ON_DEVICE(device_id,
                         sar_cuda_status(cudaLaunchHostFunc((cudaStream_t)stream, function, argument)));
}

static enum sar_status wait(int device_id, void *stream)
{
    return SAR_ON_DEVICE(device_id, sar_cuda_status(cudaStreamSynchronize((cudaStream_t)stream)));
}

/* cudaStreamIsCapturing fails for the default stream while a stream that waits for it is captured. */
static enum sar_status capture_status(cudaStream_t stream)
{
    enum cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    cudaError_t error = cudaStreamIsCapturing(stream, &capture);
    enum sar_status status = sar_cuda_status(error);
    bool is_implicit = error == cudaErrorStreamCaptureImplicit;
    return is_implicit || (status == SAR_OK && capture != cudaStreamCaptureStatusNone) ? SAR_CAPTURED
                                                                                       : status;
}

static enum sar_status check_capture(int device_id, void *stream)
{
    return SAR_ON_DEVICE(device_id, capture_status((cudaStream_t)stream));
}

static enum sar_status canonicalize(const struct sar_device_vec *vector, const struct sar_coo_args *coo,
                                    struct sar_spvec *vec, bool *is_sorted)
{
    return SAR_ON_DEVICE(vector->device_id, sar_cuda_canonicalize(vector, coo, vec, is_sorted));
}

static enum sar_status find_nonzeros(const struct sar_device_vec *vector, struct sar_nonzero_mask *mask)
{
    return SAR_ON_DEVICE(vector->device_id, sar_cuda_find_nonzeros(vector, mask));
}

static void free_mask(const struct sar_device_vec *vector, struct sar_nonzero_mask *mask)
{
    SAR_RELEASE_ON_DEVICE(vector->device_id, sar_cuda_free_mask(vector, mask));
}

static enum sar_status compact(const struct sar_device_vec *vector, const struct sar_nonzero_mask *mask,
                               const struct sar_spvec *vec)
{
    return SAR_ON_DEVICE(vector->device_id, sar_cuda_compact(vector, mask, vec));
}

static enum sar_status compact_parts(const struct sar_device_vec *vector, const struct sar_nonzero_mask *mask,
                                     const struct sar_partition_layout *layout, const struct sar_spvec *vec,
                                     unsigned long long first[])
{
    return SAR_ON_DEVICE(vector->device_id, sar_cuda_compact_parts(vector, mask, layout, vec, first));
}

static enum sar_status scatter(const struct sar_device_vec *vector, const struct sar_spvec vecs[], size_t n,
                               bool clear)
{
    return SAR_ON_DEVICE(vector->device_id, sar_cuda_scatter(vector, vecs, n, clear));
}

static enum sar_status pack(const struct sar_device_vec *vector, const struct sar_packed_vec *packed)
{
    return SAR_ON_DEVICE(vector->device_id, sar_cuda_pack(vector, packed));
}

static enum sar_status unpack(const struct sar_device_vec *vector, const struct sar_packed_vec *packed)
{
    return SAR_ON_DEVICE(vector->device_id, sar_cuda_unpack(vector, packed));
}

static enum sar_status sample(const struct sar_device_vec *vector, const struct sar_dgc *dgc, size_t n,
                              uint32_t seed, uint64_t *magnitudes)
{
    return SAR_ON_DEVICE(vector->device_id, sar_cuda_sample(vector, dgc, n, seed, magnitudes));
}

static enum sar_status select_largest(const struct sar_device_vec *vector, const struct sar_dgc *dgc,
                                      const struct sar_topk_limit *limit, struct sar_nonzero_mask *mask)
{
    return SAR_ON_DEVICE(vector->device_id, sar_cuda_select(vector, dgc, limit, mask));
}

static enum sar_status clear_selected(const struct sar_device_vec *vector, const struct sar_dgc *dgc,
                                      uint64_t mask_threshold, const struct sar_nonzero_mask *mask)
{
    return SAR_ON_DEVICE(vector->device_id, sar_cuda_clear_selected(vector, dgc, mask_threshold, mask));
}

static enum sar_status find_minus_zero(const struct sar_device_vec *vector, const struct sar_spvec *vec,
                                       struct sar_device_flags *flags)
{
    return SAR_ON_DEVICE(vector->device_id, sar_cuda_find_minus_zero(vector, vec, flags));
}

static enum sar_status encode(const struct sar_device_vec *vector, const struct sar_spvec *vec,
                              const struct sar_encoded *payload)
{
    return SAR_ON_DEVICE(vector->device_id, sar_cuda_encode(vector, vec, payload));
}

static enum sar_status decode(const struct sar_device_vec *vector, const struct sar_encoded *payload,
                              struct sar_spvec *vec, struct sar_device_flags *flags)
{
    return SAR_ON_DEVICE(vector->device_id, sar_cuda_decode(vector, payload, vec, flags));
}

static enum sar_status reduce(const struct sar_device_vec *vector, const struct sar_spvec vecs[], size_t n,
                              struct sar_spvec *out)
{
    return SAR_ON_DEVICE(vector->device_id,
                         sar_cuda_reduce(vector->desc, vecs, n, out, (cudaStream_t)vector->stream));
}

static enum sar_status partition(const struct sar_device_vec *vector,
                                 const struct sar_partition_layout *layout, const struct sar_spvec *from,
                                 const struct sar_spvec *to, unsigned long long first[])
{
    return SAR_ON_DEVICE(vector->device_id, sar_cuda_partition(vector, layout, from, to, first));
}

static enum sar_status slots_to_indices(const struct sar_device_vec *vector, const struct sar_map_part *part,
                                        const struct sar_spvec *vec, void *index)
{
    return SAR_ON_DEVICE(vector->device_id, sar_cuda_slots_to_indices(vector, part, vec, index));
}

static void close_pools(void)
{
    for (int device_id = 0; device_id < SAR_CUDA_DEVICES; device_id++)
        if (sar_cuda_pool_exists(device_id))
            SAR_RELEASE_ON_DEVICE(device_id, sar_cuda_pool_close(device_id));
}

/* The library finds it by name (SAR_ACCELERATOR_SYMBOL), so no header declares it. */
extern const struct sar_accelerator sar_accelerator;
const struct sar_accelerator sar_accelerator = {
    .version = SAR_ACCELERATOR_VERSION,
    .name = "cuda",
    .find_device = find_device,
    .allocate = allocate,
    .release = release,
    .allocate_pinned = allocate_pinned,
    .release_pinned = release_pinned,
    .copy = copy,
    .host_callback = host_callback,
    .wait = wait,
    .check_capture = check_capture,
    .canonicalize = canonicalize,
    .find_nonzeros = find_nonzeros,
    .free_mask = free_mask,
    .compact = compact,
    .compact_parts = compact_parts,
    .scatter = scatter,
    .pack = pack,
    .unpack = unpack,
    .sample = sample,
    .select = select_largest,
    .clear_selected = clear_selected,
    .find_minus_zero = find_minus_zero,
    .encode = encode,
    .decode = decode,
    .reduce = reduce,
    .partition = partition,
    .slots_to_indices = slots_to_indices,
    .cleanup = close_pools,
    .stream_ops = &sar_cuda_stream_ops,
};
