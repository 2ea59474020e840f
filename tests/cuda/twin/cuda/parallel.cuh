/* SPDX-License-Identifier: BSD-3-Clause */
/* Replaces cuda/parallel.cuh in the twin tests: the same functions on CPU threads, with CCCL's OpenMP back
 * end and the fake CUDA runtime of tests/cuda/fake_runtime.c. */

#ifndef SAR_TWIN_PARALLEL_CUH
#define SAR_TWIN_PARALLEL_CUH

#include <thrust/copy.h>
#include <thrust/execution_policy.h>
#include <thrust/for_each.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/scan.h>
#include <thrust/sort.h>

#include <vector>

#include "cuda/bits.cuh"
#include "cuda/scoped_alloc.cuh"

extern "C" void fake_cuda_launch(void *stream, void (*work)(void *), void *argument);

enum { SAR_WORD_QUADS = SAR_WORD_BITS / 4 };

template <class Work> static void run_and_delete(void *work)
{
    (*(Work *)work)();
    delete (Work *)work;
}

/* Queue the work of a kernel. */
template <class Work> static enum sar_status launch(const Work &work, cudaStream_t stream)
{
    fake_cuda_launch(stream, run_and_delete<Work>, new Work(work));
    return SAR_OK;
}

template <class Functor> static void for_all(size_t n, const Functor &functor)
{
    thrust::counting_iterator<size_t> begin(0);
    thrust::for_each(thrust::omp::par, begin, begin + n, functor);
}

template <class Functor>
static enum sar_status for_each(size_t n, const Functor &functor, cudaStream_t stream)
{
    return launch([=] { for_all(n, functor); }, stream);
}

template <class Quad> struct sar_pack_bits_functor {
    Quad quad;
    uint32_t *bits;

    void operator()(size_t w) const
    {
        uint32_t word = 0;
        for (unsigned quad_lane = 0; quad_lane < SAR_WORD_QUADS; quad_lane++)
            word |= (uint32_t)quad(w * SAR_WORD_QUADS + quad_lane) << 4 * quad_lane;
        bits[w] = word;
    }
};

template <class Quad>
static enum sar_status pack_bits(size_t words, const Quad &quad, uint32_t *bits, cudaStream_t stream)
{
    return for_each(words, sar_pack_bits_functor<Quad>{ quad, bits }, stream);
}

template <class Functor> struct sar_rank_words_functor {
    Functor functor;
    const unsigned long long *rank_prefix;

    void operator()(size_t w) const
    {
        functor(w, rank_prefix[w]);
    }
};

template <class Functor>
static enum sar_status rank_words(const uint32_t *bits, size_t words, const Functor &functor,
                                  cudaStream_t stream)
{
    return launch(
        [=] {
            std::vector<unsigned long long> rank_prefix(words + 1);
            for (size_t w = 0; w < words; w++)
                rank_prefix[w + 1] = rank_prefix[w] + sar_bits_popcount(bits[w]);
            for_all(words, sar_rank_words_functor<Functor>{ functor, rank_prefix.data() });
        },
        stream);
}

template <class In, class Out, class Keep>
static enum sar_status select_if(In in, Out out, unsigned long long *out_n, size_t n, const Keep &keep,
                                 cudaStream_t stream)
{
    return launch(
        [=] {
            *out_n = (unsigned long long)(thrust::copy_if(thrust::omp::par, in, in + n, out, keep) - out);
        },
        stream);
}

template <class Key> struct sar_sort_pairs {
    Key *key[2];
    uint32_t *position[2];
    size_t n;
};

/* Sorts by all bits of the keys. */
template <class Key> static enum sar_status sort(const sar_sort_pairs<Key> &s, uint64_t, cudaStream_t stream)
{
    return launch(
        [=] {
            thrust::copy_n(thrust::omp::par, s.key[0], s.n, s.key[1]);
            thrust::copy_n(thrust::omp::par, s.position[0], s.n, s.position[1]);
            thrust::stable_sort_by_key(thrust::omp::par, s.key[1], s.key[1] + s.n, s.position[1]);
        },
        stream);
}

static inline enum sar_status sort_lists(const uint32_t *key, uint32_t *sorted, size_t keys,
                                         const unsigned long long *first, size_t n, cudaStream_t stream)
{
    return launch(
        [=] {
            thrust::copy_n(thrust::omp::par, key, keys, sorted);
            for (size_t l = 0; l < n; l++)
                thrust::sort(thrust::omp::par, sorted + first[l], sorted + first[l + 1]);
        },
        stream);
}

#endif
