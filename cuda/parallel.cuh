/* SPDX-License-Identifier: BSD-3-Clause */
/* What all kernels are made of: a function object for each index of a range, bitmaps, and CUB's scans and
 * sorts. Memory that these need comes from the device's pool. tests/cuda/twin has the same for CPU threads.
 */

#ifndef SAR_CUDA_PARALLEL_CUH
#define SAR_CUDA_PARALLEL_CUH

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_select.cuh>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/tabulate_output_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include "cuda/bits.cuh"
#include "cuda/memory.cuh"

enum { SAR_THREADS = 256, SAR_QUADS = SAR_WORD / 4 };

static inline unsigned sar_blocks(size_t n)
{
    return (unsigned)((n - 1) / SAR_THREADS + 1);
}

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
    each_kernel<<<sar_blocks(n), SAR_THREADS, 0, stream>>>(n, body);
    return sar_cuda(cudaGetLastError());
}

/* Threads of a word hand their four bits to each other, as a ballot does single ones. */
template <class Quad> static __global__ void ballot_kernel(size_t quads, Quad quad, uint32_t *bits)
{
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    unsigned lane = threadIdx.x % SAR_QUADS;
    uint32_t word = i < quads ? (uint32_t)quad(i) << 4 * lane : 0;
    for (int step = SAR_QUADS / 2; step > 0; step /= 2)
        word |= __shfl_xor_sync(0xffffffff, word, step);
    if (lane == 0 && i < quads)
        bits[i / SAR_QUADS] = word;
}

/** bits[w] = what quad(8 w) … quad(8 w + 7) say of four bits each, lowest first, for w = 0 … words - 1. */
template <class Quad>
static enum sar_status ballot(size_t words, const Quad &quad, uint32_t *bits, cudaStream_t stream)
{
    size_t quads = words * SAR_QUADS;
    if (words == 0)
        return SAR_OK;
    ballot_kernel<<<sar_blocks(quads), SAR_THREADS, 0, stream>>>(quads, quad, bits);
    return sar_cuda(cudaGetLastError());
}

struct sar_ones_of {
    const uint32_t *bits;

    SAR_HOST_DEVICE unsigned long long operator()(size_t w) const
    {
        return sar_ones(bits[w]);
    }
};

/** body(w, number of bits set in the words before) for w = 0 … words - 1. */
template <class Body>
static enum sar_status number(const uint32_t *bits, size_t words, const Body &body, cudaStream_t stream)
{
    auto ones = thrust::make_transform_iterator(thrust::counting_iterator<size_t>(0), sar_ones_of{ bits });
    auto out = thrust::make_tabulate_output_iterator(body);
    size_t bytes = 0;
    sar_piece temporary(stream);
    if (words == 0)
        return SAR_OK;
    SAR_TRY(sar_cuda(cub::DeviceScan::ExclusiveSum(NULL, bytes, ones, out, (int64_t)words, stream)));
    SAR_TRY(temporary.take(bytes));
    return sar_cuda(
        cub::DeviceScan::ExclusiveSum(temporary.memory, bytes, ones, out, (int64_t)words, stream));
}

/** Values of in[0, n) for which keep says so, in order, and their number. */
template <class In, class Out, class Keep>
static enum sar_status pick(In in, Out out, unsigned long long *picked, size_t n, const Keep &keep,
                            cudaStream_t stream)
{
    size_t bytes = 0;
    sar_piece temporary(stream);
    SAR_TRY(sar_cuda(cub::DeviceSelect::If(NULL, bytes, in, out, picked, (int64_t)n, keep, stream)));
    SAR_TRY(temporary.take(bytes));
    return sar_cuda(
        cub::DeviceSelect::If(temporary.memory, bytes, in, out, picked, (int64_t)n, keep, stream));
}

/** Keys and what goes with them, twice: [0] is sorted by the keys' lowest bits into [1], equal keys in the
 * order in which they stood. */
template <class Key> struct sar_sortable {
    Key *key[2];
    uint32_t *position[2];
    size_t n;
};

template <class Key>
static enum sar_status sort(const sar_sortable<Key> &s, unsigned bits, cudaStream_t stream)
{
    size_t bytes = 0;
    sar_piece temporary(stream);
    SAR_TRY(sar_cuda(cub::DeviceRadixSort::SortPairs(NULL, bytes, s.key[0], s.key[1], s.position[0],
                                                     s.position[1], (int64_t)s.n, 0, (int)bits, stream)));
    SAR_TRY(temporary.take(bytes));
    return sar_cuda(cub::DeviceRadixSort::SortPairs(temporary.memory, bytes, s.key[0], s.key[1],
                                                    s.position[0], s.position[1], (int64_t)s.n, 0, (int)bits,
                                                    stream));
}

#endif
