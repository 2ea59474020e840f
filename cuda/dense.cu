/* SPDX-License-Identifier: BSD-3-Clause */
/* Conversions between dense vectors on a device and sparse vectors in any memory, so that only non-zero
 * elements are copied:
 *
 *     mark      reads the vector once and writes one bit per element; for rows, first one bit per word
 *     compact   lists the bits in one pass (CUB's scan), then copies the values, one thread per word
 *     split     compact in the order of a map's parts: first permutes the bitmap to that order
 *     scatter   writes the elements, one thread per word
 *     pack      mark and compact into pinned host memory, without a wait for the number of elements: kernels
 *               read it on the device and write the elements or the dense vector
 *     unpack    the inverse of pack */

#include "cuda/launch.h"

#include "cuda/dense.cuh"
#include "cuda/parallel.cuh"

static cudaStream_t stream_of(const struct sar_device_vec *vector)
{
    return (cudaStream_t)vector->stream;
}

enum sar_status sar_cuda_count_bits(const uint32_t *bits, size_t words, size_t *n, cudaStream_t stream)
{
    unsigned long long found = 0;
    sar_scoped_alloc total(stream);
    *n = 0;
    if (words == 0)
        return SAR_OK;
    SAR_TRY(total.alloc(sizeof found));
    sar_list_bits_functor<uint32_t> functor = { bits, words, NULL, 0, NULL, total.as<unsigned long long>() };
    SAR_TRY(rank_words(bits, words, functor, stream));
    SAR_TRY(sar_fetch_value(&found, total.memory, stream));
    *n = (size_t)found;
    return SAR_OK;
}

