/* SPDX-License-Identifier: BSD-3-Clause */
/* The format elias_fano on a device. Encoding sets the high bit and the low bits of each element in zeroed
 * words. Decoding is one scan over the high bits: the rank of a bit is the number of its element, which
 * gives the position of the low bits. Both arrays of bits are unaligned in the payload, so the kernels use
 * aligned copies. */

#include "cuda/launch.h"

#include "cuda/codec.cuh"
#include "cuda/parallel.cuh"
#include "wire/elias_fano.h"

/* Aligned copies of a payload's low and high bits, which follow its values. */
struct ef_bitmaps {
    struct sar_elias_fano_sizes sizes; /* in bytes */
    char *payload;
    cudaStream_t stream;
    sar_scoped_alloc low, high;

    ef_bitmaps(const struct sar_wire_layout *layout, const void *payload, size_t nnz, cudaStream_t stream)
        : sizes(sar_elias_fano_sizes_make(layout, nnz)), payload((char *)payload), stream(stream),
          low(stream), high(stream)
    {
    }

    size_t high_words() const
    {
        return sar_bits_words(8 * sizes.high);
    }

    /* Allocate both, zeroed. The low bits need two words more, which sar_packed_bits reads. */
    enum sar_status open()
    {
        size_t low_bytes = (sar_bits_words(8 * sizes.low) + 2) * sizeof(uint32_t);
        SAR_TRY(low.alloc(low_bytes));
        SAR_TRY(high.alloc(high_words() * sizeof(uint32_t)));
        SAR_TRY(sar_cuda_status(cudaMemsetAsync(low.memory, 0, low_bytes, stream)));
        return sar_cuda_status(cudaMemsetAsync(high.memory, 0, high_words() * sizeof(uint32_t), stream));
    }

    enum sar_status read() const
    {
        SAR_TRY(sar_copy_async(low.memory, payload + sizes.values, sizes.low, stream));
        return sar_copy_async(high.memory, payload + sizes.values + sizes.low, sizes.high, stream);
    }

    enum sar_status write() const
    {
        SAR_TRY(sar_copy_async(payload + sizes.values, low.memory, sizes.low, stream));
        return sar_copy_async(payload + sizes.values + sizes.low, high.memory, sizes.high, stream);
    }

    sar_packed_bits low_bits() const
    {
        return { low.as<uint32_t>(), sizes.low_bits };
    }
};

template <class Index>
static enum sar_status encode(const struct sar_wire_layout *layout, const struct sar_spvec *vec,
                              void *payload, cudaStream_t stream)
{
    struct ef_bitmaps bitmaps(layout, payload, vec->nnz, stream);
    SAR_TRY(bitmaps.open());
    SAR_TRY(sar_copy_async(payload, vec->value, bitmaps.sizes.values, stream));
    sar_ef_encode_functor<Index> functor = { (const Index *)vec->index, bitmaps.low_bits(),
                                             bitmaps.high.as<uint32_t>() };
    SAR_TRY(for_each(vec->nnz, functor, stream));
    return bitmaps.write();
}

template <class Index>
static enum sar_status decode(const struct sar_wire_layout *layout, const void *payload,
                              const struct sar_spvec *vec, uint32_t *corrupt, cudaStream_t stream)
{
    struct ef_bitmaps bitmaps(layout, payload, vec->nnz, stream);
    Index *index = (Index *)vec->index;
    SAR_TRY(bitmaps.open());
    SAR_TRY(bitmaps.read());
    SAR_TRY(sar_cuda_status(cudaMemsetAsync(index, 0, vec->nnz * sizeof(Index), stream)));
    sar_ef_decode_functor<Index> functor = { { bitmaps.high.as<uint32_t>(), bitmaps.high_words(), vec->nnz,
                                               layout->slots, corrupt },
                                             bitmaps.low_bits(),
                                             index };
    SAR_TRY(rank_words(bitmaps.high.as<uint32_t>(), bitmaps.high_words(), functor, stream));
    return for_each(vec->nnz, sar_is_sorted_functor<Index>{ index, corrupt }, stream);
}

enum sar_status sar_cuda_elias_fano_encode(const struct sar_wire_layout *layout, const struct sar_spvec *vec,
                                           void *payload, cudaStream_t stream)
{
    if (vec->nnz == 0)
        return SAR_OK;
    if (layout->index_size == 4)
        return encode<uint32_t>(layout, vec, payload, stream);
    return encode<uint64_t>(layout, vec, payload, stream);
}

enum sar_status sar_cuda_elias_fano_decode(const struct sar_wire_layout *layout, const void *payload,
                                           const struct sar_spvec *vec, struct sar_device_flags *flags,
                                           cudaStream_t stream)
{
    if (vec->nnz == 0)
        return SAR_OK;
    if (layout->index_size == 4)
        return decode<uint32_t>(layout, payload, vec, &flags->corrupt, stream);
    return decode<uint64_t>(layout, payload, vec, &flags->corrupt, stream);
}
