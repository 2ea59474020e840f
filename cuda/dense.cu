/* SPDX-License-Identifier: BSD-3-Clause */
/* Between dense vectors on a device and runs on the host, so that only elements that are present travel:
 *
 *     mark      the vector is read once, and becomes a bit for each element; of rows first one for each word;
 *     compact   the bits are numbered and listed in one pass (CUB's scan); then, one thread a word, what the
 *               indices point to is picked;
 *     split     the same of the bits in the order of a map's parts, made of the others;
 *     scatter   one thread a word;
 *     pack      mark and compact into memory of the host's without the number of elements being known there:
 *               kernels decide by it whether elements or the whole vector are written;
 *     unpack    the other way round. */

#include "cuda/dense.h"

#include "cuda/dense.cuh"
#include "cuda/parallel.cuh"
#include "cuda/parcel.cuh"

static cudaStream_t stream_of(const struct sar_vector *vector)
{
    return (cudaStream_t)vector->stream;
}

enum sar_status sar_cuda_count(const uint32_t *bits, size_t words, size_t *n, cudaStream_t stream)
{
    unsigned long long found = 0;
    sar_piece total(stream);
    *n = 0;
    if (words == 0)
        return SAR_OK;
    SAR_TRY(total.take(sizeof found));
    sar_list_body<uint32_t> body = { bits, words, NULL, 0, NULL, total.as<unsigned long long>() };
    SAR_TRY(number(bits, words, body, stream));
    SAR_TRY(sar_fetch(&found, total.memory, stream));
    *n = (size_t)found;
    return SAR_OK;
}