/* The operations on a vector whose elements consist of Words, with indices of type Index. */
template <class Word, class Index> struct vector_kernels {
    const struct sar_device_vec *vector;
    cudaStream_t stream;
    size_t count; /* elements */
    size_t words; /* of an element */

    explicit vector_kernels(const struct sar_device_vec *vector)
        : vector(vector), stream(stream_of(vector)), count((size_t)vector->desc->count),
          words(vector->desc->element_size / sizeof(Word))
    {
    }

    enum sar_status mark_words(uint32_t *bits) const
    {
        bool aligned = (uintptr_t)vector->buf % alignof(sar_quad<Word>) == 0;
        sar_nonzero_words_functor<Word> quad = { (const Word *)vector->buf, count * words, aligned };
        return pack_bits(sar_bits_words(quad.n), quad, bits, stream);
    }

    enum sar_status mark(uint32_t *bits) const
    {
        sar_scoped_alloc word_bits(stream);
        if (words == 1)
            return mark_words(bits);
        SAR_TRY(word_bits.alloc(sar_bits_words(count * words) * sizeof *bits));
        SAR_TRY(mark_words(word_bits.as<uint32_t>()));
        return pack_bits(sar_bits_words(count),
                         sar_nonzero_rows_functor{ word_bits.as<uint32_t>(), words, count }, bits, stream);
    }

    /* Copy the values of the elements that index lists, in device memory, to vec. */
    enum sar_status pick_values(const Index *index, const struct sar_spvec *vec) const
    {
        sar_scoped_alloc value(stream);
        SAR_TRY(value.alloc(vec->nnz * vector->desc->element_size));
        sar_pick_values_functor<Word, Index> functor = { index, (const Word *)vector->buf, value.as<Word>(),
                                                         words };
        SAR_TRY(for_each(vec->nnz * words, functor, stream));
        return sar_copy_async(vec->value, value.memory, vec->nnz * vector->desc->element_size, stream);
    }

    enum sar_status compact(const uint32_t *bits, const struct sar_spvec *vec) const
    {
        sar_scoped_alloc index(stream), total(stream);
        SAR_TRY(index.alloc(vec->nnz * sizeof(Index)));
        SAR_TRY(total.alloc(sizeof(unsigned long long)));
        sar_list_bits_functor<Index> functor = {
            bits, sar_bits_words(count), index.as<Index>(), vec->nnz, NULL, total.as<unsigned long long>()
        };
        SAR_TRY(rank_words(bits, functor.words, functor, stream));
        SAR_TRY(sar_copy_async(vec->index, index.memory, vec->nnz * sizeof(Index), stream));
        return pick_values(index.as<Index>(), vec);
    }

    /* The bitmap in the order of cells. */
    enum sar_status order(const sar_partition_cells &cells, const uint32_t *bits, size_t words_n,
                          uint32_t *slot_bits) const
    {
        enum { WORD_SHIFT = 5 };
        if (cells.map.grain_shift >= WORD_SHIFT)
            return for_each(words_n, sar_slot_word_functor{ cells, bits, slot_bits }, stream);
        return pack_bits(words_n, sar_slot_marks_functor{ cells, bits }, slot_bits, stream);
    }

    enum sar_status split(const uint32_t *bits, const struct sar_partition_layout *layout,
                          const struct sar_spvec *vec, unsigned long long first[]) const
    {
        size_t n = (size_t)layout->segments * layout->map.parts;
        size_t total = n * (size_t)(layout->part_slots / SAR_WORD_BITS);
        sar_partition_cells cells = { layout->map, layout->part_slots };
        sar_scoped_alloc slot_bits(stream), slot(stream), index(stream), begin(stream);
        SAR_TRY(slot_bits.alloc(total * sizeof *bits));
        SAR_TRY(slot.alloc(vec->nnz * sizeof(uint32_t)));
        SAR_TRY(index.alloc(vec->nnz * sizeof(Index)));
        SAR_TRY(begin.alloc(n * sizeof *first));
        SAR_TRY(order(cells, bits, total, slot_bits.as<uint32_t>()));
        sar_list_slots_functor<Index> functor = { cells, slot_bits.as<uint32_t>(), slot.as<uint32_t>(),
                                                  index.as<Index>(), begin.as<unsigned long long>() };
        SAR_TRY(rank_words(slot_bits.as<uint32_t>(), total, functor, stream));
        SAR_TRY(sar_copy_async(first, begin.memory, n * sizeof *first, stream));
        SAR_TRY(sar_copy_async(vec->index, slot.memory, vec->nnz * sizeof(uint32_t), stream));
        return pick_values(index.as<Index>(), vec);
    }

    enum sar_status scatter(const struct sar_spvec *vec) const
    {
        sar_scoped_alloc index(stream), value(stream);
        size_t index_bytes = vec->nnz * sizeof(Index), value_bytes = vec->nnz * vector->desc->element_size;
        SAR_TRY(index.alloc(index_bytes));
        SAR_TRY(value.alloc(value_bytes));
        SAR_TRY(sar_copy_async(index.memory, vec->index, index_bytes, stream));
        SAR_TRY(sar_copy_async(value.memory, vec->value, value_bytes, stream));
        sar_scatter_values_functor<Word, Index> functor = { index.as<Index>(), value.as<Word>(),
                                                            (Word *)vector->buf, words };
        return for_each(vec->nnz * words, functor, stream);
    }

    size_t copy_threads() const
    {
        return count * words < SAR_COPY_THREADS ? count * words : (size_t)SAR_COPY_THREADS;
    }

    /* The number of elements is copied last, so a failure leaves it unchanged. */
    enum sar_status pack(const struct sar_packed_vec *packed) const
    {
        sar_scoped_alloc bits(stream), index(stream), nnz(stream);
        size_t n = sar_bits_words(count);
        SAR_TRY(bits.alloc(n * sizeof(uint32_t)));
        SAR_TRY(index.alloc(packed->capacity * sizeof(Index)));
        SAR_TRY(nnz.alloc(sizeof(uint64_t)));
        SAR_TRY(mark(bits.as<uint32_t>()));
        sar_list_bits_functor<Index> list = { bits.as<uint32_t>(), n,    index.as<Index>(),
                                              packed->capacity,    NULL, nnz.as<unsigned long long>() };
        SAR_TRY(rank_words(bits.as<uint32_t>(), n, list, stream));
        sar_pack_functor<Word, Index> functor = { packed_view(packed, nnz), (const Word *)vector->buf,
                                                  index.as<Index>() };
        SAR_TRY(for_each(copy_threads(), functor, stream));
        return sar_copy_async(packed->nnz, nnz.memory, sizeof(uint64_t), stream);
    }

    enum sar_status unpack(const struct sar_packed_vec *packed) const
    {
        sar_scoped_alloc nnz(stream);
        SAR_TRY(nnz.alloc(sizeof(uint64_t)));
        SAR_TRY(sar_copy_async(nnz.memory, packed->nnz, sizeof(uint64_t), stream));
        sar_packed_view<Word, Index> from = packed_view(packed, nnz);
        SAR_TRY(for_each(copy_threads(), sar_unpack_dense_functor<Word, Index>{ from, (Word *)vector->buf },
                         stream));
        return for_each(copy_threads(), sar_unpack_elements_functor<Word, Index>{ from, (Word *)vector->buf },
                        stream);
    }

  private:
    sar_packed_view<Word, Index> packed_view(const struct sar_packed_vec *packed,
                                             const sar_scoped_alloc &nnz) const
    {
        return { (Word *)packed->value,
                 (Index *)packed->index,
                 packed->capacity,
                 nnz.as<unsigned long long>(),
                 count,
                 words,
                 copy_threads() };
    }
};

