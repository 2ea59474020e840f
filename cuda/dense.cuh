/* SPDX-License-Identifier: BSD-3-Clause */
/* Functors of the kernels in dense.cu. An element is a row of words: the widest words that divide its size
 * and that the arrays are aligned to. */

#ifndef SAR_CUDA_DENSE_CUH
#define SAR_CUDA_DENSE_CUH

#include "cuda/bits.cuh"
#include "hash/partition_map.h"

/** Four words, for one load. */
template <class Word> struct alignas(sizeof(Word) < 4 ? 4 * sizeof(Word) : 16) sar_quad {
    Word at[4];
};

/** Four bits: bit j is set if word 4 q + j of an array is not 0. Host twin: vector/dense.c. */
template <class Word> struct sar_nonzero_words_functor {
    const Word *buf;
    size_t n;
    bool aligned; /* buf is aligned to a quad */

    SAR_HOST_DEVICE unsigned operator()(size_t q) const
    {
        unsigned nonzero = 0;
        if (aligned && 4 * q + 4 <= n) {
            sar_quad<Word> quad = ((const sar_quad<Word> *)buf)[q];
            for (unsigned j = 0; j < 4; j++)
                nonzero |= (unsigned)(quad.at[j] != 0) << j;
            return nonzero;
        }
        for (unsigned j = 0; j < 4 && 4 * q + j < n; j++)
            nonzero |= (unsigned)(buf[4 * q + j] != 0) << j;
        return nonzero;
    }
};

/** Four bits: bit j is set if row 4 q + j has a word that is not 0. Host twin: vector/dense.c. */
struct sar_nonzero_rows_functor {
    const uint32_t *bits; /* one bit for each word */
    size_t words;         /* of a row */
    size_t count;         /* rows */

    SAR_HOST_DEVICE bool any(size_t from, size_t to) const
    {
        size_t first = from / SAR_WORD_BITS, last = (to - 1) / SAR_WORD_BITS;
        uint32_t nonzero = 0;
        for (size_t w = first; w <= last; w++) {
            uint32_t word = bits[w];
            word &= w == first ? ~(uint32_t)0 << from % SAR_WORD_BITS : ~(uint32_t)0;
            word &= w == last ? ~(uint32_t)0 >> (SAR_WORD_BITS - 1 - (to - 1) % SAR_WORD_BITS) : ~(uint32_t)0;
            nonzero |= word;
        }
        return nonzero != 0;
    }

    SAR_HOST_DEVICE unsigned operator()(size_t q) const
    {
        unsigned nonzero = 0;
        for (unsigned j = 0; j < 4 && 4 * q + j < count; j++)
            nonzero |= (unsigned)any((4 * q + j) * words, (4 * q + j + 1) * words) << j;
        return nonzero;
    }
};

/** Copies word i of the elements listed by index. Host twin: vector/dense.c. */
template <class Word, class Index> struct sar_pick_values_functor {
    const Index *index;
    const Word *buf;
    Word *value;
    size_t words;

    SAR_HOST_DEVICE void operator()(size_t i) const
    {
        size_t element = words == 1 ? i : sar_divide(i, words);
        value[i] = buf[(size_t)index[element] * words + (i - element * words)];
    }
};

/** Copies word i of the elements to their indices. Host twin: vector/dense.c. */
template <class Word, class Index> struct sar_scatter_values_functor {
    const Index *index;
    const Word *value;
    Word *buf;
    size_t words;

    SAR_HOST_DEVICE void operator()(size_t i) const
    {
        size_t element = words == 1 ? i : sar_divide(i, words);
        buf[(size_t)index[element] * words + (i - element * words)] = value[i];
    }
};

/** A bitmap in the order of segments, then parts, then slots. A cell is one part of one segment; each cell
 * begins at a word. */
struct sar_partition_cells {
    struct sar_partition_map map;
    uint64_t part_slots; /* slots of a cell, a multiple of SAR_WORD_BITS */

    SAR_HOST_DEVICE size_t cell_of(size_t word) const
    {
        return sar_divide(word, (size_t)(part_slots / SAR_WORD_BITS));
    }

    /** The slot, within its cell, of a word's bit 0. */
    SAR_HOST_DEVICE uint64_t slot_of(size_t word) const
    {
        return (uint64_t)word * SAR_WORD_BITS - cell_of(word) * part_slots;
    }

    /** The cell of an element, in `part`, and its slot within the cell. part_slots 0: one segment. */
    SAR_HOST_DEVICE struct sar_slot locate(uint64_t index) const
    {
        struct sar_slot at = sar_partition_map_locate(&map, index);
        uint64_t segment = part_slots == 0 ? 0 : sar_divide((size_t)at.slot, (size_t)part_slots);
        at.part += (uint32_t)segment * map.parts;
        at.slot -= segment * part_slots;
        return at;
    }

    /** The index of the element at a slot of a cell, or map.count if there is none. */
    SAR_HOST_DEVICE uint64_t element_at(size_t cell, uint64_t slot) const
    {
        uint64_t segment = sar_divide(cell, map.parts), map_slot = segment * part_slots + slot;
        uint64_t index = map_slot < map.slots_max
                             ? sar_partition_map_index(&map, (uint32_t)(cell - segment * map.parts), map_slot)
                             : map.count;
        return index < map.count ? index : map.count;
    }
};

/** Four bits for slots 4 q … 4 q + 3, from the bitmap of elements. Host twin:
 * vector/partition_split.c. */
struct sar_slot_marks_functor {
    sar_partition_cells cells;
    const uint32_t *bits;

    SAR_HOST_DEVICE unsigned bits_of(uint64_t index, unsigned mask) const
    {
        return index < cells.map.count ? bits[index / SAR_WORD_BITS] >> index % SAR_WORD_BITS & mask : 0;
    }