/* What is done with a vector whose elements are of some words, and its run's indices. */
template <class Word, class Index> struct operations {
    const struct sar_vector *vector;
    cudaStream_t stream;
    size_t count, words; /* elements, and words of one */

    explicit operations(const struct sar_vector *of)
        : vector(of), stream(stream_of(of)), count((size_t)of->shape->count),
          words(of->shape->element_size / sizeof(Word))
    {
    }

    enum sar_status mark_words(uint32_t *bits) const
    {
        bool aligned = (uintptr_t)vector->buf % alignof(sar_quad<Word>) == 0;
        sar_word_quad<Word> quad = { (const Word *)vector->buf, count * words, aligned };
        return ballot(sar_words(quad.n), quad, bits, stream);
    }

    enum sar_status mark(uint32_t *bits) const
    {
        sar_piece each_word(stream);
        if (words == 1)
            return mark_words(bits);
        SAR_TRY(each_word.take(sar_words(count * words) * sizeof *bits));
        SAR_TRY(mark_words(each_word.as<uint32_t>()));
        return ballot(sar_words(count), sar_row_quad{ each_word.as<uint32_t>(), words, count }, bits, stream);
    }

    /* Values of the elements with these indices, in the device's memory, to the host. */
    enum sar_status pick_values(const Index *index, const struct sar_run *run) const
    {
        sar_piece value(stream);
        SAR_TRY(value.take(run->nnz * vector->shape->element_size));
        sar_pick_body<Word, Index> body = { index, (const Word *)vector->buf, value.as<Word>(), words };
        SAR_TRY(each(run->nnz * words, body, stream));
        return sar_copy(run->value, value.memory, run->nnz * vector->shape->element_size, stream);
    }

    enum sar_status compact(const uint32_t *bits, const struct sar_run *run) const
    {
        sar_piece index(stream), total(stream);
        SAR_TRY(index.take(run->nnz * sizeof(Index)));
        SAR_TRY(total.take(sizeof(unsigned long long)));
        sar_list_body<Index> body = {
            bits, sar_words(count), index.as<Index>(), run->nnz, NULL, total.as<unsigned long long>()
        };
        SAR_TRY(number(bits, body.words, body, stream));
        SAR_TRY(sar_copy(run->index, index.memory, run->nnz * sizeof(Index), stream));
        return pick_values(index.as<Index>(), run);
    }

    enum sar_status order(const sar_cells &cells, const uint32_t *bits, size_t n, uint32_t *ordered) const
    {
        enum { WORD_SHIFT = 5 };
        if (cells.map.grain_shift >= WORD_SHIFT)
            return each(n, sar_slot_word{ cells, bits, ordered }, stream);
        return ballot(n, sar_slot_quad{ cells, bits }, ordered, stream);
    }

    enum sar_status split(const uint32_t *bits, const struct sar_division *how, const struct sar_run *run,
                          unsigned long long first[]) const
    {
        size_t n = (size_t)how->segments * how->map.parts;
        size_t total = n * (size_t)(how->width / SAR_WORD);
        sar_cells cells = { how->map, how->width };
        sar_piece ordered(stream), slot(stream), index(stream), begin(stream);
        SAR_TRY(ordered.take(total * sizeof *bits));
        SAR_TRY(slot.take(run->nnz * sizeof(uint32_t)));
        SAR_TRY(index.take(run->nnz * sizeof(Index)));
        SAR_TRY(begin.take(n * sizeof *first));
        SAR_TRY(order(cells, bits, total, ordered.as<uint32_t>()));
        sar_slot_body<Index> body = { cells, ordered.as<uint32_t>(), slot.as<uint32_t>(), index.as<Index>(),
                                      begin.as<unsigned long long>() };
        SAR_TRY(number(ordered.as<uint32_t>(), total, body, stream));
        SAR_TRY(sar_copy(first, begin.memory, n * sizeof *first, stream));
        SAR_TRY(sar_copy(run->index, slot.memory, run->nnz * sizeof(uint32_t), stream));
        return pick_values(index.as<Index>(), run);
    }

    enum sar_status scatter(const struct sar_run *run) const
    {
        sar_piece index(stream), value(stream);
        size_t index_bytes = run->nnz * sizeof(Index), value_bytes = run->nnz * vector->shape->element_size;
        SAR_TRY(index.take(index_bytes));
        SAR_TRY(value.take(value_bytes));
        SAR_TRY(sar_copy(index.memory, run->index, index_bytes, stream));
        SAR_TRY(sar_copy(value.memory, run->value, value_bytes, stream));
        sar_scatter_body<Word, Index> body = { index.as<Index>(), value.as<Word>(), (Word *)vector->buf,
                                               words };
        return each(run->nnz * words, body, stream);
    }

    size_t lanes() const
    {
        return count * words < SAR_LANES ? count * words : (size_t)SAR_LANES;
    }

    /* A failure leaves the parcel's number as it is, for that is copied last. */
    enum sar_status pack(const struct sar_parcel *parcel) const
    {
        sar_piece marks(stream), index(stream), nnz(stream);
        size_t n = sar_words(count);
        SAR_TRY(marks.take(n * sizeof(uint32_t)));
        SAR_TRY(index.take(parcel->room * sizeof(Index)));
        SAR_TRY(nnz.take(sizeof(uint64_t)));
        SAR_TRY(mark(marks.as<uint32_t>()));
        sar_list_body<Index> list = { marks.as<uint32_t>(), n,    index.as<Index>(),
                                      parcel->room,         NULL, nnz.as<unsigned long long>() };
        SAR_TRY(number(marks.as<uint32_t>(), n, list, stream));
        sar_pack_body<Word, Index> body = { contents(parcel, nnz), (const Word *)vector->buf,
                                            index.as<Index>() };
        SAR_TRY(each(lanes(), body, stream));
        return sar_copy(parcel->nnz, nnz.memory, sizeof(uint64_t), stream);
    }

    enum sar_status unpack(const struct sar_parcel *parcel) const
    {
        sar_piece nnz(stream);
        SAR_TRY(nnz.take(sizeof(uint64_t)));
        SAR_TRY(sar_copy(nnz.memory, parcel->nnz, sizeof(uint64_t), stream));
        sar_contents<Word, Index> all = contents(parcel, nnz);
        SAR_TRY(each(lanes(), sar_lay_body<Word, Index>{ all, (Word *)vector->buf }, stream));
        return each(lanes(), sar_unpack_body<Word, Index>{ all, (Word *)vector->buf }, stream);
    }

  private:
    sar_contents<Word, Index> contents(const struct sar_parcel *parcel, const sar_piece &nnz) const
    {
        return { (Word *)parcel->value,
                 (Index *)parcel->index,
                 parcel->room,
                 nnz.as<unsigned long long>(),
                 count,
                 words,
                 lanes() };
    }
};

