/* SPDX-License-Identifier: BSD-3-Clause */
/* The format elias_fano on a device. Encoding sets each element's bit, and its low bits, in words that are 0;
 * decoding is one scan that numbers the bits: the number of a bit is its element's, which tells where the low
 * bits are. Neither bitmap begins with a word in a payload, so both are worked on beside it. */

#include "cuda/elias_fano.h"

#include "cuda/codec.cuh"
#include "cuda/parallel.cuh"
#include "wire/elias_fano.h"

/* What is behind the values, in words. */
struct bitmaps {
    struct sar_sections at;
    char *payload;
    cudaStream_t stream;
    sar_piece low, high;

    bitmaps(const struct sar_layout *layout, const void *in, size_t nnz, cudaStream_t where)
        : at(sar_elias_fano_sections(layout, nnz)), payload((char *)in), stream(where), low(where),
          high(where)
    {
    }

    size_t high_words() const
    {
        return sar_words(8 * at.high);
    }

    enum sar_status open()
    {
        size_t low_bytes = (sar_words(8 * at.low) + 2) * sizeof(uint32_t);
        SAR_TRY(low.take(low_bytes));
        SAR_TRY(high.take(high_words() * sizeof(uint32_t)));
        SAR_TRY(sar_cuda(cudaMemsetAsync(low.memory, 0, low_bytes, stream)));
        return sar_cuda(cudaMemsetAsync(high.memory, 0, high_words() * sizeof(uint32_t), stream));
    }

    enum sar_status read() const
    {
        SAR_TRY(sar_copy(low.memory, payload + at.values, at.low, stream));
        return sar_copy(high.memory, payload + at.values + at.low, at.high, stream);
    }

    enum sar_status write() const
    {
        SAR_TRY(sar_copy(payload + at.values, low.memory, at.low, stream));
        return sar_copy(payload + at.values + at.low, high.memory, at.high, stream);
    }

    sar_packed_bits low_bits() const
    {
        return { low.as<uint32_t>(), at.low_bits };
    }
};

template <class Index>
static enum sar_status encode(const struct sar_layout *layout, const struct sar_run *run, void *payload,
                              cudaStream_t stream)
{
    struct bitmaps b(layout, payload, run->nnz, stream);
    SAR_TRY(b.open());
    SAR_TRY(sar_copy(payload, run->value, b.at.values, stream));
    sar_unary_body<Index> body = { (const Index *)run->index, b.low_bits(), b.high.as<uint32_t>() };
    SAR_TRY(each(run->nnz, body, stream));
    return b.write();
}

template <class Index>
static enum sar_status decode(const struct sar_layout *layout, const void *payload, const struct sar_run *run,
                              uint32_t *corrupt, cudaStream_t stream)
{
    struct bitmaps b(layout, payload, run->nnz, stream);
    Index *index = (Index *)run->index;
    SAR_TRY(b.open());
    SAR_TRY(b.read());
    SAR_TRY(sar_cuda(cudaMemsetAsync(index, 0, run->nnz * sizeof(Index), stream)));
    sar_sum_body<Index> body = { { b.high.as<uint32_t>(), b.high_words(), run->nnz, layout->span, corrupt },
                                 b.low_bits(),
                                 index };
    SAR_TRY(number(b.high.as<uint32_t>(), b.high_words(), body, stream));
    return each(run->nnz, sar_ascent_body<Index>{ index, corrupt }, stream);
}

enum sar_status sar_cuda_elias_fano_encode(const struct sar_layout *layout, const struct sar_run *run,
                                           void *payload, cudaStream_t stream)
{
    if (run->nnz == 0)
        return SAR_OK;
    if (layout->index_size == 4)
        return encode<uint32_t>(layout, run, payload, stream);
    return encode<uint64_t>(layout, run, payload, stream);
}

enum sar_status sar_cuda_elias_fano_decode(const struct sar_layout *layout, const void *payload,
                                           const struct sar_run *run, struct sar_findings *findings,
                                           cudaStream_t stream)
{
    if (run->nnz == 0)
        return SAR_OK;
    if (layout->index_size == 4)
        return decode<uint32_t>(layout, payload, run, &findings->corrupt, stream);
    return decode<uint64_t>(layout, payload, run, &findings->corrupt, stream);
}
