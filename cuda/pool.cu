/* SPDX-License-Identifier: BSD-3-Clause */
/* One memory pool per device, created by the first allocation there. The device's default pool belongs to the
 * program, which may set a release threshold. Any thread may allocate. */

#include "cuda/launch.h"

#include <mutex>

static std::mutex lock;
static cudaMemPool_t pools[SAR_CUDA_DEVICES];

static enum sar_status make_pool(int device_id, cudaMemPool_t *pool)
{
    unsigned long long unlimited = ~0ull;
    cudaMemPoolProps props = {};
    props.allocType = cudaMemAllocationTypePinned;
    props.location.type = cudaMemLocationTypeDevice;
    props.location.id = device_id;
    SAR_TRY(sar_cuda_status(cudaMemPoolCreate(pool, &props)));
    enum sar_status status =
        sar_cuda_status(cudaMemPoolSetAttribute(*pool, cudaMemPoolAttrReleaseThreshold, &unlimited));
    if (status != SAR_OK)
        (void)cudaMemPoolDestroy(*pool);
    return status;
}

static enum sar_status find_pool(cudaMemPool_t *pool)
{
    int device;
    SAR_TRY(sar_cuda_status(cudaGetDevice(&device)));
    if (device >= SAR_CUDA_DEVICES)
        return SAR_UNSUPPORTED;
    std::lock_guard<std::mutex> guard(lock);
    if (pools[device] == NULL)
        SAR_TRY(make_pool(device, &pools[device]));
    *pool = pools[device];
    return SAR_OK;
}

extern "C" enum sar_status sar_cuda_pool_alloc(size_t bytes, cudaStream_t stream, void **memory)
{
    cudaMemPool_t pool;
    SAR_TRY(find_pool(&pool));
    return sar_cuda_status(cudaMallocFromPoolAsync(memory, bytes, pool, stream));
}

extern "C" bool sar_cuda_pool_exists(int device_id)
{
    std::lock_guard<std::mutex> guard(lock);
    return pools[device_id] != NULL;
}

extern "C" void sar_cuda_pool_close(int device_id)
{
    std::lock_guard<std::mutex> guard(lock);
    if (pools[device_id] != NULL)
        (void)cudaMemPoolDestroy(pools[device_id]);
    pools[device_id] = NULL;
}