    /* With a grain of 4 or more, four such slots are four neighbouring elements. */
    SAR_HOST_DEVICE unsigned operator()(size_t q) const
    {
        size_t word = q * 4 / SAR_WORD_BITS, cell = cells.cell_of(word);
        uint64_t slot = cells.slot_of(word) + q * 4 % SAR_WORD_BITS;
        unsigned nonzero = 0;
        if (cells.map.grain_shift >= 2)
            return bits_of(cells.element_at(cell, slot), 15);
        for (unsigned j = 0; j < 4; j++)
            nonzero |= bits_of(cells.element_at(cell, slot + j), 1) << j;
        return nonzero;
    }
};

/** Word w of the bitmap of slots. With a grain of 32 or more it is one word of the bitmap of elements. */
struct sar_slot_word_functor {
    sar_partition_cells cells;
    const uint32_t *bits;
    uint32_t *slot_bits;

    SAR_HOST_DEVICE void operator()(size_t w) const
    {
        uint64_t index = cells.element_at(cells.cell_of(w), cells.slot_of(w));
        slot_bits[w] = index < cells.map.count ? bits[index / SAR_WORD_BITS] : 0;
    }
};

/** Lists the slots and indices of the bits in word w, and the first element of each cell. Host twin:
 * vector/partition_split.c. */
template <class Index> struct sar_list_slots_functor {
    sar_partition_cells cells;
    const uint32_t *bits;
    uint32_t *slot;
    Index *index;
    unsigned long long *first;

    SAR_HOST_DEVICE void operator()(size_t w, unsigned long long rank) const
    {
        size_t cell = cells.cell_of(w);
        uint64_t base = cells.slot_of(w);
        if (base == 0)
            first[cell] = rank;
        for (uint32_t rest = bits[w]; rest != 0; rest &= rest - 1, rank++) {
            uint64_t at = base + sar_bits_lowest(rest);
            slot[rank] = (uint32_t)at;
            index[rank] = (Index)cells.element_at(cell, at);
        }
    }
};

/* A vector is written to a struct sar_packed_vec in pinned host memory, and read from one. The number of
 * elements is known only when the kernels run, so a fixed number of threads share the arrays. Neighbouring
 * threads access neighbouring words: only needed cache lines cross the bus, and each of them whole. */
enum { SAR_COPY_THREADS = 1 << 18 }; /* enough to keep the bus busy */

/** Copy one thread's share of n words; with from NULL, write zeros. */
template <class Word>
SAR_HOST_DEVICE static inline void sar_copy_strided(Word *to, const Word *from, size_t n, size_t thread,
                                                    size_t threads)
{
    bool aligned = ((uintptr_t)to | (uintptr_t)from) % alignof(sar_quad<Word>) == 0;
    size_t quads = aligned ? n / 4 : 0;
    for (size_t q = thread; q < quads; q += threads)
        ((sar_quad<Word> *)to)[q] = from == NULL ? sar_quad<Word>{} : ((const sar_quad<Word> *)from)[q];
    for (size_t i = 4 * quads + thread; i < n; i += threads)
        to[i] = from == NULL ? (Word)0 : from[i];
}

/** A packed vector whose number of elements is in device memory. */
template <class Word, class Index> struct sar_packed_view {
    Word *value;
    Index *index;
    unsigned long long capacity;
    const unsigned long long *nnz;
    size_t count;   /* elements of the vector */
    size_t words;   /* of an element */
    size_t threads; /* of the kernel */

    SAR_HOST_DEVICE bool is_dense() const
    {
        return *nnz > capacity;
    }

    /** Words of all elements. */
    SAR_HOST_DEVICE size_t n() const
    {
        return (size_t)*nnz * words;
    }

    /** The position in the vector of word i of the elements, from the elements' indices. */
    SAR_HOST_DEVICE size_t offset(const Index *at, size_t i) const
    {
        size_t element = words == 1 ? i : sar_divide(i, words);
        return (size_t)at[element] * words + (i - element * words);
    }
};

/** Writes the elements, or the dense vector if they exceed the capacity. Host twin: sar_packed_vec_fill in
 * vector/packed_vec.c. */
template <class Word, class Index> struct sar_pack_functor {
    sar_packed_view<Word, Index> to;
    const Word *buf;
    const Index *index; /* of the elements; complete unless they exceed the capacity */

    SAR_HOST_DEVICE void operator()(size_t thread) const
    {
        if (to.is_dense()) {
            sar_copy_strided(to.value, buf, to.count * to.words, thread, to.threads);
            return;
        }
        for (size_t i = thread; i < to.n(); i += to.threads)
            to.value[i] = buf[to.offset(index, i)];
        sar_copy_strided(to.index, index, (size_t)*to.nnz, thread, to.threads);
    }
};

/** Writes the dense vector, or zeros if the packed vector is sparse. */
template <class Word, class Index> struct sar_unpack_dense_functor {
    sar_packed_view<Word, Index> from;
    Word *buf;

    SAR_HOST_DEVICE void operator()(size_t thread) const
    {
        const Word *source = from.is_dense() ? from.value : NULL;
        sar_copy_strided(buf, source, from.count * from.words, thread, from.threads);
    }
};

/** Writes the elements over the zeros. Host twin: vector/dense.c. */
template <class Word, class Index> struct sar_unpack_elements_functor {
    sar_packed_view<Word, Index> from;
    Word *buf;

    SAR_HOST_DEVICE void operator()(size_t thread) const
    {
        if (from.is_dense())
            return;
        for (size_t i = thread; i < from.n(); i += from.threads)
            buf[from.offset(from.index, i)] = from.value[i];
    }
};

#endif
