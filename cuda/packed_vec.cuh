/* SPDX-License-Identifier: BSD-3-Clause */
/* Functors of the kernels in dense.cu that write a vector to a struct sar_packed_vec in pinned host memory,
 * and read one. The number of elements is known only when the kernels run, so a fixed number of threads
 * share the arrays. Neighbouring threads access neighbouring words: only needed cache lines cross the bus,
 * and each of them whole. */

#ifndef SAR_CUDA_PACKED_VEC_CUH
#define SAR_CUDA_PACKED_VEC_CUH

#include "cuda/dense.cuh"

enum { SAR_COPY_THREADS = 1 << 18 }; /* enough to keep the bus busy */

/** Copy one thread's share of n words; with from NULL, write zeros. */
template <class Word>
SAR_HOST_DEVICE static inline void sar_copy_strided(Word *to, const Word *from, size_t n, size_t thread,
                                                    size_t threads)
{
    bool aligned = ((uintptr_t)to | (uintptr_t)from) % alignof(sar_quad<Word>) == 0;
    size_t quads = aligned ? n / 4 : 0;
    for (size_t q = thread; q < quads; q += threads)
        ((sar_quad<Word> *)to)[q] = from == NULL ? sar_quad<Word>{} : ((const sar_quad<Word> *)from)[q];
    for (size_t i = 4 * quads + thread; i < n; i += threads)
        to[i] = from == NULL ? (Word)0 : from[i];
}

/** A packed vector whose number of elements is in device memory. */
template <class Word, class Index> struct sar_packed_view {
    Word *value;
    Index *index;
    unsigned long long capacity;
    const unsigned long long *nnz;
    size_t count;   /* elements of the vector */
    size_t words;   /* of an element */
    size_t threads; /* of the kernel */

    SAR_HOST_DEVICE bool is_dense() const
    {
        return *nnz > capacity;
    }

    /** Words of all elements. */
    SAR_HOST_DEVICE size_t n() const
    {
        return (size_t)*nnz * words;
    }

    /** The position in the vector of word i of the elements, from the elements' indices. */
    SAR_HOST_DEVICE size_t offset(const Index *at, size_t i) const
    {
        size_t element = words == 1 ? i : sar_divide(i, words);
        return (size_t)at[element] * words + (i - element * words);
    }
};

/** Writes the elements, or the dense vector if they exceed the capacity. Host twin: sar_packed_vec_fill in
 * vector/packed_vec.c. */
template <class Word, class Index> struct sar_pack_functor {
    sar_packed_view<Word, Index> to;
    const Word *buf;
    const Index *index; /* of the elements; complete unless they exceed the capacity */

    SAR_HOST_DEVICE void operator()(size_t thread) const
    {
        if (to.is_dense()) {
            sar_copy_strided(to.value, buf, to.count * to.words, thread, to.threads);
            return;
        }
        for (size_t i = thread; i < to.n(); i += to.threads)
            to.value[i] = buf[to.offset(index, i)];
        sar_copy_strided(to.index, index, (size_t)*to.nnz, thread, to.threads);
    }
};

/** Writes the dense vector, or zeros if the packed vector is sparse. */
template <class Word, class Index> struct sar_unpack_dense_functor {
    sar_packed_view<Word, Index> from;
    Word *buf;

    SAR_HOST_DEVICE void operator()(size_t thread) const
    {
        const Word *source = from.is_dense() ? from.value : NULL;
        sar_copy_strided(buf, source, from.count * from.words, thread, from.threads);
    }
};

/** Writes the elements over the zeros. Host twin: vector/dense.c. */
template <class Word, class Index> struct sar_unpack_elements_functor {
    sar_packed_view<Word, Index> from;
    Word *buf;

    SAR_HOST_DEVICE void operator()(size_t thread) const
    {
        if (from.is_dense())
            return;
        for (size_t i = thread; i < from.n(); i += from.threads)
            buf[from.offset(from.index, i)] = from.value[i];
    }
};

#endif
