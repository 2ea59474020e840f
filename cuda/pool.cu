/* SPDX-License-Identifier: BSD-3-Clause */
/* A pool for each device, made when memory is first taken there. The device's default pool is the program's,
 * which may want it to give memory back. */

#include "cuda/pool.h"

#include <mutex>

static std::mutex lock;
static cudaMemPool_t pools[SAR_CUDA_DEVICES];

static enum sar_status make_pool(int device, cudaMemPool_t *made)
{
    unsigned long long all = ~0ull;
    cudaMemPoolProps wanted = {};
    wanted.allocType = cudaMemAllocationTypePinned;
    wanted.location.type = cudaMemLocationTypeDevice;
    wanted.location.id = device;
    SAR_TRY(sar_cuda(cudaMemPoolCreate(made, &wanted)));
    enum sar_status status = sar_cuda(cudaMemPoolSetAttribute(*made, cudaMemPoolAttrReleaseThreshold, &all));
    if (status != SAR_OK)
        (void)cudaMemPoolDestroy(*made);
    return status;
}

static enum sar_status find_pool(cudaMemPool_t *pool)
{
    int device;
    SAR_TRY(sar_cuda(cudaGetDevice(&device)));
    if (device >= SAR_CUDA_DEVICES)
        return SAR_UNSUPPORTED;
    std::lock_guard<std::mutex> held(lock);
    if (pools[device] == NULL)
        SAR_TRY(make_pool(device, &pools[device]));
    *pool = pools[device];
    return SAR_OK;
}

extern "C" enum sar_status sar_cuda_take(size_t bytes, cudaStream_t stream, void **memory)
{
    cudaMemPool_t pool;
    SAR_TRY(find_pool(&pool));
    return sar_cuda(cudaMallocFromPoolAsync(memory, bytes, pool, stream));
}

extern "C" bool sar_cuda_has_pool(int device)
{
    std::lock_guard<std::mutex> held(lock);
    return pools[device] != NULL;
}

extern "C" void sar_cuda_close_pool(int device)
{
    std::lock_guard<std::mutex> held(lock);
    if (pools[device] != NULL)
        (void)cudaMemPoolDestroy(pools[device]);
    pools[device] = NULL;
}
