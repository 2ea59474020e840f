/* SPDX-License-Identifier: BSD-3-Clause */
/* Temporary device memory, copies, and the choice of words to copy by, for all .cu files. */

#ifndef SAR_CUDA_SCOPED_ALLOC_CUH
#define SAR_CUDA_SCOPED_ALLOC_CUH

#include <stddef.h>

#include "cuda/launch.h"

/** Memory of the device's pool in the order of a stream. The destructor queues its release. */
struct sar_scoped_alloc {
    cudaStream_t stream;
    void *memory = NULL;

    explicit sar_scoped_alloc(cudaStream_t stream) : stream(stream)
    {
    }

    sar_scoped_alloc(const sar_scoped_alloc &) = delete;

    ~sar_scoped_alloc()
    {
        if (memory != NULL)
            (void)cudaFreeAsync(memory, stream);
    }

    /** Allocate; bytes may be 0. Called once. */
    enum sar_status alloc(size_t bytes)
    {
        return sar_cuda_pool_alloc(bytes + 1, stream, &memory);
    }

    template <class Type> Type *as() const
    {
        return (Type *)memory;
    }
};

/** Queue a copy between arrays in any memory. */
static inline enum sar_status sar_copy_async(void *to, const void *from, size_t bytes, cudaStream_t stream)
{
    return bytes == 0 ? SAR_OK : sar_cuda_status(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream));
}

/** Copy a number from device memory. Waits for the stream. */
template <class Number>
static inline enum sar_status sar_fetch_value(Number *to, const void *from, cudaStream_t stream)
{
    SAR_TRY(sar_copy_async(to, from, sizeof *to, stream));
    return sar_cuda_status(cudaStreamSynchronize(stream));
}

/** Call action with a word of the widest type that divides all sizes and addresses or-ed in `alignment`. */
template <class Action>
static inline enum sar_status sar_with_widest_word(uintptr_t alignment, const Action &action)
{
    if (alignment % 8 == 0)
        return action(uint64_t());
    if (alignment % 4 == 0)
        return action(uint32_t());
    return alignment % 2 == 0 ? action(uint16_t()) : action(uint8_t());
}

#endif
