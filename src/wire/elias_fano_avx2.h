/* SPDX-License-Identifier: BSD-3-Clause */
/* Loops of the format elias_fano on indices of 4 bytes with AVX2, eight elements or eight bits at a time. A
 * caller tests sar_has_avx2() before. Each loop ends early, where fewer are left than it handles or may be
 * read, and the caller does the rest. */

#ifndef SAR_WIRE_ELIAS_FANO_AVX2_H
#define SAR_WIRE_ELIAS_FANO_AVX2_H

#include "base/word.h"

enum {
    SAR_AVX2_LANES = 8,
    SAR_AVX2_READ_BITS = 25, /**< most low bits that lie within 4 bytes at any bit offset */
    SAR_AVX2_PACK_BITS = 15  /**< most low bits of which 4 elements and half a byte lie within 8 bytes */
};

#if defined(SAR_AVX2)
#include <immintrin.h>

/* The numbers of the bits set in a byte, ascending, one in each byte of a word. */
#define SAR_BIT(b, i) ((uint64_t)((b) >> (i)) & 1)
#define SAR_RANK(b, i) __builtin_popcount((b) & ((1u << (i)) - 1))
#define SAR_AT(b, i) (SAR_BIT(b, i) * (i) << 8 * SAR_RANK(b, i))
#define SAR_ROW(b) \
    (SAR_AT(b, 1) | SAR_AT(b, 2) | SAR_AT(b, 3) | SAR_AT(b, 4) | SAR_AT(b, 5) | SAR_AT(b, 6) | SAR_AT(b, 7))
#define SAR_ROWS4(b) SAR_ROW(b), SAR_ROW((b) + 1), SAR_ROW((b) + 2), SAR_ROW((b) + 3)
#define SAR_ROWS16(b) SAR_ROWS4(b), SAR_ROWS4((b) + 4), SAR_ROWS4((b) + 8), SAR_ROWS4((b) + 12)
#define SAR_ROWS64(b) SAR_ROWS16(b), SAR_ROWS16((b) + 16), SAR_ROWS16((b) + 32), SAR_ROWS16((b) + 48)
static const uint64_t sar_bits_of_byte[256] = { SAR_ROWS64(0u), SAR_ROWS64(64u), SAR_ROWS64(128u),
                                                SAR_ROWS64(192u) };

/** Sets index[k], index[k + 1] … to the high bits of the elements of words [*word, end) of the bitmap `in`.
 * Stops before a word whose bits would be written past index[limit]. Returns the next k. */
SAR_AVX2 static inline size_t sar_elias_fano_list_high(const unsigned char *in, unsigned low_bits,
                                                       uint64_t *word, uint64_t end, size_t k, size_t limit,
                                                       uint32_t *index)
{
    const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m128i shift = _mm_cvtsi32_si128((int)low_bits);
    for (; *word < end && limit - k >= 64 + SAR_AVX2_LANES; ++*word) {
        uint64_t bits = sar_load_word(in + *word * 8);
        uint32_t base = (uint32_t)*word * 64;
        for (; bits != 0; bits >>= 8, base += 8) {
            __m128i found = _mm_cvtsi64_si128((long long)sar_bits_of_byte[bits & 0xff]);
            __m256i first = _mm256_sub_epi32(_mm256_set1_epi32((int)(base - (uint32_t)k)), lanes);
            __m256i high = _mm256_add_epi32(first, _mm256_cvtepu8_epi32(found));
            _mm256_storeu_si256((__m256i *)(index + k), _mm256_sll_epi32(high, shift));
            k += (size_t)__builtin_popcount((unsigned)bits & 0xff);
        }
    }
    return k;
}

/** Adds the low bits of elements from `from` on, a multiple of eight. `in` has `left` readable bytes. There
 * are 1 to SAR_AVX2_READ_BITS low bits. Returns the first element that it leaves. */
SAR_AVX2 static inline size_t sar_elias_fano_add_low(const unsigned char *in, uint64_t left,
                                                     unsigned low_bits, size_t from, size_t end,
                                                     uint32_t *index)
{
    unsigned char bytes[32];
    uint32_t shifts[SAR_AVX2_LANES];
    unsigned half = 4 * low_bits / 8; /* byte at which the last four begin */
    for (unsigned i = 0; i < SAR_AVX2_LANES; i++) {
        unsigned at = i * low_bits / 8 - (i < 4 ? 0 : half);
        for (unsigned j = 0; j < 4; j++)
            bytes[4 * i + j] = (unsigned char)(at + j);
        shifts[i] = i * low_bits % 8;
    }
    const __m256i places = _mm256_loadu_si256((const __m256i *)bytes),
                  shift = _mm256_loadu_si256((const __m256i *)shifts);
    const __m256i mask = _mm256_set1_epi32((int)((1u << low_bits) - 1));
    size_t i = from;
    for (; end - i >= SAR_AVX2_LANES && i / 8 * low_bits + half + 16 <= left; i += SAR_AVX2_LANES) {
        const unsigned char *at = in + i / 8 * low_bits;
        __m256i low = _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)at)),
                                              _mm_loadu_si128((const __m128i *)(at + half)), 1);
        low = _mm256_and_si256(_mm256_srlv_epi32(_mm256_shuffle_epi8(low, places), shift), mask);
        __m256i high = _mm256_loadu_si256((const __m256i *)(index + i));
        _mm256_storeu_si256((__m256i *)(index + i), _mm256_or_si256(high, low));
    }
    return i;
}

