/* SPDX-License-Identifier: BSD-3-Clause */
/* In place of cuda/parallel.cuh: the same on CPU threads, by CCCL's OpenMP back end, over the runtime of
 * tests/cuda/runtime.c. */

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
#include "cuda/memory.cuh"

extern "C" void fake_cuda_launch(void *stream, void (*work)(void *), void *argument);

enum { SAR_QUADS = SAR_WORD / 4 };

template <class Work> static void do_and_forget(void *work)
{
    (*(Work *)work)();
    delete (Work *)work;
}

/* Queue what a kernel would do. */
template <class Work> static enum sar_status launch(const Work &work, cudaStream_t stream)
{
    fake_cuda_launch(stream, do_and_forget<Work>, new Work(work));
    return SAR_OK;
}

template <class Body> static void for_all(size_t n, const Body &body)
{
    thrust::counting_iterator<size_t> begin(0);
    thrust::for_each(thrust::omp::par, begin, begin + n, body);
}

template <class Body> static enum sar_status each(size_t n, const Body &body, cudaStream_t stream)
{
    return launch([=] { for_all(n, body); }, stream);
}

template <class Quad> struct sar_ballot_body {
    Quad quad;
    uint32_t *bits;

    void operator()(size_t w) const
    {
        uint32_t word = 0;
        for (unsigned lane = 0; lane < SAR_QUADS; lane++)
            word |= (uint32_t)quad(w * SAR_QUADS + lane) << 4 * lane;
        bits[w] = word;
    }
};

template <class Quad>
static enum sar_status ballot(size_t words, const Quad &quad, uint32_t *bits, cudaStream_t stream)
{
    return each(words, sar_ballot_body<Quad>{ quad, bits }, stream);
}

template <class Body> struct sar_number_body {
    Body body;
    const unsigned long long *before;

    void operator()(size_t w) const
    {
        body(w, before[w]);
    }
};

template <class Body>
static enum sar_status number(const uint32_t *bits, size_t words, const Body &body, cudaStream_t stream)
{
    return launch(
        [=] {
            std::vector<unsigned long long> before(words + 1);
            for (size_t w = 0; w < words; w++)
                before[w + 1] = before[w] + sar_ones(bits[w]);
            for_all(words, sar_number_body<Body>{ body, before.data() });
        },
        stream);
}

template <class In, class Out, class Keep>
static enum sar_status pick(In in, Out out, unsigned long long *picked, size_t n, const Keep &keep,
                            cudaStream_t stream)
{
    return launch(
        [=] {
            *picked = (unsigned long long)(thrust::copy_if(thrust::omp::par, in, in + n, out, keep) - out);
        },
        stream);
}

template <class Key> struct sar_sortable {
    Key *key[2];
    uint32_t *position[2];
    size_t n;
};

/* By all bits of the keys, of which those not asked for are 0. */
template <class Key> static enum sar_status sort(const sar_sortable<Key> &s, unsigned, cudaStream_t stream)
{
    return launch(
        [=] {
            thrust::copy_n(thrust::omp::par, s.key[0], s.n, s.key[1]);
            thrust::copy_n(thrust::omp::par, s.position[0], s.n, s.position[1]);
            thrust::stable_sort_by_key(thrust::omp::par, s.key[1], s.key[1] + s.n, s.position[1]);
        },
        stream);
}

#endif
