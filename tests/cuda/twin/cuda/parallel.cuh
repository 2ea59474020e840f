/* SPDX-License-Identifier: BSD-3-Clause */
/* In place of cuda/parallel.cuh: the same on CPU threads, by CCCL's OpenMP back end, over the runtime of
 * tests/cuda/runtime.c. */

#ifndef SAR_TWIN_PARALLEL_CUH
#define SAR_TWIN_PARALLEL_CUH

#include <thrust/copy.h>
#include <thrust/count.h>
#include <thrust/execution_policy.h>
#include <thrust/for_each.h>
#include <thrust/iterator/counting_iterator.h>

#include "cuda/status.h"

extern "C" void fake_cuda_open(void);
extern "C" void fake_cuda_close(void);

template <class Body> static enum sar_status each(size_t n, const Body &body, cudaStream_t)
{
    thrust::counting_iterator<size_t> begin(0);
    fake_cuda_open();
    thrust::for_each(thrust::omp::par, begin, begin + n, body);
    fake_cuda_close();
    return SAR_OK;
}

template <class In, class Out, class Keep>
static enum sar_status pick(void *temporary, size_t *bytes, In in, Out out, unsigned long long *picked,
                            size_t n, const Keep &keep, cudaStream_t)
{
    *bytes = 1;
    if (temporary == NULL)
        return SAR_OK;
    fake_cuda_open();
    *picked = (unsigned long long)(thrust::copy_if(thrust::omp::par, in, in + n, out, keep) - out);
    fake_cuda_close();
    return SAR_OK;
}

template <class Keep>
static enum sar_status tally(void *temporary, size_t *bytes, unsigned long long *found, size_t n,
                             const Keep &keep, cudaStream_t)
{
    thrust::counting_iterator<size_t> begin(0);
    *bytes = 1;
    if (temporary == NULL)
        return SAR_OK;
    fake_cuda_open();
    *found = (unsigned long long)thrust::count_if(thrust::omp::par, begin, begin + n, keep);
    fake_cuda_close();
    return SAR_OK;
}

#endif
