/* SPDX-License-Identifier: BSD-3-Clause */
/* Words of 64 bits in bytes, in little-endian order on any machine. */

#ifndef SAR_BASE_WORD_H
#define SAR_BASE_WORD_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/compiler.h"

/** Loads eight bytes as a word, in little-endian order on any machine. */
SAR_INLINE uint64_t sar_load_word(const unsigned char *bytes)
{
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

/** Stores a word as eight bytes, in little-endian order on any machine. */
SAR_INLINE void sar_store_word(unsigned char *bytes, uint64_t word)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    memcpy(bytes, &word, sizeof word);
}

/** As sar_load_word, with zeros in place of bytes past `left`. */
SAR_INLINE uint64_t sar_load_partial_word(const unsigned char *bytes, uint64_t left)
{
    uint64_t word = 0;
    for (uint64_t i = 0; i < left && i < 8; i++)
        word |= (uint64_t)bytes[i] << (8 * i);
    return word;
}

/** Stores the first `left` bytes of a word, at most eight. */
SAR_INLINE void sar_store_partial_word(unsigned char *bytes, uint64_t left, uint64_t word)
{
    for (uint64_t i = 0; i < left && i < 8; i++)
        bytes[i] = (unsigned char)(word >> (8 * i));
}

/** Returns a word of a bitmap of `bytes` bytes, with zeros past the end. */
SAR_INLINE uint64_t sar_bitmap_word(const unsigned char *bitmap, uint64_t bytes, uint64_t word)
{
    uint64_t at = word * 8;
    return bytes - at >= 8 ? sar_load_word(bitmap + at) : sar_load_partial_word(bitmap + at, bytes - at);
}

/** Returns the number of bits set in words [word, end) of a bitmap of `bytes` bytes. Words past the end have
 * none. */
size_t sar_bitmap_count(const unsigned char *bitmap, uint64_t bytes, uint64_t word, uint64_t end);

#endif
