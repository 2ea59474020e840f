/* SPDX-License-Identifier: BSD-3-Clause */
/* Bitmaps in words of 32 bits: a bit for each element of a vector or each slot of a part. Most kernels are
 * built on them: a bitmap takes a thirty-second of a vector of floats, sorts what it holds, and the number of
 * bits before one is its element's place. */

#ifndef SAR_CUDA_BITS_CUH
#define SAR_CUDA_BITS_CUH

#include <stddef.h>
#include <stdint.h>

#include "base/host_device.h"

enum { SAR_WORD = 32 };

static inline size_t sar_words(uint64_t bits)
{
    return (size_t)(bits / SAR_WORD + (bits % SAR_WORD != 0));
}

/** a / b, in 32 bits where that does: devices divide numbers of 64 bits slowly. */
SAR_HOST_DEVICE static inline size_t sar_quotient(size_t a, size_t b)
{
    return ((uint64_t)(a | b) >> 32) == 0 ? (uint32_t)a / (uint32_t)b : a / b;
}

SAR_HOST_DEVICE static inline unsigned sar_ones(uint32_t word)
{
#ifdef __CUDA_ARCH__
    return (unsigned)__popc(word);
#else
    return (unsigned)__builtin_popcount(word);
#endif
}

/** Place of the lowest bit of a word that is not 0. */
SAR_HOST_DEVICE static inline unsigned sar_lowest(uint32_t word)
{
#ifdef __CUDA_ARCH__
    return (unsigned)__ffs((int)word) - 1;
#else
    return (unsigned)__builtin_ctz(word);
#endif
}

/** Set bits of a word that many threads set bits in. */
SAR_HOST_DEVICE static inline void sar_word_set(uint32_t *word, uint32_t bits)
{
#ifdef __CUDA_ARCH__
    atomicOr(word, bits);
#else
    __atomic_fetch_or(word, bits, __ATOMIC_RELAXED);
#endif
}

SAR_HOST_DEVICE static inline void sar_bit_set(uint32_t *bits, uint64_t at)
{
    sar_word_set(&bits[at / SAR_WORD], (uint32_t)1 << at % SAR_WORD);
}

/** Make a flag 1. Many find the same; few need to say so. */
SAR_HOST_DEVICE static inline void sar_tell(uint32_t *flag)
{
    if (*(volatile uint32_t *)flag == 0)
        sar_word_set(flag, 1);
}

/** How many bits are set before one, from those before its word. */
SAR_HOST_DEVICE static inline unsigned long long sar_bits_before(const uint32_t *bits,
                                                                 const unsigned long long *before,
                                                                 uint64_t at)
{
    uint32_t lower = ((uint32_t)1 << at % SAR_WORD) - 1;
    return before[at / SAR_WORD] + sar_ones(bits[at / SAR_WORD] & lower);
}

/** Set bits of one index each. Host twin: sar_tile_mark. */
template <class Index> struct sar_set_body {
    const Index *index;
    uint32_t *bits;

    SAR_HOST_DEVICE void operator()(size_t i) const
    {
        sar_bit_set(bits, index[i]);
    }
};

/** For each word of a bitmap, with the number of bits before it: list its bits as indices, and tell how many
 * there are of all. Host twins: sar_tile_list, sar_bitmap_decode. */
template <class Index> struct sar_list_body {
    const uint32_t *bits;
    size_t words;
    Index *index;
    unsigned long long room;    /* bits beyond are not listed */
    unsigned long long *before; /* where to leave the number, or NULL */
    unsigned long long *total;

    SAR_HOST_DEVICE void operator()(size_t w, unsigned long long place) const
    {
        if (before != NULL)
            before[w] = place;
        for (uint32_t rest = bits[w]; rest != 0; rest &= rest - 1, place++)
            if (place < room)
                index[place] = (Index)((uint64_t)w * SAR_WORD + sar_lowest(rest));
        if (w + 1 == words)
            *total = place;
    }
};

#endif
