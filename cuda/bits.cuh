/* SPDX-License-Identifier: BSD-3-Clause */
/* Bitmaps in words of 32 bits, with one bit for each element of a vector or each slot of a part. Most
 * kernels use them: a bitmap takes 1/32 of the memory of a vector of floats, keeps elements sorted, and the
 * number of bits before a bit is the rank of its element. */

#ifndef SAR_CUDA_BITS_CUH
#define SAR_CUDA_BITS_CUH

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

enum { SAR_WORD_BITS = 32 };

/** Words of a bitmap. */
static inline size_t sar_bits_words(uint64_t bits)
{
    return (size_t)(bits / SAR_WORD_BITS + (bits % SAR_WORD_BITS != 0));
}

/** a / b, in 32 bits if both fit: devices divide 64-bit numbers slowly. */
SAR_HOST_DEVICE static inline size_t sar_divide(size_t a, size_t b)
{
    return ((uint64_t)(a | b) >> 32) == 0 ? (uint32_t)a / (uint32_t)b : a / b;
}

/** Number of set bits. */
SAR_HOST_DEVICE static inline unsigned sar_bits_popcount(uint32_t word)
{
#ifdef __CUDA_ARCH__
    return (unsigned)__popc(word);
#else
    return (unsigned)__builtin_popcount(word);
#endif
}

/** Position of the lowest set bit; word is not 0. */
SAR_HOST_DEVICE static inline unsigned sar_bits_lowest(uint32_t word)
{
#ifdef __CUDA_ARCH__
    return (unsigned)__ffs((int)word) - 1;
#else
    return (unsigned)__builtin_ctz(word);
#endif
}

/** Set bits of a word atomically. */
SAR_HOST_DEVICE static inline void sar_bits_or(uint32_t *word, uint32_t bits)
{
#ifdef __CUDA_ARCH__
    atomicOr(word, bits);
#else
    __atomic_fetch_or(word, bits, __ATOMIC_RELAXED);
#endif
}

/** Add to a word atomically. */
SAR_HOST_DEVICE static inline void sar_word_add(uint32_t *word, uint32_t number)
{
#ifdef __CUDA_ARCH__
    atomicAdd(word, number);
#else
    __atomic_fetch_add(word, number, __ATOMIC_RELAXED);
#endif
}

/** Set bit `at` of a bitmap atomically. */
SAR_HOST_DEVICE static inline void sar_bits_set(uint32_t *bits, uint64_t at)
{
    sar_bits_or(&bits[at / SAR_WORD_BITS], (uint32_t)1 << at % SAR_WORD_BITS);
}

/** Set a flag to 1 atomically. Reads the flag first, since many threads may find it set. */
SAR_HOST_DEVICE static inline void sar_flag_set(uint32_t *flag)
{
    if (*(volatile uint32_t *)flag == 0)
        sar_bits_or(flag, 1);
}

/** Number of set bits before bit `at`. rank_prefix has the number before each word. */
SAR_HOST_DEVICE static inline unsigned long long sar_bits_rank(const uint32_t *bits,
                                                               const unsigned long long *rank_prefix,
                                                               uint64_t at)
{
    uint32_t lower = ((uint32_t)1 << at % SAR_WORD_BITS) - 1;
    return rank_prefix[at / SAR_WORD_BITS] + sar_bits_popcount(bits[at / SAR_WORD_BITS] & lower);
}

/** Sets the bit of index i. Host twin: sar_tile_mark. */
template <class Index> struct sar_set_bits_functor {
    const Index *index;
    uint32_t *bits;

    SAR_HOST_DEVICE void operator()(size_t i) const
    {
        sar_bits_set(bits, index[i]);
    }
};

/** Lists the set bits of word w as indices, from the number of bits before it (rank). The last word's thread
 * writes the total. Host twins: sar_tile_list_indices, sar_bitmap_decode. */
template <class Index> struct sar_list_bits_functor {
    const uint32_t *bits;
    size_t words;
    Index *index;
    unsigned long long capacity;     /* of index; further bits are not listed */
    unsigned long long *rank_prefix; /* out: bits before each word, or NULL */
    unsigned long long *total;

    SAR_HOST_DEVICE void operator()(size_t w, unsigned long long rank) const
    {
        if (rank_prefix != NULL)
            rank_prefix[w] = rank;
        for (uint32_t rest = bits[w]; rest != 0; rest &= rest - 1, rank++)
            if (rank < capacity)
                index[rank] = (Index)((uint64_t)w * SAR_WORD_BITS + sar_bits_lowest(rest));
        if (w + 1 == words)
            *total = rank;
    }
};

#endif
