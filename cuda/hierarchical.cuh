/* SPDX-License-Identifier: BSD-3-Clause */
/* What each thread of the kernels in hierarchical.cu does, one function object a kernel. */

#ifndef SAR_CUDA_HIERARCHICAL_CUH
#define SAR_CUDA_HIERARCHICAL_CUH

#include "cuda/bits.cuh"
#include "hash/hierarchical.h"

/** Host twin: hash_range in hash/hierarchical.c. */
struct sar_hash_body {
    struct sar_hash_memory memory;
    struct sar_map map;
    struct sar_hash_input input;

    SAR_HOST_DEVICE void operator()(size_t i) const
    {
        sar_hash_one(&memory, &map, &input, i);
    }
};

/** Host twin: count_range. */
struct sar_count_body {
    struct sar_map map;
    struct sar_hash_input input;
    unsigned long long *totals;

    SAR_HOST_DEVICE void operator()(size_t i) const
    {
        sar_hash_count(&map, &input, i, totals);
    }
};

/** Which cells hold an occurrence. */
struct sar_is_claimed {
    template <class Mark> SAR_HOST_DEVICE bool operator()(Mark mark) const
    {
        return mark != 0;
    }
};

/** For word i of the output. Host twin: gather. */
template <class Mark, class Word> struct sar_gather_body {
    const Mark *mark;
    const Word *from;
    Word *to;
    size_t words; /* of an element */

    SAR_HOST_DEVICE void operator()(size_t i) const
    {
        size_t element = words == 1 ? i : sar_quotient(i, words);
        to[i] = from[(size_t)(mark[element] - 1) * words + (i - element * words)];
    }
};

template <class Mark> struct sar_position_body {
    const Mark *mark;
    size_t *position;

    SAR_HOST_DEVICE void operator()(size_t i) const
    {
        position[i] = (size_t)(mark[i] - 1);
    }
};

/** For i = 0 … nnz, the end included: the parts whose list begins at i, in lists that follow one another.
 * Host twin: collect. */
struct sar_first_body {
    struct sar_map map;
    struct sar_hash_input lists; /* the gathered indices */
    size_t *first;

    SAR_HOST_DEVICE uint32_t part(size_t i) const
    {
        return sar_map_place(&map, sar_hash_index(&lists, i)).part;
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