/* Call action with vector_kernels of the widest words. */
template <class Index, class Action>
static enum sar_status dispatch_words(const struct sar_device_vec *vector, const Action &action)
{
    return sar_with_widest_word(vector->desc->element_size | (uintptr_t)vector->buf, [&](auto word) {
        return action(vector_kernels<decltype(word), Index>(vector));
    });
}

template <class Action>
static enum sar_status dispatch_types(const struct sar_device_vec *vector, const Action &action)
{
    if (vector->desc->index_size == 4)
        return dispatch_words<uint32_t>(vector, action);
    return dispatch_words<uint64_t>(vector, action);
}

enum sar_status sar_cuda_find_nonzeros(const struct sar_device_vec *vector, struct sar_nonzero_mask *mask)
{
    size_t words = sar_bits_words(vector->desc->count);
    cudaStream_t stream = stream_of(vector);
    struct sar_nonzero_mask made = { NULL, 0 };
    SAR_TRY(sar_cuda_pool_alloc(words * sizeof(uint32_t) + 1, stream, &made.bits));
    uint32_t *bits = (uint32_t *)made.bits;
    enum sar_status status =
        dispatch_words<uint32_t>(vector, [=](auto kernels) { return kernels.mark(bits); });
    if (status == SAR_OK)
        status = sar_cuda_count_bits(bits, words, &made.nnz, stream);
    if (status == SAR_OK)
        *mask = made;
    else
        sar_cuda_free_mask(vector, &made);
    return status;
}

void sar_cuda_free_mask(const struct sar_device_vec *vector, struct sar_nonzero_mask *mask)
{
    if (mask->bits != NULL)
        (void)sar_cuda_status(cudaFreeAsync(mask->bits, stream_of(vector)));
    *mask = (struct sar_nonzero_mask){ NULL, 0 };
}

enum sar_status sar_cuda_compact(const struct sar_device_vec *vector, const struct sar_nonzero_mask *mask,
                                 const struct sar_spvec *vec)
{
    const uint32_t *bits = (const uint32_t *)mask->bits;
    return dispatch_types(vector, [=](auto kernels) { return kernels.compact(bits, vec); });
}

/* Hierarchical hashing takes coordinates. */
static enum sar_status compact_and_hash(const struct sar_device_vec *vector,
                                        const struct sar_nonzero_mask *mask,
                                        const struct sar_partition_layout *layout,
                                        const struct sar_spvec *vec, unsigned long long first[])
{
    sar_scoped_alloc index(stream_of(vector)), value(stream_of(vector));
    SAR_TRY(index.alloc(mask->nnz * vector->desc->index_size));
    SAR_TRY(value.alloc(mask->nnz * vector->desc->element_size));
    struct sar_spvec compact = { index.memory, value.memory, mask->nnz };
    SAR_TRY(sar_cuda_compact(vector, mask, &compact));
    return sar_cuda_partition(vector, layout, &compact, vec, first);
}

enum sar_status sar_cuda_compact_parts(const struct sar_device_vec *vector,
                                       const struct sar_nonzero_mask *mask,
                                       const struct sar_partition_layout *layout, const struct sar_spvec *vec,
                                       unsigned long long first[])
{
    const uint32_t *bits = (const uint32_t *)mask->bits;
    if (layout->map.hierarchical)
        return compact_and_hash(vector, mask, layout, vec, first);
    return dispatch_types(vector, [=](auto kernels) { return kernels.split(bits, layout, vec, first); });
}

enum sar_status sar_cuda_scatter(const struct sar_device_vec *vector, const struct sar_spvec vecs[], size_t n,
                                 bool clear)
{
    size_t bytes = (size_t)vector->desc->count * vector->desc->element_size;
    if (clear)
        SAR_TRY(sar_cuda_status(cudaMemsetAsync(vector->buf, 0, bytes, stream_of(vector))));
    for (size_t i = 0; i < n; i++)
        SAR_TRY(dispatch_types(vector, [=](auto kernels) { return kernels.scatter(&vecs[i]); }));
    return SAR_OK;
}

enum sar_status sar_cuda_pack(const struct sar_device_vec *vector, const struct sar_packed_vec *packed)
{
    return dispatch_types(vector, [=](auto kernels) { return kernels.pack(packed); });
}

enum sar_status sar_cuda_unpack(const struct sar_device_vec *vector, const struct sar_packed_vec *packed)
{
    return dispatch_types(vector, [=](auto kernels) { return kernels.unpack(packed); });
}
