/* SPDX-License-Identifier: BSD-3-Clause */
/* Between dense vectors on a device and runs on the host, so that only elements that are present travel:
 *
 *     count     a sum over all elements (CUB);
 *     compact   the indices of those present, in order (CUB); then, one thread a word, what they point to;
 *     scatter   one thread a word. */

#include "cuda/dense.h"

#include "cuda/dense.cuh"
#include "cuda/parallel.cuh"

/* Memory of the device's pool, given back behind what is queued by then. */
struct piece {
    cudaStream_t stream;
    void *memory = NULL;

    explicit piece(cudaStream_t in) : stream(in)
    {
    }

    piece(const piece &) = delete;

    ~piece()
    {
        if (memory != NULL)
            (void)cudaFreeAsync(memory, stream);
    }

    enum sar_status take(size_t bytes)
    {
        return sar_cuda(cudaMallocAsync(&memory, bytes + 1, stream));
    }
};

static cudaStream_t stream_of(const struct sar_vector *vector)
{
    return (cudaStream_t)vector->stream;
}

static enum sar_status copy(void *to, const void *from, size_t bytes, cudaStream_t stream)
{
    return bytes == 0 ? SAR_OK : sar_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream));
}

/* What is done with a vector whose elements are of some words, and its run's indices. */
template <class Word, class Index> struct operations {
    static sar_present<Word> present_in(const struct sar_vector *vector)
    {
        return sar_present<Word>{ (const Word *)vector->buf, vector->shape->element_size / sizeof(Word) };
    }

    static enum sar_status count(const struct sar_vector *vector, size_t *nnz)
    {
        cudaStream_t stream = stream_of(vector);
        piece sum(stream), temporary(stream);
        sar_present<Word> present = present_in(vector);
        unsigned long long found = 0;
        size_t bytes = 0, n = (size_t)vector->shape->count;
        SAR_TRY(tally(NULL, &bytes, NULL, n, present, stream));
        SAR_TRY(temporary.take(bytes));
        SAR_TRY(sum.take(sizeof found));
        SAR_TRY(tally(temporary.memory, &bytes, (unsigned long long *)sum.memory, n, present, stream));
        SAR_TRY(copy(&found, sum.memory, sizeof found, stream));
        SAR_TRY(sar_cuda(cudaStreamSynchronize(stream)));
        *nnz = (size_t)found;
        return SAR_OK;
    }

    static enum sar_status find(const struct sar_vector *vector, Index *index)
    {
        cudaStream_t stream = stream_of(vector);
        piece picked(stream), temporary(stream);
        sar_present<Word> present = present_in(vector);
        thrust::counting_iterator<Index> all(0);
        size_t bytes = 0, n = (size_t)vector->shape->count;
        SAR_TRY(pick(NULL, &bytes, all, index, NULL, n, present, stream));
        SAR_TRY(temporary.take(bytes));
        SAR_TRY(picked.take(sizeof(unsigned long long)));
        return pick(temporary.memory, &bytes, all, index, (unsigned long long *)picked.memory, n, present,
                    stream);
    }

    static enum sar_status compact(const struct sar_vector *vector, const struct sar_run *run)
    {
        cudaStream_t stream = stream_of(vector);
        piece index(stream), value(stream);
        sar_present<Word> present = present_in(vector);
        size_t index_bytes = run->nnz * sizeof(Index), value_bytes = run->nnz * vector->shape->element_size;
        SAR_TRY(index.take(index_bytes));
        SAR_TRY(value.take(value_bytes));
        SAR_TRY(find(vector, (Index *)index.memory));
        sar_pick_body<Word, Index> body = { (const Index *)index.memory, present.buf, (Word *)value.memory,
                                            present.words };
        SAR_TRY(each(run->nnz * present.words, body, stream));
        SAR_TRY(copy(run->index, index.memory, index_bytes, stream));
        return copy(run->value, value.memory, value_bytes, stream);
    }

    static enum sar_status scatter(const struct sar_vector *vector, const struct sar_run *run)
    {
        cudaStream_t stream = stream_of(vector);
        piece index(stream), value(stream);
        size_t words = vector->shape->element_size / sizeof(Word);
        size_t index_bytes = run->nnz * sizeof(Index), value_bytes = run->nnz * vector->shape->element_size;
        SAR_TRY(index.take(index_bytes));
        SAR_TRY(value.take(value_bytes));
        SAR_TRY(copy(index.memory, run->index, index_bytes, stream));
        SAR_TRY(copy(value.memory, run->value, value_bytes, stream));
        sar_scatter_body<Word, Index> body = { (const Index *)index.memory, (const Word *)value.memory,
                                               (Word *)vector->buf, words };
        return each(run->nnz * words, body, stream);
    }
};

template <class Index, class Action>
static enum sar_status with_words(const struct sar_vector *vector, const Action &action)
{
    uintptr_t multiples = vector->shape->element_size | (uintptr_t)vector->buf;
    if (multiples % 8 == 0)
        return action(operations<uint64_t, Index>());
    if (multiples % 4 == 0)
        return action(operations<uint32_t, Index>());
    return action(operations<uint16_t, Index>());
}

template <class Action>
static enum sar_status with_types(const struct sar_vector *vector, const Action &action)
{
    if (vector->shape->index_size == 4)
        return with_words<uint32_t>(vector, action);
    return with_words<uint64_t>(vector, action);
}

enum sar_status sar_cuda_count(const struct sar_vector *vector, size_t *nnz)
{
    return with_types(vector, [=](auto of) { return decltype(of)::count(vector, nnz); });
}

enum sar_status sar_cuda_compact(const struct sar_vector *vector, const struct sar_run *run)
{
    return with_types(vector, [=](auto of) { return decltype(of)::compact(vector, run); });
}

enum sar_status sar_cuda_scatter(const struct sar_vector *vector, const struct sar_run runs[], size_t n,
                                 bool clear)
{
    size_t bytes = (size_t)vector->shape->count * vector->shape->element_size;
    if (clear)
        SAR_TRY(sar_cuda(cudaMemsetAsync(vector->buf, 0, bytes, stream_of(vector))));
    for (size_t i = 0; i < n; i++)
        SAR_TRY(with_types(vector, [=](auto of) { return decltype(of)::scatter(vector, &runs[i]); }));
    return SAR_OK;
}
