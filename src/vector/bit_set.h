/* SPDX-License-Identifier: BSD-3-Clause */
/* Set the bits of ascending numbers in a bitmap, 16 numbers at a time with AVX-512.
 *
 * The bits of numbers that share a word of 32 bits are united from lane to lane, so that the last of them has
 * all. A scatter stores the lanes in order, and the last one stays. */

#ifndef SAR_VECTOR_BIT_SET_H
#define SAR_VECTOR_BIT_SET_H

#include "vector/spvec.h"

#if defined(SAR_AVX512)
#include <immintrin.h>

/* Unites each lane with the lane `N` before if both have one word; there are none before the first. */
#define SAR_BIT_SET_UNITE(bits, words, N)                                                                    \
    _mm512_mask_or_epi32(bits,                                                                               \
                         _mm512_cmpeq_epi32_mask(words,                                                      \
                                                 _mm512_alignr_epi32(words, _mm512_set1_epi32(-1), 16 - N)), \
                         bits, _mm512_alignr_epi32(bits, _mm512_setzero_si512(), 16 - N))

/** Sets bits index[0] … index[n - 1] of a bitmap whose other bits are 0; it has whole words of 32 bits. The
 * indices ascend. Returns how many are set, all but the last n % 16. */
SAR_AVX512 static inline size_t sar_bit_set_avx512(const uint32_t *index, size_t n, unsigned char *bitmap)
{
    const __m512i last = _mm512_set1_epi32(15);
    __m512i carry = _mm512_setzero_si512(), carry_word = _mm512_set1_epi32(-1);
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m512i number = _mm512_loadu_si512(index + i), word = _mm512_srli_epi32(number, 5);
        __m512i bits = _mm512_rolv_epi32(_mm512_set1_epi32(1), number);
        bits = SAR_BIT_SET_UNITE(bits, word, 1);
        bits = SAR_BIT_SET_UNITE(bits, word, 2);
        bits = SAR_BIT_SET_UNITE(bits, word, 4);
        bits = SAR_BIT_SET_UNITE(bits, word, 8);
        bits = _mm512_mask_or_epi32(bits, _mm512_cmpeq_epi32_mask(word, carry_word), bits, carry);
        _mm512_i32scatter_epi32(bitmap, word, bits, 4);
        carry = _mm512_permutexvar_epi32(last, bits);
        carry_word = _mm512_permutexvar_epi32(last, word);
    }
    return i;
}
#endif

#endif
