/* SPDX-License-Identifier: BSD-3-Clause */
/* Functors of the kernels in reduce.cu and coalesce.cu. */

#ifndef SAR_CUDA_REDUCE_CUH
#define SAR_CUDA_REDUCE_CUH

#include "cuda/bits.cuh"
#include "cuda/value_ops.cuh"

/** Sets accumulator i to the op's identity. */
struct sar_identity_functor {
    sar_value_ops ops; /* of accumulators */
    uint64_t identity; /* its bits */
    void *accumulators;

    SAR_HOST_DEVICE void operator()(size_t i) const
    {
        ops.copy(accumulators, i, &identity, 0);
    }
};

/** Applies value i of a vector to the accumulator of its index, found by the index's rank in the union.
 * Accumulators are the result's values, or floats that are rounded later. Host twin:
 * vector/reduce.c. */
template <class Index> struct sar_reduce_values_functor {
    sar_value_ops ops;
    size_t row_len; /* values of an element */
    const Index *index;
    const void *value;
    const uint32_t *bits; /* the union */
    const unsigned long long *rank_prefix;
    void *accumulators;
    uint32_t *contributors; /* vectors that have each element; or NULL */

    SAR_HOST_DEVICE void operator()(size_t i) const
    {
        size_t element = row_len == 1 ? i : sar_divide(i, row_len), within = i - element * row_len;
        size_t rank = (size_t)sar_bits_rank(bits, rank_prefix, index[element]);
        if (ops.is_rounded())
            ops.apply_wide((float *)accumulators + rank * row_len + within, value, i);
        else
            ops.apply(accumulators, rank * row_len + within, value, i);
        if (contributors != NULL && within == 0)
            contributors[rank]++;
    }
};

/** Applies a zero to accumulator i if some vector has no element there. Host twin: vector/accumulator.c. */
struct sar_apply_zero_functor {
    sar_value_ops ops; /* of accumulators */
    size_t row_len, n; /* n: vectors */
    const uint32_t *contributors;
    void *accumulators;

    SAR_HOST_DEVICE void operator()(size_t i) const
    {
        uint64_t zero = 0;
        if (contributors[row_len == 1 ? i : sar_divide(i, row_len)] != n)
            ops.apply(accumulators, i, &zero, 0);
    }
};

/** Rounds accumulator i to 16 bits. Host twin: sar_accumulator_finish. */
struct sar_round16_functor {
    sar_value_ops ops;
    const float *accumulators;
    void *out;

    SAR_HOST_DEVICE void operator()(size_t i) const
    {
        ops.round(out, i, accumulators[i]);
    }
};

/** Applies value i to the identity of a logical op, which makes it 0 or 1. Host twin:
 * vector/canonicalize.c. */
struct sar_normalize_logical_functor {
    sar_value_ops ops;
    uint64_t identity; /* its bits */
    const void *value;
    void *out;

    SAR_HOST_DEVICE void operator()(size_t i) const
    {
        uint64_t logical = identity;
        ops.apply(&logical, 0, value, i);
        ops.copy(out, i, &logical, 0);
    }
};

/** Properties of unsorted indices, each 0 or 1. */
struct sar_index_checks {
    uint32_t out_of_range; /* some index is not below the count */
    uint32_t unsorted;     /* some index is not above its predecessor */
};

/** Checks index i. Keys are unsigned, so negative indices are out of range. Host twin:
 * vector/canonicalize.c. */
template <class Key> struct sar_check_indices_functor {
    const Key *key;
    uint64_t count;
    sar_index_checks *checks;

    SAR_HOST_DEVICE void operator()(size_t i) const
    {
        if (key[i] >= count)
            sar_flag_set(&checks->out_of_range);
        if (i > 0 && key[i] <= key[i - 1])
            sar_flag_set(&checks->unsorted);
    }
};

/** position[i] = i. */
struct sar_iota_functor {
    uint32_t *position;

    SAR_HOST_DEVICE void operator()(size_t i) const
    {
        position[i] = (uint32_t)i;
    }
};

/** Four bits: bit j is set if sorted key 4 q + j differs from its predecessor. */
template <class Key> struct sar_first_keys_functor {
    const Key *key;
    size_t n;

    SAR_HOST_DEVICE unsigned operator()(size_t q) const
    {
        unsigned found = 0;
        for (unsigned j = 0; j < 4 && 4 * q + j < n; j++) {
            size_t i = 4 * q + j;
            found |= (unsigned)(i == 0 || key[i] != key[i - 1]) << j;
        }
        return found;
    }
};

/** Writes value i of the result: the values of equal keys, reduced in input order, and rounded once. Host
 * twin: vector/sort.c. */
template <class Key> struct sar_reduce_duplicates_functor {
    sar_value_ops ops;
    size_t row_len, n;
    const Key *key;           /* sorted */
    const uint32_t *position; /* of each key's element in the input */
    const uint32_t *first;    /* position of the first key of each index */
    const void *value;
    Key *index;
    void *out;

    SAR_HOST_DEVICE void operator()(size_t i) const
    {
        size_t element = row_len == 1 ? i : sar_divide(i, row_len), within = i - element * row_len;
        size_t at = first[element];
        ops.copy(out, i, value, position[at] * row_len + within);
        if (within == 0)
            index[element] = key[at];
        if (at + 1 < n && key[at + 1] == key[at] && ops.is_rounded())
            apply_rounded(i, at, within);
        else
            for (size_t next = at + 1; next < n && key[next] == key[at]; next++)
                ops.apply(out, i, value, position[next] * row_len + within);
    }

    SAR_HOST_DEVICE void apply_rounded(size_t i, size_t at, size_t within) const
    {
        float sum = ops.widen(value, position[at] * row_len + within);
        for (size_t next = at + 1; next < n && key[next] == key[at]; next++)
            ops.apply_wide(&sum, value, position[next] * row_len + within);
        ops.round(out, i, sum);
    }
};

#endif
