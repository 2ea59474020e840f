/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_CUDA_MEMORY_CUH
#define SAR_CUDA_MEMORY_CUH

#include <stddef.h>

#include "cuda/pool.h"

/** Memory of the device's pool, in the order of a stream: given back behind what is queued by then. */
struct sar_piece {
    cudaStream_t stream;
    void *memory = NULL;

    explicit sar_piece(cudaStream_t in) : stream(in)
    {
    }

    sar_piece(const sar_piece &) = delete;

    ~sar_piece()
    {
        if (memory != NULL)
            (void)cudaFreeAsync(memory, stream);
    }

    enum sar_status take(size_t bytes)
    {
        return sar_cuda_take(bytes + 1, stream, &memory);
    }

    template <class Type> Type *as() const
    {
        return (Type *)memory;
    }
};

/** Queue a copy between arrays of any memory. */
static inline enum sar_status sar_copy(void *to, const void *from, size_t bytes, cudaStream_t stream)
{
    return bytes == 0 ? SAR_OK : sar_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream));
}

/** Copy a number of the device's, and wait for it. */
template <class Number>
static inline enum sar_status sar_fetch(Number *to, const void *from, cudaStream_t stream)
{
    SAR_TRY(sar_copy(to, from, sizeof *to, stream));
    return sar_cuda(cudaStreamSynchronize(stream));
}

#endif
