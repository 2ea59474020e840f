/* SPDX-License-Identifier: BSD-3-Clause */
/* The plug-in for CUDA: the only code that calls its runtime. */

#include <cuda_runtime_api.h>
#include <stdbool.h>

#include "cuda/codec.h"
#include "cuda/dense.h"
#include "cuda/lanes.h"
#include "cuda/place.h"
#include "cuda/pool.h"
#include "cuda/reduce.h"
#include "cuda/topk.h"

/* Where there is no device, CUDA may tell of nothing. */
static bool is_there_none(void)
{
    int devices;
    return cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0;
}

/* Managed memory counts as the device's: the host may touch it only where no kernel does. Older runtimes take
 * memory that they do not know for an invalid value. */
static enum sar_status place(const void *address, int *place)
{
    struct cudaPointerAttributes attributes = { .type = cudaMemoryTypeUnregistered };
    cudaError_t error = cudaPointerGetAttributes(&attributes, address);
    if (error != cudaSuccess && error != cudaErrorInvalidValue && !is_there_none())
        return sar_cuda(error);
    bool own = attributes.type == cudaMemoryTypeDevice || attributes.type == cudaMemoryTypeManaged;
    *place = error == cudaSuccess && own ? attributes.device : -1;
    return SAR_OK;
}

static enum sar_status allocate(int device, size_t bytes, void **memory)
{
    return SAR_AT(device, sar_cuda(cudaMalloc(memory, bytes)));
}

/* The progress thread has no device of its own, and would make a context on the first. */
static void release(int device, void *memory)
{
    SAR_GIVE_BACK_AT(device, sar_cuda(cudaFree(memory)));
}

static enum sar_status allocate_pinned(int device, size_t bytes, void **memory)
{
    return SAR_AT(device, sar_cuda(cudaHostAlloc(memory, bytes, cudaHostAllocPortable)));
}

static void release_pinned(int device, void *memory)
{
    SAR_GIVE_BACK_AT(device, sar_cuda(cudaFreeHost(memory)));
}

static enum sar_status copy(int device, void *to, const void *from, size_t bytes, void *stream)
{
    return SAR_AT(device,
                  sar_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, (cudaStream_t)stream)));
}

static enum sar_status call(int device, void (*function)(void *), void *argument, void *stream)
{
    return SAR_AT(device, sar_cuda(cudaLaunchHostFunc((cudaStream_t)stream, function, argument)));
}

static enum sar_status wait(int device, void *stream)
{
    return SAR_AT(device, sar_cuda(cudaStreamSynchronize((cudaStream_t)stream)));
}

/* The default stream may not even be asked while another one that waits for it is captured. */
static enum sar_status look_for_capture(cudaStream_t stream)
{
    enum cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    cudaError_t error = cudaStreamIsCapturing(stream, &capture);
    enum sar_status status = sar_cuda(error);
    bool waits = error == cudaErrorStreamCaptureImplicit;
    return waits || (status == SAR_OK && capture != cudaStreamCaptureStatusNone) ? SAR_CAPTURED : status;
}

static enum sar_status ready(int device, void *stream)
{
    return SAR_AT(device, look_for_capture((cudaStream_t)stream));
}

static enum sar_status ingest(const struct sar_vector *vector, const struct sar_coo *coo, struct sar_run *run,
                              bool *ascends)
{
    return SAR_AT(vector->place, sar_cuda_ingest(vector, coo, run, ascends));
}

static enum sar_status mark(const struct sar_vector *vector, struct sar_marks *marks)
{
    return SAR_AT(vector->place, sar_cuda_mark(vector, marks));
}

static void unmark(const struct sar_vector *vector, struct sar_marks *marks)
{
    SAR_GIVE_BACK_AT(vector->place, sar_cuda_unmark(vector, marks));
}

static enum sar_status compact(const struct sar_vector *vector, const struct sar_marks *marks,
                               const struct sar_run *run)
{
    return SAR_AT(vector->place, sar_cuda_compact(vector, marks, run));
}

