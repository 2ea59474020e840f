/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions on indices and bitmaps that several formats share. The first bit of a byte is the lowest bit. */

#ifndef SAR_WIRE_INDEX_UTIL_H
#define SAR_WIRE_INDEX_UTIL_H

#include <string.h>

#include "base/word.h"
#include "wire/wire.h"

/** True if n indices ascend strictly and are below layout->slots. */
bool sar_indices_are_sorted(const struct sar_wire_layout *layout, const void *index, size_t n);

/** Returns the number of blocks of 2^shift slots that hold elements of vec. */
uint64_t sar_indices_count_blocks(const struct sar_wire_layout *layout, const struct sar_spvec *vec,
                                  unsigned shift);

/** Extracts the elements present among `slots` values: those with a bit set in `presence`, or, if presence is
 * NULL, in their value. On entry vec->nnz is the number announced. With presence there must be as many
 * elements; if all are present, vec->value points to `values`. Without presence there may be fewer, since
 * sums may be zero. Returns SAR_CORRUPT otherwise. */
enum sar_status sar_indices_extract(const struct sar_wire_layout *layout, unsigned char *values,
                                    const unsigned char *presence, uint64_t slots, struct sar_arena *arena,
                                    struct sar_spvec *vec);

/** Stores a word of a bitmap of `bytes` bytes, up to the end. */
SAR_INLINE void sar_bitmap_set_word(unsigned char *bitmap, uint64_t bytes, uint64_t word, uint64_t bits)
{
    uint64_t at = word * 8;
    if (bytes - at >= 8)
        sar_store_word(bitmap + at, bits);
    else
        sar_store_partial_word(bitmap + at, bytes - at, bits);
}

#endif
