/* SPDX-License-Identifier: BSD-3-Clause */
/* What each thread of the kernels in dense.cu does. Elements are rows of words, the widest that they are
 * made of and arrays are aligned to. */

#ifndef SAR_CUDA_DENSE_CUH
#define SAR_CUDA_DENSE_CUH

#include "hash/murmur3.h"

/** Whether an element has a bit set. Host twin: row_counts in tensor/dense.c. */
template <class Word> struct sar_present {
    const Word *buf;
    size_t words;

    SAR_HOST_DEVICE bool operator()(size_t i) const
    {
        Word any = 0;
        for (size_t w = 0; w < words; w++)
            any |= buf[i * words + w];
        return any != 0;
    }
};

/** For word i of the picked elements. Host twin: scan. */
template <class Word, class Index> struct sar_pick_body {
    const Index *index;
    const Word *buf;
    Word *value;
    size_t words;

    SAR_HOST_DEVICE void operator()(size_t i) const
    {
        size_t element = i / words;
        value[i] = buf[(size_t)index[element] * words + (i - element * words)];
    }
};

/** Likewise. Host twin: scatter. */
template <class Word, class Index> struct sar_scatter_body {
    const Index *index;
    const Word *value;
    Word *buf;
    size_t words;

    SAR_HOST_DEVICE void operator()(size_t i) const
    {
        size_t element = i / words;
        buf[(size_t)index[element] * words + (i - element * words)] = value[i];
    }
};

#endif
