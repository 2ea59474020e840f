/* SPDX-License-Identifier: BSD-3-Clause */
/* Parallel primitives of all kernels: loops over a range, bitmaps, and CUB's scan, selection and sort.
 * Temporary memory comes from the device's pool. tests/cuda/twin/cuda/parallel.cuh has the same functions
 * on CPU threads. */

#ifndef SAR_CUDA_PARALLEL_CUH
#define SAR_CUDA_PARALLEL_CUH

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_segmented_sort.cuh>
#include <cub/device/device_select.cuh>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/tabulate_output_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include "cuda/bits.cuh"
#include "cuda/scoped_alloc.cuh"

enum { SAR_BLOCK_THREADS = 256, SAR_WORD_QUADS = SAR_WORD_BITS / 4 };

/** Blocks for n > 0 threads. */
static inline unsigned sar_grid_blocks(size_t n)
{
    return (unsigned)((n - 1) / SAR_BLOCK_THREADS + 1);
}

template <class Functor> static __global__ void for_each_kernel(size_t n, Functor functor)
{
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n)
        functor(i);
}

/** Queue functor(i) for i = 0 … n - 1, one thread each. */
template <class Functor>
static enum sar_status for_each(size_t n, const Functor &functor, cudaStream_t stream)
{
    if (n == 0)
        return SAR_OK;
    for_each_kernel<<<sar_grid_blocks(n), SAR_BLOCK_THREADS, 0, stream>>>(n, functor);
    return sar_cuda_status(cudaGetLastError());
}

/* The threads of a word combine their four bits each by shuffles. */
template <class Quad> static __global__ void pack_bits_kernel(size_t quads, Quad quad, uint32_t *bits)
{
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    unsigned quad_lane = threadIdx.x % SAR_WORD_QUADS;
    uint32_t word = i < quads ? (uint32_t)quad(i) << 4 * quad_lane : 0;
    for (int step = SAR_WORD_QUADS / 2; step > 0; step /= 2)
        word |= __shfl_xor_sync(0xffffffff, word, step);
    if (quad_lane == 0 && i < quads)
        bits[i / SAR_WORD_QUADS] = word;
}

/** Queue bits[w] = the four bits each of quad(8 w) … quad(8 w + 7), lowest first, for w = 0 … words - 1. */
template <class Quad>
static enum sar_status pack_bits(size_t words, const Quad &quad, uint32_t *bits, cudaStream_t stream)
{
    size_t quads = words * SAR_WORD_QUADS;
    if (words == 0)
        return SAR_OK;
    pack_bits_kernel<<<sar_grid_blocks(quads), SAR_BLOCK_THREADS, 0, stream>>>(quads, quad, bits);
    return sar_cuda_status(cudaGetLastError());
}

struct sar_popcount_functor {
    const uint32_t *bits;

    SAR_HOST_DEVICE unsigned long long operator()(size_t w) const
    {
        return sar_bits_popcount(bits[w]);
    }
};

/** Queue functor(w, number of bits set in the words before w) for w = 0 … words - 1. */
template <class Functor>
static enum sar_status rank_words(const uint32_t *bits, size_t words, const Functor &functor,
                                  cudaStream_t stream)
{
    auto ones =
        thrust::make_transform_iterator(thrust::counting_iterator<size_t>(0), sar_popcount_functor{ bits });
    auto out = thrust::make_tabulate_output_iterator(functor);
    size_t bytes = 0;
    sar_scoped_alloc temporary(stream);
    if (words == 0)
        return SAR_OK;
    SAR_TRY(sar_cuda_status(cub::DeviceScan::ExclusiveSum(NULL, bytes, ones, out, (int64_t)words, stream)));
    SAR_TRY(temporary.alloc(bytes));
    return sar_cuda_status(
        cub::DeviceScan::ExclusiveSum(temporary.memory, bytes, ones, out, (int64_t)words, stream));
}

/** Queue copying the values of in[0, n) for which keep is true, in order, and their number. */
template <class In, class Out, class Keep>
static enum sar_status select_if(In in, Out out, unsigned long long *out_n, size_t n, const Keep &keep,
                                 cudaStream_t stream)
{
    size_t bytes = 0;
    sar_scoped_alloc temporary(stream);
    SAR_TRY(sar_cuda_status(cub::DeviceSelect::If(NULL, bytes, in, out, out_n, (int64_t)n, keep, stream)));
    SAR_TRY(temporary.alloc(bytes));
    return sar_cuda_status(
        cub::DeviceSelect::If(temporary.memory, bytes, in, out, out_n, (int64_t)n, keep, stream));
}

/** Input [0] and output [1] of sort: n keys with a position each. */
template <class Key> struct sar_sort_pairs {
    Key *key[2];
    uint32_t *position[2];
    size_t n;
};

/** Queue a stable sort of the pairs by keys of at most max_key. */
template <class Key>
static enum sar_status sort(const sar_sort_pairs<Key> &s, uint64_t max_key, cudaStream_t stream)
{
    int bits = 1;
    while (max_key >>= 1)
        bits++;
    size_t bytes = 0;
    sar_scoped_alloc temporary(stream);
    SAR_TRY(sar_cuda_status(cub::DeviceRadixSort::SortPairs(NULL, bytes, s.key[0], s.key[1], s.position[0],
                                                            s.position[1], (int64_t)s.n, 0, bits, stream)));
    SAR_TRY(temporary.alloc(bytes));
    return sar_cuda_status(cub::DeviceRadixSort::SortPairs(temporary.memory, bytes, s.key[0], s.key[1],
                                                           s.position[0], s.position[1], (int64_t)s.n, 0,
                                                           bits, stream));
}

/** Queue sorting each of n lists of 4-byte keys. List l has keys first[l] … first[l + 1] - 1. */
static inline enum sar_status sort_lists(const uint32_t *key, uint32_t *sorted, size_t keys,
                                         const unsigned long long *first, size_t n, cudaStream_t stream)
{
    size_t bytes = 0;
    sar_scoped_alloc temporary(stream);
    SAR_TRY(sar_cuda_status(cub::DeviceSegmentedSort::SortKeys(NULL, bytes, key, sorted, (int64_t)keys,
                                                               (int64_t)n, first, first + 1, stream)));
    SAR_TRY(temporary.alloc(bytes));
    return sar_cuda_status(cub::DeviceSegmentedSort::SortKeys(temporary.memory, bytes, key, sorted,
                                                              (int64_t)keys, (int64_t)n, first, first + 1,
                                                              stream));
}

#endif