template <class Index, class Action>
static enum sar_status with_words(const struct sar_vector *vector, const Action &action)
{
    uintptr_t multiples = vector->shape->element_size | (uintptr_t)vector->buf;
    if (multiples % 8 == 0)
        return action(operations<uint64_t, Index>(vector));
    if (multiples % 4 == 0)
        return action(operations<uint32_t, Index>(vector));
    if (multiples % 2 == 0)
        return action(operations<uint16_t, Index>(vector));
    return action(operations<uint8_t, Index>(vector));
}

template <class Action>
static enum sar_status with_types(const struct sar_vector *vector, const Action &action)
{
    if (vector->shape->index_size == 4)
        return with_words<uint32_t>(vector, action);
    return with_words<uint64_t>(vector, action);
}

enum sar_status sar_cuda_mark(const struct sar_vector *vector, struct sar_marks *marks)
{
    size_t words = sar_words(vector->shape->count);
    cudaStream_t stream = stream_of(vector);
    struct sar_marks made = { NULL, 0 };
    SAR_TRY(sar_cuda_take(words * sizeof(uint32_t) + 1, stream, &made.bits));
    uint32_t *bits = (uint32_t *)made.bits;
    enum sar_status status = with_words<uint32_t>(vector, [=](auto of) { return of.mark(bits); });
    if (status == SAR_OK)
        status = sar_cuda_count(bits, words, &made.nnz, stream);
    if (status == SAR_OK)
        *marks = made;
    else
        sar_cuda_unmark(vector, &made);
    return status;
}

void sar_cuda_unmark(const struct sar_vector *vector, struct sar_marks *marks)
{
    if (marks->bits != NULL)
        (void)sar_cuda(cudaFreeAsync(marks->bits, stream_of(vector)));
    *marks = (struct sar_marks){ NULL, 0 };
}

enum sar_status sar_cuda_compact(const struct sar_vector *vector, const struct sar_marks *marks,
                                 const struct sar_run *run)
{
    const uint32_t *bits = (const uint32_t *)marks->bits;
    return with_types(vector, [=](auto of) { return of.compact(bits, run); });
}

enum sar_status sar_cuda_split(const struct sar_vector *vector, const struct sar_marks *marks,
                               const struct sar_division *split, const struct sar_run *run,
                               unsigned long long first[])
{
    const uint32_t *bits = (const uint32_t *)marks->bits;
    return with_types(vector, [=](auto of) { return of.split(bits, split, run, first); });
}

enum sar_status sar_cuda_scatter(const struct sar_vector *vector, const struct sar_run runs[], size_t n,
                                 bool clear)
{
    size_t bytes = (size_t)vector->shape->count * vector->shape->element_size;
    if (clear)
        SAR_TRY(sar_cuda(cudaMemsetAsync(vector->buf, 0, bytes, stream_of(vector))));
    for (size_t i = 0; i < n; i++)
        SAR_TRY(with_types(vector, [=](auto of) { return of.scatter(&runs[i]); }));
    return SAR_OK;
}

enum sar_status sar_cuda_pack(const struct sar_vector *vector, const struct sar_parcel *parcel)
{
    return with_types(vector, [=](auto of) { return of.pack(parcel); });
}

enum sar_status sar_cuda_unpack(const struct sar_vector *vector, const struct sar_parcel *parcel)
{
    return with_types(vector, [=](auto of) { return of.unpack(parcel); });
}
