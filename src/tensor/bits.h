/* SPDX-License-Identifier: BSD-3-Clause */
/* Set bits of words as numbers. Most words of a bitmap hold fewer than a batch: a fixed number of writes, of
 * which only some count, is faster than a loop whose end cannot be foreseen. */

#ifndef SAR_TENSOR_BITS_H
#define SAR_TENSOR_BITS_H

#include "tensor/shape.h"
#if defined(SAR_WIDE)
#include <immintrin.h>
#endif

enum {
    SAR_BITS_SLACK = 16, /**< numbers that may be written behind those that count */
    SAR_BITS_BATCH = 4,
    SAR_BITS_LANES = 16
};

/** Write the numbers of a word's bits, in ascending order and each with `base` added, to out[at],
 * out[at + 1] …; returns how many. */
SAR_INLINE size_t sar_bits_list(uint64_t bits, uint64_t base, void *out, unsigned size, size_t at)
{
    size_t n = (size_t)__builtin_popcountll(bits), i = 0;
    do {
#pragma GCC unroll 4
        for (size_t j = 0; j < SAR_BITS_BATCH; j++, bits &= bits - 1)
            sar_index_set(out, size, at + i + j, base + (unsigned)__builtin_ctzll(bits | (uint64_t)1 << 63));
        i += SAR_BITS_BATCH;
    } while (__builtin_expect(i < n, 0));
    return n;
}

#if defined(SAR_WIDE)
/** The same at once, where numbers have 4 bytes: the bits move bytes that count from 0 to the front of a
 * vector. */
SAR_WIDE static inline size_t sar_bits_list_wide(uint64_t bits, uint32_t base, uint32_t *out)
{
    const __m512i counting =
        _mm512_set_epi64(0x3f3e3d3c3b3a3938, 0x3736353433323130, 0x2f2e2d2c2b2a2928, 0x2726252423222120,
                         0x1f1e1d1c1b1a1918, 0x1716151413121110, 0x0f0e0d0c0b0a0908, 0x0706050403020100);
    __m512i found = _mm512_maskz_compress_epi8(bits, counting), first = _mm512_set1_epi32((int)base);
    size_t n = (size_t)__builtin_popcountll(bits);
    _mm512_storeu_si512(out, _mm512_add_epi32(first, _mm512_cvtepu8_epi32(_mm512_castsi512_si128(found))));
    for (size_t i = SAR_BITS_LANES; __builtin_expect(i < n, 0); i += SAR_BITS_LANES) {
        found = _mm512_shuffle_i32x4(found, found, _MM_SHUFFLE(0, 3, 2, 1));
        __m512i some = _mm512_cvtepu8_epi32(_mm512_castsi512_si128(found));
        _mm512_storeu_si512(out + i, _mm512_add_epi32(first, some));
    }
    return n;
}
#else
SAR_INLINE size_t sar_bits_list_wide(uint64_t bits, uint32_t base, uint32_t *out)
{
    return sar_bits_list(bits, base, out, 4, 0);
}
#endif

#endif