static enum sar_status split(const struct sar_vector *vector, const struct sar_marks *marks,
                             const struct sar_division *how, const struct sar_run *run,
                             unsigned long long first[])
{
    return SAR_AT(vector->place, sar_cuda_split(vector, marks, how, run, first));
}

static enum sar_status scatter(const struct sar_vector *vector, const struct sar_run runs[], size_t n,
                               bool clear)
{
    return SAR_AT(vector->place, sar_cuda_scatter(vector, runs, n, clear));
}

static enum sar_status pack(const struct sar_vector *vector, const struct sar_parcel *parcel)
{
    return SAR_AT(vector->place, sar_cuda_pack(vector, parcel));
}

static enum sar_status unpack(const struct sar_vector *vector, const struct sar_parcel *parcel)
{
    return SAR_AT(vector->place, sar_cuda_unpack(vector, parcel));
}

static enum sar_status sample(const struct sar_vector *vector, const struct sar_dgc *of, size_t n,
                              uint32_t seed, uint64_t *magnitudes)
{
    return SAR_AT(vector->place, sar_cuda_sample(vector, of, n, seed, magnitudes));
}

static enum sar_status select_largest(const struct sar_vector *vector, const struct sar_dgc *of,
                                      const struct sar_cutoff *cutoff, struct sar_marks *marks)
{
    return SAR_AT(vector->place, sar_cuda_select(vector, of, cutoff, marks));
}

static enum sar_status clear(const struct sar_vector *vector, const struct sar_dgc *of, uint64_t masked,
                             const struct sar_marks *marks)
{
    return SAR_AT(vector->place, sar_cuda_clear(vector, of, masked, marks));
}

static enum sar_status look(const struct sar_vector *vector, const struct sar_run *run,
                            struct sar_findings *findings)
{
    return SAR_AT(vector->place, sar_cuda_look(vector, run, findings));
}

static enum sar_status encode(const struct sar_vector *vector, const struct sar_run *run,
                              const struct sar_payload *payload)
{
    return SAR_AT(vector->place, sar_cuda_encode(vector, run, payload));
}

static enum sar_status decode(const struct sar_vector *vector, const struct sar_payload *payload,
                              struct sar_run *run, struct sar_findings *findings)
{
    return SAR_AT(vector->place, sar_cuda_decode(vector, payload, run, findings));
}

static enum sar_status reduce(const struct sar_vector *vector, const struct sar_run runs[], size_t n,
                              struct sar_run *out)
{
    return SAR_AT(vector->place, sar_cuda_reduce(vector->shape, runs, n, out, (cudaStream_t)vector->stream));
}

static enum sar_status partition(const struct sar_vector *vector, const struct sar_division *how,
                                 const struct sar_run *from, const struct sar_run *to,
                                 unsigned long long first[])
{
    return SAR_AT(vector->place, sar_cuda_partition(vector, how, from, to, first));
}

static enum sar_status unsplit(const struct sar_vector *vector, const struct sar_part *part,
                               const struct sar_run *run, void *index)
{
    return SAR_AT(vector->place, sar_cuda_unsplit(vector, part, run, index));
}

static void close_pools(void)
{
    for (int device = 0; device < SAR_CUDA_DEVICES; device++)
        if (sar_cuda_has_pool(device))
            SAR_GIVE_BACK_AT(device, sar_cuda_close_pool(device));
}

extern const struct sar_accelerator sar_accelerator;
const struct sar_accelerator sar_accelerator = {
    .version = SAR_ACCELERATOR_VERSION,
    .name = "cuda",
    .place = place,
    .allocate = allocate,
    .release = release,
    .allocate_pinned = allocate_pinned,
    .release_pinned = release_pinned,
    .copy = copy,
    .call = call,
    .wait = wait,
    .ready = ready,
    .ingest = ingest,
    .mark = mark,
    .unmark = unmark,
    .compact = compact,
    .split = split,
    .scatter = scatter,
    .pack = pack,
    .unpack = unpack,
    .sample = sample,
    .select = select_largest,
    .clear = clear,
    .look = look,
    .encode = encode,
    .decode = decode,
    .reduce = reduce,
    .partition = partition,
    .unsplit = unsplit,
    .close = close_pools,
    .lanes = &sar_cuda_lanes,
};
