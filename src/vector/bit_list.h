/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists of the set bits of a word as numbers. Most words of a bitmap have fewer bits than a batch. Writing a
 * whole batch, some of it unused, is faster than a loop of variable length, which mispredicts. */

#ifndef SAR_VECTOR_BIT_LIST_H
#define SAR_VECTOR_BIT_LIST_H

#include "vector/spvec.h"
#if defined(SAR_AVX512)
#include <immintrin.h>
#endif

enum {
    SAR_BIT_LIST_SLACK = 16, /**< numbers that may be written after the last bit */
    SAR_BIT_LIST_BATCH = 4,  /**< numbers written at a time */
    SAR_BIT_LIST_LANES = 16  /**< numbers of 4 bytes in a vector of AVX-512 */
};

/** Writes the numbers of the set bits plus `base`, ascending and in `size` bytes each, to out[at], out[at +
 * 1] …; returns how many bits are set. */
SAR_INLINE size_t sar_bit_list(uint64_t bits, uint64_t base, void *out, unsigned size, size_t at)
{
    size_t n = (size_t)__builtin_popcountll(bits), i = 0;
    do {
#pragma GCC unroll 4
        for (size_t j = 0; j < SAR_BIT_LIST_BATCH; j++, bits &= bits - 1)
            sar_index_set(out, size, at + i + j, base + (unsigned)__builtin_ctzll(bits | (uint64_t)1 << 63));
        i += SAR_BIT_LIST_BATCH;
    } while (__builtin_expect(i < n, 0));
    return n;
}

#if defined(SAR_AVX512)
/** As sar_bit_list for numbers of 4 bytes, without a loop over bits: compresses the bytes 0 … 63 by the
 * word. */
SAR_AVX512 static inline size_t sar_bit_list_avx512(uint64_t bits, uint32_t base, uint32_t *out)
{
    const __m512i numbers =
        _mm512_set_epi64(0x3f3e3d3c3b3a3938, 0x3736353433323130, 0x2f2e2d2c2b2a2928, 0x2726252423222120,
                         0x1f1e1d1c1b1a1918, 0x1716151413121110, 0x0f0e0d0c0b0a0908, 0x0706050403020100);
    __m512i found = _mm512_maskz_compress_epi8(bits, numbers), first = _mm512_set1_epi32((int)base);
    size_t n = (size_t)__builtin_popcountll(bits);
    _mm512_storeu_si512(out, _mm512_add_epi32(first, _mm512_cvtepu8_epi32(_mm512_castsi512_si128(found))));
    for (size_t i = SAR_BIT_LIST_LANES; __builtin_expect(i < n, 0); i += SAR_BIT_LIST_LANES) {
        found = _mm512_shuffle_i32x4(found, found, _MM_SHUFFLE(0, 3, 2, 1));
        __m512i next = _mm512_cvtepu8_epi32(_mm512_castsi512_si128(found));
        _mm512_storeu_si512(out + i, _mm512_add_epi32(first, next));
    }
    return n;
}
#else
SAR_INLINE size_t sar_bit_list_avx512(uint64_t bits, uint32_t base, uint32_t *out)
{
    return sar_bit_list(bits, base, out, 4, 0);
}
#endif

#endif
