/* SPDX-License-Identifier: BSD-3-Clause */
/* Where things are in a payload of the format elias_fano. Devices are told by the same text. */

#ifndef SAR_WIRE_ELIAS_FANO_H
#define SAR_WIRE_ELIAS_FANO_H

#include "wire/wire.h"

enum { SAR_MOST_LOW_BITS = 56 /* a slot's low bits lie within eight bytes */ };

/** The values, the low bits of all slots, and the bitmap of the others, one behind the other. */
struct sar_sections {
    unsigned low_bits;          /**< of a slot */
    uint64_t values, low, high; /**< bytes */
};

static inline uint64_t sar_elias_fano_bits(const struct sar_layout *layout, uint64_t nnz, unsigned low)
{
    return sar_plus(sar_times(nnz, low + 1), (layout->span - 1) >> low);
}

/** Of nnz elements, with as many low bits as take the least. */
static inline struct sar_sections sar_elias_fano_sections(const struct sar_layout *layout, uint64_t nnz)
{
    struct sar_sections s = { 0, sar_times(nnz, layout->element_size), 0, 0 };
    if (nnz == 0 || layout->span == 0)
        return s;
    while (s.low_bits < SAR_MOST_LOW_BITS &&
           sar_elias_fano_bits(layout, nnz, s.low_bits + 1) < sar_elias_fano_bits(layout, nnz, s.low_bits))
        s.low_bits++;
    s.low = sar_bitmap_bytes(sar_times(nnz, s.low_bits));
    s.high = sar_bitmap_bytes(sar_plus(nnz, (layout->span - 1) >> s.low_bits));
    return s;
}

#endif
