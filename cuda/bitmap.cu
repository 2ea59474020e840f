/* SPDX-License-Identifier: BSD-3-Clause */
/* The format hash_bitmap on a device. Encoding copies values and sets a bit an element; decoding is one scan
 * that numbers the bits and lists them. A bitmap that does not begin and end with a word is worked on beside
 * the payload. */

#include "cuda/bitmap.h"

#include "cuda/codec.cuh"
#include "cuda/parallel.cuh"

/* A bitmap of a payload, and the words to work on. */
struct place {
    char *bitmap;
    size_t bytes, words;
    sar_piece beside;
    uint32_t *bits = NULL;

    place(const struct sar_layout *layout, const void *payload, size_t nnz, cudaStream_t stream)
        : bitmap((char *)payload + nnz * layout->element_size), bytes((size_t)sar_bitmap_bytes(layout->span)),
          words(sar_words(layout->span)), beside(stream)
    {
    }

    enum sar_status open()
    {
        if (((uintptr_t)bitmap | bytes) % sizeof(uint32_t) != 0)
            SAR_TRY(beside.take(words * sizeof(uint32_t)));
        bits = beside.memory == NULL ? (uint32_t *)bitmap : beside.as<uint32_t>();
        return SAR_OK;
    }

    enum sar_status clear() const
    {
        return sar_cuda(cudaMemsetAsync(bits, 0, words * sizeof(uint32_t), beside.stream));
    }

    enum sar_status read() const
    {
        if (beside.memory == NULL)
            return SAR_OK;
        SAR_TRY(clear());
        return sar_copy(bits, bitmap, bytes, beside.stream);
    }

    enum sar_status write() const
    {
        return beside.memory == NULL ? SAR_OK : sar_copy(bitmap, bits, bytes, beside.stream);
    }
};

template <class Index>
static enum sar_status encode(const struct sar_layout *layout, const struct sar_run *run, void *payload,
                              cudaStream_t stream)
{
    struct place at(layout, payload, run->nnz, stream);
    SAR_TRY(sar_copy(payload, run->value, run->nnz * layout->element_size, stream));
    SAR_TRY(at.open());
    SAR_TRY(at.clear());
    SAR_TRY(each(run->nnz, sar_set_body<Index>{ (const Index *)run->index, at.bits }, stream));
    return at.write();
}

template <class Index>
static enum sar_status decode(const struct sar_layout *layout, const void *payload, const struct sar_run *run,
                              struct sar_findings *findings, cudaStream_t stream)
{
    struct place at(layout, payload, run->nnz, stream);
    SAR_TRY(at.open());
    SAR_TRY(at.read());
    SAR_TRY(sar_cuda(cudaMemsetAsync(run->index, 0, run->nnz * sizeof(Index), stream)));
    sar_slots_body<Index> body = { { at.bits, at.words, run->nnz, layout->span, &findings->corrupt },
                                   (Index *)run->index };
    return number(at.bits, at.words, body, stream);
}

enum sar_status sar_cuda_bitmap_encode(const struct sar_layout *layout, const struct sar_run *run,
                                       void *payload, cudaStream_t stream)
{
    if (layout->span == 0)
        return SAR_OK;
    if (layout->index_size == 4)
        return encode<uint32_t>(layout, run, payload, stream);
    return encode<uint64_t>(layout, run, payload, stream);
}

enum sar_status sar_cuda_bitmap_decode(const struct sar_layout *layout, const void *payload,
                                       const struct sar_run *run, struct sar_findings *findings,
                                       cudaStream_t stream)
{
    if (layout->span == 0)
        return SAR_OK;
    if (layout->index_size == 4)
        return decode<uint32_t>(layout, payload, run, findings, stream);
    return decode<uint64_t>(layout, payload, run, findings, stream);
}