/** Packs the low bits of elements from `from` on, a multiple of eight, into `out`. Writes no byte behind the
 * whole ones of element end - 1, and leaves at least the elements whose bits are there. There are 1 to
 * SAR_AVX2_PACK_BITS low bits. Returns the first element that it leaves. */
SAR_AVX2 static inline size_t sar_elias_fano_pack_low(const uint32_t *index, size_t from, size_t end,
                                                      unsigned low_bits, unsigned char *out)
{
    const __m256i mask = _mm256_set1_epi32((int)((1u << low_bits) - 1));
    const __m128i pair = _mm_cvtsi32_si128((int)(32 - low_bits));
    const __m256i place = _mm256_setr_epi64x(0, 2 * low_bits, 0, 2 * low_bits);
    unsigned odd = 4 * (low_bits % 2), half = low_bits / 2; /* the last four begin in the middle of a byte */
    size_t i = from, bytes = (size_t)((uint64_t)end * low_bits / 8);
    for (; i / 8 * low_bits + half + 8 <= bytes; i += SAR_AVX2_LANES) {
        __m256i low = _mm256_and_si256(_mm256_loadu_si256((const __m256i *)(index + i)), mask);
        /* Each 64 bits hold two elements. Shift the bits of the second to those after the first. */
        __m256i pairs =
            _mm256_or_si256(_mm256_blend_epi32(low, _mm256_setzero_si256(), 0xaa),
                            _mm256_srl_epi64(_mm256_blend_epi32(low, _mm256_setzero_si256(), 0x55), pair));
        pairs = _mm256_sllv_epi64(pairs, place);
        __m256i fours = _mm256_or_si256(pairs, _mm256_unpackhi_epi64(pairs, pairs));
        uint64_t first = (uint64_t)_mm256_extract_epi64(fours, 0),
                 last = (uint64_t)_mm256_extract_epi64(fours, 2);
        unsigned char *at = out + i / 8 * low_bits;
        last = last << odd | (odd != 0 ? first >> (4 * low_bits - 4) : 0);
        sar_store_word(at, first);
        sar_store_word(at + half, last);
    }
    return i;
}

/** Sets the high bits of elements from `from` on. *bits has those of word *at that are set already. Stores
 * the words below the *at that it returns, and none from `limit` on. Ends before eight elements that span
 * more than two words. Returns the first element that it leaves. */
SAR_AVX2 static inline size_t sar_elias_fano_set_high(const uint32_t *index, size_t from, size_t end,
                                                      unsigned low_bits, uint64_t limit, uint64_t *at,
                                                      uint64_t *bits, unsigned char *out)
{
    const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256i one = _mm256_set1_epi64x(1), word = _mm256_set1_epi64x(64);
    const __m128i shift = _mm_cvtsi32_si128((int)low_bits);
    size_t i = from;
    for (; end - i >= SAR_AVX2_LANES && *at < limit; i += SAR_AVX2_LANES) {
        uint32_t base = (uint32_t)(*at * 64 - i), last = (index[i + 7] >> low_bits) - base + 7;
        if (__builtin_expect(last >= 128, 0))
            break;
        __m256i high = _mm256_srl_epi32(_mm256_loadu_si256((const __m256i *)(index + i)), shift);
        high = _mm256_add_epi32(_mm256_sub_epi32(high, _mm256_set1_epi32((int)base)), lanes);
        __m256i a = _mm256_cvtepu32_epi64(_mm256_castsi256_si128(high));
        __m256i b = _mm256_cvtepu32_epi64(_mm256_extracti128_si256(high, 1));
        /* A shift by 64 and more, or by less than 0, gives 0. */
        __m256i first = _mm256_or_si256(_mm256_sllv_epi64(one, a), _mm256_sllv_epi64(one, b));
        __m256i second = _mm256_or_si256(_mm256_sllv_epi64(one, _mm256_sub_epi64(a, word)),
                                         _mm256_sllv_epi64(one, _mm256_sub_epi64(b, word)));
        __m256i both =
            _mm256_or_si256(_mm256_unpacklo_epi64(first, second), _mm256_unpackhi_epi64(first, second));
        __m128i words = _mm_or_si128(_mm256_castsi256_si128(both), _mm256_extracti128_si256(both, 1));
        *bits |= (uint64_t)_mm_cvtsi128_si64(words);
        sar_store_word(out + *at * 8, *bits);
        uint64_t crosses = last / 64; /* 0 or 1; a branch would be mispredicted */
        *bits ^= (*bits ^ (uint64_t)_mm_extract_epi64(words, 1)) & -crosses;
        *at += crosses;
    }
    return i;
}
#endif

#endif
