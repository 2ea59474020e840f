/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_WIRE_INDICES_H
#define SAR_WIRE_INDICES_H

#include <string.h>

#include "wire/wire.h"

/** What formats have in common: bits in bytes, the first bit of each byte the lowest one. */

/** Whether n indices ascend below a layout's span. */
bool sar_indices_ascend(const struct sar_layout *layout, const void *index, size_t n);

/** Of the stretches of 2^shift slots that a part has, how many hold elements of an ascending run. */
uint64_t sar_indices_stretches(const struct sar_layout *layout, const struct sar_run *run, unsigned shift);

/** Take the elements that are present out of `slots` slots with a value each, as dense messages and
 * blocks have them: those with a bit set in `presence` or, where that is NULL, in the value. run->nnz is
 * what was announced; with presence there must be so many, without it fewer may be there, where the sum
 * of some was zero.
 * @return SAR_CORRUPT when there are more */
enum sar_status sar_pick(const struct sar_layout *layout, const unsigned char *values,
                         const unsigned char *presence, uint64_t slots, struct sar_arena *arena,
                         struct sar_run *run);

/** Eight bytes as a word, the first one lowest whatever the machine's order. */
SAR_INLINE uint64_t sar_load_word(const unsigned char *bytes)
{
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

SAR_INLINE void sar_store_word(unsigned char *bytes, uint64_t word)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    memcpy(bytes, &word, sizeof word);
}

/** The same where fewer than eight bytes are left, the others being zero. */
SAR_INLINE uint64_t sar_load_rest(const unsigned char *bytes, uint64_t left)
{
    uint64_t word = 0;
    for (uint64_t i = 0; i < left && i < 8; i++)
        word |= (uint64_t)bytes[i] << (8 * i);
    return word;
}

SAR_INLINE void sar_store_rest(unsigned char *bytes, uint64_t left, uint64_t word)
{
    for (uint64_t i = 0; i < left && i < 8; i++)
        bytes[i] = (unsigned char)(word >> (8 * i));
}

/** A word of a bitmap of so many bytes, bits behind its end being zero. */
SAR_INLINE uint64_t sar_bitmap_word(const unsigned char *bitmap, uint64_t bytes, uint64_t word)
{
    uint64_t at = word * 8;
    return bytes - at >= 8 ? sar_load_word(bitmap + at) : sar_load_rest(bitmap + at, bytes - at);
}

SAR_INLINE void sar_bitmap_set_word(unsigned char *bitmap, uint64_t bytes, uint64_t word, uint64_t bits)
{
    uint64_t at = word * 8;
    if (bytes - at >= 8)
        sar_store_word(bitmap + at, bits);
    else
        sar_store_rest(bitmap + at, bytes - at, bits);
}

#endif
