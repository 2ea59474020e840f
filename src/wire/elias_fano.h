/* SPDX-License-Identifier: BSD-3-Clause */
/* Sections of a payload of the format elias_fano. The host and CUDA compile this text. */

#ifndef SAR_WIRE_ELIAS_FANO_H
#define SAR_WIRE_ELIAS_FANO_H

#include "wire/wire.h"

/** Most low bits of a slot, so that they lie within eight bytes at any bit offset. */
enum { SAR_LOW_BITS_MAX = 56 };

/** Sizes of the sections, in the order of the payload: values, low bits of all slots, bitmap of the high
 * bits. */
struct sar_elias_fano_sizes {
    unsigned low_bits;          /**< low bits of a slot */
    uint64_t values, low, high; /**< bytes */
};

/** Returns the bits of nnz slots with `low` low bits each. */
static inline uint64_t sar_elias_fano_bits(const struct sar_wire_layout *layout, uint64_t nnz, unsigned low)
{
    return sar_add_saturate(sar_mul_saturate(nnz, low + 1), (layout->slots - 1) >> low);
}

/** Returns the sizes for nnz elements, with the number of low bits that makes them least. */
static inline struct sar_elias_fano_sizes sar_elias_fano_sizes_make(const struct sar_wire_layout *layout,
                                                                    uint64_t nnz)
{
    struct sar_elias_fano_sizes s = { 0, sar_mul_saturate(nnz, layout->element_size), 0, 0 };
    if (nnz == 0 || layout->slots == 0)
        return s;
    while (s.low_bits < SAR_LOW_BITS_MAX &&
           sar_elias_fano_bits(layout, nnz, s.low_bits + 1) < sar_elias_fano_bits(layout, nnz, s.low_bits))
        s.low_bits++;
    s.low = sar_bitmap_bytes(sar_mul_saturate(nnz, s.low_bits));
    s.high = sar_bitmap_bytes(sar_add_saturate(nnz, (layout->slots - 1) >> s.low_bits));
    return s;
}

#endif
