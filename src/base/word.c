/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/word.h"

SAR_CLONES size_t sar_bitmap_count(const unsigned char *bitmap, uint64_t bytes, uint64_t word, uint64_t end)
{
    uint64_t whole = bytes / 8 < end ? bytes / 8 : end;
    size_t n = 0;
    for (; word < whole; word++)
        n += (size_t)__builtin_popcountll(sar_load_word(bitmap + word * 8));
    if (word < end && word * 8 < bytes)
        n += (size_t)__builtin_popcountll(sar_bitmap_word(bitmap, bytes, word));
    return n;
}
