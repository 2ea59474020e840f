/* SPDX-License-Identifier: BSD-3-Clause */
/* What all kernels are made of: a function object for each index of a range, and CUB's picks and sums over
 * one. tests/cuda/twin has the same for CPU threads. */

#ifndef SAR_CUDA_PARALLEL_CUH
#define SAR_CUDA_PARALLEL_CUH

#include <cub/device/device_reduce.cuh>
#include <cub/device/device_select.cuh>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include "cuda/status.h"
#include "hash/murmur3.h"

enum { SAR_THREADS = 256 };

template <class Keep> struct sar_one_if {
    Keep keep;

    SAR_HOST_DEVICE unsigned long long operator()(size_t i) const
    {
        return keep(i) ? 1 : 0;
    }
};

template <class Body> static __global__ void each_kernel(size_t n, Body body)
{
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n)
        body(i);
}

/** body(i) for i = 0 … n - 1. */
template <class Body> static enum sar_status each(size_t n, const Body &body, cudaStream_t stream)
{
    if (n == 0)
        return SAR_OK;
    each_kernel<<<(unsigned)((n - 1) / SAR_THREADS + 1), SAR_THREADS, 0, stream>>>(n, body);
    return sar_cuda(cudaGetLastError());
}

/** Values of in[0, n) for which keep says so, in order, and their number. With temporary == NULL, only the
 * bytes that CUB wants. */
template <class In, class Out, class Keep>
static enum sar_status pick(void *temporary, size_t *bytes, In in, Out out, unsigned long long *picked,
                            size_t n, const Keep &keep, cudaStream_t stream)
{
    return sar_cuda(cub::DeviceSelect::If(temporary, *bytes, in, out, picked, (int64_t)n, keep, stream));
}

/** How many i in [0, n) there are for which keep says so. Likewise. */
template <class Keep>
static enum sar_status tally(void *temporary, size_t *bytes, unsigned long long *found, size_t n,
                             const Keep &keep, cudaStream_t stream)
{
    auto ones =
        thrust::make_transform_iterator(thrust::counting_iterator<size_t>(0), sar_one_if<Keep>{ keep });
    return sar_cuda(cub::DeviceReduce::Sum(temporary, *bytes, ones, found, (int64_t)n, stream));
}

#endif
