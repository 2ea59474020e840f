/* SPDX-License-Identifier: BSD-3-Clause */
/* What each thread of the kernels in codec.cu, bitmap.cu and elias_fano.cu does. Payloads that are decoded
 * cannot be trusted: whatever they hold, nothing is written but the indices that there is room for. */

#ifndef SAR_CUDA_CODEC_CUH
#define SAR_CUDA_CODEC_CUH

#include "cuda/bits.cuh"
#include "hash/map.h"

/** A bitmap with a bit for each of nnz elements, and what their indices are to be below. */
struct sar_coded {
    const uint32_t *bits;
    size_t words;
    unsigned long long nnz;
    uint64_t span;
    uint32_t *corrupt;

    /** An index, or 0 if it is none. */
    SAR_HOST_DEVICE uint64_t checked(uint64_t index) const
    {
        if (index < span)
            return index;
        sar_tell(corrupt);
        return 0;
    }

    /** Look whether there are nnz bits, at word w and the number of those before it. */
    SAR_HOST_DEVICE void count(size_t w, unsigned long long place) const
    {
        if (w + 1 == words && place + sar_ones(bits[w]) != nnz)
            sar_tell(corrupt);
    }
};

/** For each word of a bitmap of slots, with the number of bits before it: its bits as indices. Host twin:
 * sar_bitmap_decode. */
template <class Index> struct sar_slots_body {
    sar_coded coded;
    Index *index;

    SAR_HOST_DEVICE void operator()(size_t w, unsigned long long place) const
    {
        coded.count(w, place);
        for (uint32_t rest = coded.bits[w]; rest != 0 && place < coded.nnz; rest &= rest - 1, place++)
            index[place] = (Index)coded.checked((uint64_t)w * SAR_WORD + sar_lowest(rest));
    }
};

/** Numbers of a few bits each, up to 56, one behind the other in words of which two more can be read. Host
 * twins: pack_low and add_low in wire/elias_fano.c. */
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
        const uint32_t *from = word + at / SAR_WORD;
        unsigned skip = at % SAR_WORD;
        uint64_t bits = (from[0] | (uint64_t)from[1] << SAR_WORD) >> skip;
        if (skip + length > 2 * SAR_WORD)
            bits |= (uint64_t)from[2] << (2 * SAR_WORD - skip);
        return bits & mask();
    }

    /** Of words that were 0. */
    SAR_HOST_DEVICE void put(uint64_t i, uint64_t number) const
    {
        uint64_t at = i * length, rest = number & mask();
        unsigned skip = at % SAR_WORD;
        sar_word_set(&word[at / SAR_WORD], (uint32_t)(rest << skip));
        for (rest >>= SAR_WORD - skip, at += SAR_WORD - skip; rest != 0; rest >>= SAR_WORD, at += SAR_WORD)
            sar_word_set(&word[at / SAR_WORD], (uint32_t)rest);
    }
};

/** The bit and the low bits of element i. Host twins: mark_high, pack_low. */
template <class Index> struct sar_unary_body {
    const Index *index;
    sar_packed_bits low;
    uint32_t *high;

    SAR_HOST_DEVICE void operator()(size_t i) const
    {
        uint64_t at = index[i];
        sar_bit_set(high, (at >> low.length) + i);
        if (low.length != 0)
            low.put(i, at);
    }
};

/** For each word of the high bits, with the number of bits before it: its elements' indices. Host twins:
 * list_high, add_low. */
template <class Index> struct sar_sum_body {
    sar_coded coded;
    sar_packed_bits low;
    Index *index;

    SAR_HOST_DEVICE void operator()(size_t w, unsigned long long place) const
    {
        coded.count(w, place);
        for (uint32_t rest = coded.bits[w]; rest != 0 && place < coded.nnz; rest &= rest - 1, place++) {
            uint64_t high = (uint64_t)w * SAR_WORD + sar_lowest(rest) - place;
            uint64_t at = high << low.length | (low.length == 0 ? 0 : low.get(place));
            index[place] = (Index)coded.checked(at);
        }
    }
};

/** Index i of a payload, or 0 if it is none. */
template <class Index> struct sar_check_body {
    const Index *from;
    uint64_t span;
    Index *to;
    uint32_t *corrupt;

    SAR_HOST_DEVICE void operator()(size_t i) const
    {
        bool good = from[i] < span;
        to[i] = good ? from[i] : 0;
        if (!good)
            sar_tell(corrupt);
    }
};

/** Whether index i is above the one before it. Host twin: sar_indices_ascend. */
template <class Index> struct sar_ascent_body {
    const Index *index;
    uint32_t *corrupt;

    SAR_HOST_DEVICE void operator()(size_t i) const
    {
        if (i > 0 && index[i] <= index[i - 1])
            sar_tell(corrupt);
    }
};

/** Whether value i is -0.0. Host twin: sar_has_negative_zero. */
template <class Bits> struct sar_minus_zero_body {
    const Bits *value;
    uint32_t *found;

    SAR_HOST_DEVICE void operator()(size_t i) const
    {
        if (value[i] == (Bits)1 << (8 * sizeof(Bits) - 1))
            sar_tell(found);
    }
};

/** Slot i of a part as an index. Host twin: sar_unpartition. */
template <class Index> struct sar_unsplit_body {
    struct sar_map map;
    uint32_t part;
    const uint32_t *slot;
    Index *index;

    SAR_HOST_DEVICE void operator()(size_t i) const
    {
        index[i] = (Index)sar_map_index(&map, part, slot[i]);
    }
};

#endif
