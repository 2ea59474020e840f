/* SPDX-License-Identifier: BSD-3-Clause */
/* The format hash_bitmap on a device. Encoding copies the values and sets one bit per element. Decoding is
 * one scan that counts and lists the bits. A bitmap that does not begin and end at a word is copied to
 * aligned memory. */

#include "cuda/launch.h"

#include "cuda/codec.cuh"
#include "cuda/parallel.cuh"

/* The bitmap of a payload, and its words: the payload's own if they are aligned, else those of a copy. */
struct bitmap_words {
    char *payload_bits;
    size_t bytes, words;
    sar_scoped_alloc copy;
    uint32_t *bits = NULL;

    bitmap_words(const struct sar_wire_layout *layout, const void *payload, size_t nnz, cudaStream_t stream)
        : payload_bits((char *)payload + nnz * layout->element_size),
          bytes((size_t)sar_bitmap_bytes(layout->slots)), words(sar_bits_words(layout->slots)), copy(stream)
    {
    }

    enum sar_status open()
    {
        if (((uintptr_t)payload_bits | bytes) % sizeof(uint32_t) != 0)
            SAR_TRY(copy.alloc(words * sizeof(uint32_t)));
        bits = copy.memory == NULL ? (uint32_t *)payload_bits : copy.as<uint32_t>();
        return SAR_OK;
    }

    enum sar_status clear() const
    {
        return sar_cuda_status(cudaMemsetAsync(bits, 0, words * sizeof(uint32_t), copy.stream));
    }

    enum sar_status read() const
    {
        if (copy.memory == NULL)
            return SAR_OK;
        SAR_TRY(clear());
        return sar_copy_async(bits, payload_bits, bytes, copy.stream);
    }

    enum sar_status write() const
    {
        return copy.memory == NULL ? SAR_OK : sar_copy_async(payload_bits, bits, bytes, copy.stream);
    }
};

template <class Index>
static enum sar_status encode(const struct sar_wire_layout *layout, const struct sar_spvec *vec,
                              void *payload, cudaStream_t stream)
{
    struct bitmap_words bitmap(layout, payload, vec->nnz, stream);
    SAR_TRY(sar_copy_async(payload, vec->value, vec->nnz * layout->element_size, stream));
    SAR_TRY(bitmap.open());
    SAR_TRY(bitmap.clear());
    SAR_TRY(
        for_each(vec->nnz, sar_set_bits_functor<Index>{ (const Index *)vec->index, bitmap.bits }, stream));
    return bitmap.write();
}

template <class Index>
static enum sar_status decode(const struct sar_wire_layout *layout, const void *payload,
                              const struct sar_spvec *vec, struct sar_device_flags *flags,
                              cudaStream_t stream)
{
    struct bitmap_words bitmap(layout, payload, vec->nnz, stream);
    SAR_TRY(bitmap.open());
    SAR_TRY(bitmap.read());
    SAR_TRY(sar_cuda_status(cudaMemsetAsync(vec->index, 0, vec->nnz * sizeof(Index), stream)));
    sar_decode_slots_functor<Index> functor = {
        { bitmap.bits, bitmap.words, vec->nnz, layout->slots, &flags->corrupt }, (Index *)vec->index
    };
    return rank_words(bitmap.bits, bitmap.words, functor, stream);
}

enum sar_status sar_cuda_bitmap_encode(const struct sar_wire_layout *layout, const struct sar_spvec *vec,
                                       void *payload, cudaStream_t stream)
{
    if (layout->slots == 0)
        return SAR_OK;
    if (layout->index_size == 4)
        return encode<uint32_t>(layout, vec, payload, stream);
    return encode<uint64_t>(layout, vec, payload, stream);
}

enum sar_status sar_cuda_bitmap_decode(const struct sar_wire_layout *layout, const void *payload,
                                       const struct sar_spvec *vec, struct sar_device_flags *flags,
                                       cudaStream_t stream)
{
    if (layout->slots == 0)
        return SAR_OK;
    if (layout->index_size == 4)
        return decode<uint32_t>(layout, payload, vec, flags, stream);
    return decode<uint64_t>(layout, payload, vec, flags, stream);
}
