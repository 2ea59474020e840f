/* SPDX-License-Identifier: BSD-3-Clause */
/* What each thread of the kernels does by which a vector goes into a parcel in pinned memory of the host, and
 * comes out of one. What is in a parcel is known only once kernels run: so many threads as a device has share
 * what there is, whatever that is. They follow each other through all arrays, so that what they touch in the
 * host's memory goes over the bus in whole lines, and nothing else does. */

#ifndef SAR_CUDA_PARCEL_CUH
#define SAR_CUDA_PARCEL_CUH

#include "cuda/dense.cuh"

enum { SAR_LANES = 1 << 18 };

/** Copy n words, or zero them where there are none to copy: one lane's share. */
template <class Word>
SAR_HOST_DEVICE static inline void sar_copy_share(Word *to, const Word *from, size_t n, size_t lane,
                                                  size_t lanes)
{
    bool aligned = ((uintptr_t)to | (uintptr_t)from) % alignof(sar_quad<Word>) == 0;
    size_t quads = aligned ? n / 4 : 0;
    for (size_t q = lane; q < quads; q += lanes)
        ((sar_quad<Word> *)to)[q] = from == NULL ? sar_quad<Word>{} : ((const sar_quad<Word> *)from)[q];
    for (size_t i = 4 * quads + lane; i < n; i += lanes)
        to[i] = from == NULL ? (Word)0 : from[i];
}

/** A parcel, with its number of elements in the device's memory. */
template <class Word, class Index> struct sar_contents {
    Word *value;
    Index *index;
    unsigned long long room;
    const unsigned long long *nnz;
    size_t count, words; /* of the vector, and of an element */
    size_t lanes;

    SAR_HOST_DEVICE bool is_whole() const
    {
        return *nnz > room;
    }

    /** Words of the elements. */
    SAR_HOST_DEVICE size_t n() const
    {
        return (size_t)*nnz * words;
    }

    /** Where word i of the elements is in the vector, by the elements' indices. */
    SAR_HOST_DEVICE size_t place(const Index *at, size_t i) const
    {
        size_t element = words == 1 ? i : sar_quotient(i, words);
        return (size_t)at[element] * words + (i - element * words);
    }
};

/** Host twin: sar_parcel_fill in tensor/parcel.c. */
template <class Word, class Index> struct sar_pack_body {
    sar_contents<Word, Index> to;
    const Word *buf;
    const Index *index; /* of the elements, if there is room for all */

    SAR_HOST_DEVICE void operator()(size_t lane) const
    {
        if (to.is_whole()) {
            sar_copy_share(to.value, buf, to.count * to.words, lane, to.lanes);
            return;
        }
        for (size_t i = lane; i < to.n(); i += to.lanes)
            to.value[i] = buf[to.place(index, i)];
        sar_copy_share(to.index, index, (size_t)*to.nnz, lane, to.lanes);
    }
};

/** The whole vector, or zeros for elements to be written to. */
template <class Word, class Index> struct sar_lay_body {
    sar_contents<Word, Index> from;
    Word *buf;

    SAR_HOST_DEVICE void operator()(size_t lane) const
    {
        const Word *whole = from.is_whole() ? from.value : NULL;
        sar_copy_share(buf, whole, from.count * from.words, lane, from.lanes);
    }
};

/** Elements on zeros. Host twin: scatter in tensor/dense.c. */
template <class Word, class Index> struct sar_unpack_body {
    sar_contents<Word, Index> from;
    Word *buf;

    SAR_HOST_DEVICE void operator()(size_t lane) const
    {
        if (from.is_whole())
            return;
        for (size_t i = lane; i < from.n(); i += from.lanes)
            buf[from.place(from.index, i)] = from.value[i];
    }
};

#endif
