/* SPDX-License-Identifier: BSD-3-Clause */
/* What each thread of the kernels in dense.cu does. Elements are rows of words, the widest that they are made
 * of and arrays are aligned to. */

#ifndef SAR_CUDA_DENSE_CUH
#define SAR_CUDA_DENSE_CUH

#include "cuda/bits.cuh"
#include "hash/map.h"

/** Four words that are loaded at once. */
template <class Word> struct alignas(sizeof(Word) < 4 ? 4 * sizeof(Word) : 16) sar_quad {
    Word at[4];
};

/** Which of words 4 q … 4 q + 3 of an array are not 0. Host twin: scan in tensor/dense.c. */
template <class Word> struct sar_word_quad {
    const Word *buf;
    size_t n;
    bool aligned; /* to a quad */

    SAR_HOST_DEVICE unsigned operator()(size_t q) const
    {
        unsigned found = 0;
        if (aligned && 4 * q + 4 <= n) {
            sar_quad<Word> quad = ((const sar_quad<Word> *)buf)[q];
            for (unsigned j = 0; j < 4; j++)
                found |= (unsigned)(quad.at[j] != 0) << j;
            return found;
        }
        for (unsigned j = 0; j < 4 && 4 * q + j < n; j++)
            found |= (unsigned)(buf[4 * q + j] != 0) << j;
        return found;
    }
};

/** Which of rows 4 q … 4 q + 3 have a word that is not 0. Host twin: row_counts. */
struct sar_row_quad {
    const uint32_t *bits; /* of the words */
    size_t words, count;

    SAR_HOST_DEVICE bool any(size_t from, size_t to) const
    {
        size_t first = from / SAR_WORD, last = (to - 1) / SAR_WORD;
        uint32_t found = 0;
        for (size_t w = first; w <= last; w++) {
            uint32_t word = bits[w];
            word &= w == first ? ~(uint32_t)0 << from % SAR_WORD : ~(uint32_t)0;
            word &= w == last ? ~(uint32_t)0 >> (SAR_WORD - 1 - (to - 1) % SAR_WORD) : ~(uint32_t)0;
            found |= word;
        }
        return found != 0;
    }

    SAR_HOST_DEVICE unsigned operator()(size_t q) const
    {
        unsigned found = 0;
        for (unsigned j = 0; j < 4 && 4 * q + j < count; j++)
            found |= (unsigned)any((4 * q + j) * words, (4 * q + j + 1) * words) << j;
        return found;
    }
};

/** Word i of elements that are picked. Host twin: scan. */
template <class Word, class Index> struct sar_pick_body {
    const Index *index;
    const Word *buf;
    Word *value;
    size_t words;

    SAR_HOST_DEVICE void operator()(size_t i) const
    {
        size_t element = words == 1 ? i : sar_quotient(i, words);
        value[i] = buf[(size_t)index[element] * words + (i - element * words)];
    }
};

/** Likewise. Host twin: scatter. */
template <class Word, class Index> struct sar_scatter_body {
    const Index *index;
    const Word *value;
    Word *buf;
    size_t words;

    SAR_HOST_DEVICE void operator()(size_t i) const
    {
        size_t element = words == 1 ? i : sar_quotient(i, words);
        buf[(size_t)index[element] * words + (i - element * words)] = value[i];
    }
};

/** Where the words of a bitmap in the order of segments, their parts, and slots are: each part of a segment
 * begins with a word. */
struct sar_cells {
    struct sar_map map;
    uint64_t width; /* slots of a cell, a multiple of SAR_WORD */

    SAR_HOST_DEVICE size_t cell_of(size_t word) const
    {
        return sar_quotient(word, (size_t)(width / SAR_WORD));
    }

    /** Bit 0 of a word as a slot of its cell. */
    SAR_HOST_DEVICE uint64_t slot_of(size_t word) const
    {
        return (uint64_t)word * SAR_WORD - cell_of(word) * width;
    }

    /** The element at a slot of a cell, or map.count where there is none. */
    SAR_HOST_DEVICE uint64_t element_at(size_t cell, uint64_t slot) const
    {
        uint64_t segment = sar_quotient(cell, map.parts), whole = segment * width + slot;
        uint64_t index =
            whole < map.span ? sar_map_index(&map, (uint32_t)(cell - segment * map.parts), whole) : map.count;
        return index < map.count ? index : map.count;
    }
};

/** The marks of four slots that follow each other, from those of elements. Host twin: locate_body in
 * tensor/partition.c. */
struct sar_slot_quad {
    sar_cells cells;
    const uint32_t *bits;

    SAR_HOST_DEVICE unsigned mark_of(uint64_t index, unsigned mask) const
    {
        return index < cells.map.count ? bits[index / SAR_WORD] >> index % SAR_WORD & mask : 0;
    }

    /* Blocks of four or more have quads of slots that are quads of elements. */
    SAR_HOST_DEVICE unsigned operator()(size_t q) const
    {
        size_t word = q * 4 / SAR_WORD, cell = cells.cell_of(word);
        uint64_t slot = cells.slot_of(word) + q * 4 % SAR_WORD;
        unsigned found = 0;
        if (cells.map.grain_shift >= 2)
            return mark_of(cells.element_at(cell, slot), 15);
        for (unsigned j = 0; j < 4; j++)
            found |= mark_of(cells.element_at(cell, slot + j), 1) << j;
        return found;
    }
};

/** The same of a whole word, which blocks of 32 elements or more have in one piece. */
struct sar_slot_word {
    sar_cells cells;
    const uint32_t *bits;
    uint32_t *ordered;

    SAR_HOST_DEVICE void operator()(size_t w) const
    {
        uint64_t index = cells.element_at(cells.cell_of(w), cells.slot_of(w));
        ordered[w] = index < cells.map.count ? bits[index / SAR_WORD] : 0;
    }
};

/** For each word of that bitmap: its elements' slots and indices, and where each cell begins. Host twin:
 * move_body. */
template <class Index> struct sar_slot_body {
    sar_cells cells;
    const uint32_t *bits;
    uint32_t *slot;
    Index *index;
    unsigned long long *first;

    SAR_HOST_DEVICE void operator()(size_t w, unsigned long long place) const
    {
        size_t cell = cells.cell_of(w);
        uint64_t base = cells.slot_of(w);
        if (base == 0)
            first[cell] = place;
        for (uint32_t rest = bits[w]; rest != 0; rest &= rest - 1, place++) {
            uint64_t at = base + sar_lowest(rest);
            slot[place] = (uint32_t)at;
            index[place] = (Index)cells.element_at(cell, at);
        }
    }
};

#endif
