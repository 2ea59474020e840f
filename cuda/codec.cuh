/* SPDX-License-Identifier: BSD-3-Clause */
/* Functors of the kernels in codec.cu, bitmap.cu and elias_fano.cu. A payload may be corrupt: a decoder
 * writes nothing outside the index array, and sets a flag. */

#ifndef SAR_CUDA_CODEC_CUH
#define SAR_CUDA_CODEC_CUH

#include "cuda/bits.cuh"
#include "hash/partition_map.h"

/** The bitmap of a payload: one bit for each of nnz elements, whose indices must be below slots. */
struct sar_encoded_bits {
    const uint32_t *bits;
    size_t words;
    unsigned long long nnz;
    uint64_t slots;
    uint32_t *corrupt;

    /** index, or 0 and the flag set if the index is out of range. */
    SAR_HOST_DEVICE uint64_t checked(uint64_t index) const
    {
        if (index < slots)
            return index;
        sar_flag_set(corrupt);
        return 0;
    }

    /** Set the flag at the last word unless the bitmap has nnz bits; rank is the number of bits before word
     * w. */
    SAR_HOST_DEVICE void count(size_t w, unsigned long long rank) const
    {
        if (w + 1 == words && rank + sar_bits_popcount(bits[w]) != nnz)
            sar_flag_set(corrupt);
    }
};

/** Lists the bits of word w of a bitmap of slots as indices. Host twin: sar_bitmap_decode. */
template <class Index> struct sar_decode_slots_functor {
    sar_encoded_bits coded;
    Index *index;

    SAR_HOST_DEVICE void operator()(size_t w, unsigned long long rank) const
    {
        coded.count(w, rank);
        for (uint32_t rest = coded.bits[w]; rest != 0 && rank < coded.nnz; rest &= rest - 1, rank++)
            index[rank] = (Index)coded.checked((uint64_t)w * SAR_WORD_BITS + sar_bits_lowest(rest));
    }
};

/** An array of numbers of `length` bits, at most 56, without gaps. Two words behind the array must be
 * readable. Host twin: wire/elias_fano.c. */
struct sar_packed_bits {
    uint32_t *word;
    unsigned length;

    SAR_HOST_DEVICE uint64_t mask() const
    {
        return ((uint64_t)1 << length) - 1;
    }

    SAR_HOST_DEVICE uint64_t get(uint64_t i) const
    {
        uint64_t at = i * length;
        const uint32_t *from = word + at / SAR_WORD_BITS;
        unsigned skip = at % SAR_WORD_BITS;
        uint64_t bits = (from[0] | (uint64_t)from[1] << SAR_WORD_BITS) >> skip;
        if (skip + length > 2 * SAR_WORD_BITS)
            bits |= (uint64_t)from[2] << (2 * SAR_WORD_BITS - skip);
        return bits & mask();
    }

    /** Write number i; its bits must be 0 before. */
    SAR_HOST_DEVICE void put(uint64_t i, uint64_t number) const
    {
        uint64_t at = i * length, rest = number & mask();
        unsigned skip = at % SAR_WORD_BITS;
        sar_bits_or(&word[at / SAR_WORD_BITS], (uint32_t)(rest << skip));
        for (rest >>= SAR_WORD_BITS - skip, at += SAR_WORD_BITS - skip; rest != 0;
             rest >>= SAR_WORD_BITS, at += SAR_WORD_BITS)
            sar_bits_or(&word[at / SAR_WORD_BITS], (uint32_t)rest);
    }
};

/** Writes the high bit and the low bits of element i. Host twin: wire/elias_fano.c. */
template <class Index> struct sar_ef_encode_functor {
    const Index *index;
    sar_packed_bits low;
    uint32_t *high;

    SAR_HOST_DEVICE void operator()(size_t i) const
    {
        uint64_t at = index[i];
        sar_bits_set(high, (at >> low.length) + i);
        if (low.length != 0)
            low.put(i, at);
    }
};

/** Decodes the elements whose high bits are in word w. Host twin: wire/elias_fano.c. */
template <class Index> struct sar_ef_decode_functor {
    sar_encoded_bits coded;
    sar_packed_bits low;
    Index *index;

    SAR_HOST_DEVICE void operator()(size_t w, unsigned long long rank) const
    {
        coded.count(w, rank);
        for (uint32_t rest = coded.bits[w]; rest != 0 && rank < coded.nnz; rest &= rest - 1, rank++) {
            uint64_t high = (uint64_t)w * SAR_WORD_BITS + sar_bits_lowest(rest) - rank;
            uint64_t at = high << low.length | (low.length == 0 ? 0 : low.get(rank));
            index[rank] = (Index)coded.checked(at);
        }
    }
};

/** Copies index i of a payload, or writes 0 and sets the flag if it is out of range. */
template <class Index> struct sar_decode_indices_functor {
    const Index *from;
    uint64_t slots;
    Index *to;
    uint32_t *corrupt;

    SAR_HOST_DEVICE void operator()(size_t i) const
    {
        bool valid = from[i] < slots;
        to[i] = valid ? from[i] : 0;
        if (!valid)
            sar_flag_set(corrupt);
    }
};

/** Sets the flag unless index i is above index i - 1. Host twin: sar_indices_are_sorted. */
template <class Index> struct sar_is_sorted_functor {
    const Index *index;
    uint32_t *corrupt;

    SAR_HOST_DEVICE void operator()(size_t i) const
    {
        if (i > 0 && index[i] <= index[i - 1])
            sar_flag_set(corrupt);
    }
};

/** Sets the flag if value i is -0.0. Host twin: sar_dense_has_negative_zero. */
template <class Bits> struct sar_find_minus_zero_functor {
    const Bits *value;
    uint32_t *found;

    SAR_HOST_DEVICE void operator()(size_t i) const
    {
        if (value[i] == (Bits)1 << (8 * sizeof(Bits) - 1))
            sar_flag_set(found);
    }
};

/** Converts slot i of a part to an index. Host twin: sar_partition_restore_indices. */
template <class Index> struct sar_slots_to_indices_functor {
    struct sar_partition_map map;
    uint32_t part;
    const uint32_t *slot;
    Index *index;

    SAR_HOST_DEVICE void operator()(size_t i) const
    {
        index[i] = (Index)sar_partition_map_index(&map, part, slot[i]);
    }
};

#endif
