/* SPDX-License-Identifier: BSD-3-Clause */
/* Functors of the kernels in hierarchical.cu. Host twin: hash/hierarchical.c. */

#ifndef SAR_CUDA_HIERARCHICAL_CUH
#define SAR_CUDA_HIERARCHICAL_CUH

#include "cuda/bits.cuh"
#include "hash/hierarchical.h"

/** Inserts occurrence i. */
struct sar_hash_insert_functor {
    struct sar_hash_memory memory;
    struct sar_partition_map map;
    struct sar_hash_input input;

    SAR_HOST_DEVICE void operator()(size_t i) const
    {
        sar_hash_insert(&memory, &map, &input, i);
    }
};

/** Counts occurrence i in its part. */
struct sar_hash_count_functor {
    struct sar_partition_map map;
    struct sar_hash_input input;
    unsigned long long *counts;

    SAR_HOST_DEVICE void operator()(size_t i) const
    {
        sar_hash_count(&map, &input, i, counts);
    }
};

/** True if a cell holds an occurrence. */
struct sar_hash_cell_used {
    template <class Mark> SAR_HOST_DEVICE bool operator()(Mark mark) const
    {
        return mark != 0;
    }
};

/** Copies word i of the output. */
template <class Mark, class Word> struct sar_hash_gather_functor {
    const Mark *mark;
    const Word *from;
    Word *to;
    size_t words; /* of an element */

    SAR_HOST_DEVICE void operator()(size_t i) const
    {
        size_t element = words == 1 ? i : sar_divide(i, words);
        to[i] = from[(size_t)(mark[element] - 1) * words + (i - element * words)];
    }
};

/** Writes position i of the output. */
template <class Mark> struct sar_hash_position_functor {
    const Mark *mark;
    size_t *position;

    SAR_HOST_DEVICE void operator()(size_t i) const
    {
        position[i] = (size_t)(mark[i] - 1);
    }
};

/** Writes first[p] of the parts p whose lists begin at occurrence i, for i = 0 … nnz. The lists are
 * contiguous. */
struct sar_hash_first_functor {
    struct sar_partition_map map;
    struct sar_hash_input lists; /* the gathered indices */
    size_t *first;

    SAR_HOST_DEVICE uint32_t part(size_t i) const
    {
        return sar_partition_map_locate(&map, sar_hash_index(&lists, i)).part;
    }

    SAR_HOST_DEVICE void operator()(size_t i) const
    {
        uint32_t begin = i == 0 ? 0 : part(i - 1) + 1;
        uint32_t end = i == lists.nnz ? map.parts : part(i);
        for (uint32_t p = begin; p <= end; p++)
            first[p] = i;
    }
};

#endif
