/* SPDX-License-Identifier: BSD-3-Clause */
/* Functors of the kernels in reduce.cu and coalesce.cu. */

#ifndef SAR_CUDA_REDUCE_CUH
#define SAR_CUDA_REDUCE_CUH

#include "cuda/bits.cuh"
#include "vector/op_macros.h"

/* Ops on single values. The type and op are arguments of the kernels, not template parameters: kernels are
 * bound by memory, so a branch that all threads take alike is free, and they are compiled once instead of
 * 96 times. */
#define SAR_DEFINE_APPLY(name, type, wide, kind)                                       \
    SAR_HOST_DEVICE static inline void name(enum sar_op op, void *out, const void *in) \
    {                                                                                  \
        type a = *(type *)out, b = *(const type *)in;                                  \
        switch (op) {                                                                  \
        case SAR_SUM: a = (type)SAR_APPLY_##kind##SUM(wide, a, b); break;              \
        case SAR_MAX: a = (type)SAR_APPLY_##kind##MAX(wide, a, b); break;              \
        case SAR_MIN: a = (type)SAR_APPLY_##kind##MIN(wide, a, b); break;              \
        default: a = (type)SAR_APPLY_##kind##PROD(wide, a, b); break;                  \
        }                                                                              \
        *(type *)out = a;                                                              \
    }

SAR_DEFINE_APPLY(sar_apply_float, float, float, )
SAR_DEFINE_APPLY(sar_apply_double, double, double, )
SAR_DEFINE_APPLY(sar_apply_bf16, uint16_t, bf16, HALF_)
SAR_DEFINE_APPLY(sar_apply_fp16, uint16_t, fp16, HALF_)

/* Signed and unsigned integers differ only in MAX and MIN; `ordered` is the type that compares. */
#define SAR_DEFINE_INTEGER_APPLY(name, type, ordered, wide)                            \
    SAR_HOST_DEVICE static inline void name(enum sar_op op, void *out, const void *in) \
    {                                                                                  \
        type a = *(type *)out, b = *(const type *)in;                                  \
        switch (op) {                                                                  \
        case SAR_SUM: a = (type)SAR_APPLY_SUM(wide, a, b); break;                      \
        case SAR_MAX: a = (type)SAR_APPLY_MAX(wide, (ordered)a, (ordered)b); break;    \
        case SAR_MIN: a = (type)SAR_APPLY_MIN(wide, (ordered)a, (ordered)b); break;    \
        case SAR_PROD: a = (type)SAR_APPLY_PROD(wide, a, b); break;                    \
        case SAR_LAND: a = (type)SAR_APPLY_LAND(wide, a, b); break;                    \
        case SAR_BAND: a = (type)SAR_APPLY_BAND(wide, a, b); break;                    \
        case SAR_LOR: a = (type)SAR_APPLY_LOR(wide, a, b); break;                      \
        case SAR_BOR: a = (type)SAR_APPLY_BOR(wide, a, b); break;                      \
        case SAR_LXOR: a = (type)SAR_APPLY_LXOR(wide, a, b); break;                    \
        default: a = (type)SAR_APPLY_BXOR(wide, a, b); break;                          \
        }                                                                              \
        *(type *)out = a;                                                              \
    }

SAR_DEFINE_INTEGER_APPLY(sar_apply_int8, uint8_t, int8_t, uint32_t)
SAR_DEFINE_INTEGER_APPLY(sar_apply_int16, uint16_t, int16_t, uint32_t)
SAR_DEFINE_INTEGER_APPLY(sar_apply_int32, uint32_t, int32_t, uint32_t)
SAR_DEFINE_INTEGER_APPLY(sar_apply_int64, uint64_t, int64_t, uint64_t)
SAR_DEFINE_INTEGER_APPLY(sar_apply_uint8, uint8_t, uint8_t, uint32_t)
SAR_DEFINE_INTEGER_APPLY(sar_apply_uint16, uint16_t, uint16_t, uint32_t)
SAR_DEFINE_INTEGER_APPLY(sar_apply_uint32, uint32_t, uint32_t, uint32_t)
SAR_DEFINE_INTEGER_APPLY(sar_apply_uint64, uint64_t, uint64_t, uint64_t)

/** A type of values and the op on them. */
struct sar_value_ops {
    enum sar_dtype dtype;
    enum sar_op op;
    unsigned size; /* bytes of a value */

    /** True if values are accumulated as floats and rounded once. */
    SAR_HOST_DEVICE bool is_rounded() const
    {
        return (dtype == SAR_BF16 || dtype == SAR_FP16) && (op == SAR_SUM || op == SAR_PROD);
    }

    /** Value `from` of in, of 16 bits, as a float. */
    SAR_HOST_DEVICE float widen(const void *in, size_t from) const
    {
        uint16_t half = ((const uint16_t *)in)[from];
        return dtype == SAR_BF16 ? SAR_HALF_TO_FLOAT(bf16, half) : SAR_HALF_TO_FLOAT(fp16, half);
    }

    /** *sum = *sum op value `from` of in. Host twin: `wide` of struct sar_op_kernels. */
    SAR_HOST_DEVICE void apply_wide(float *sum, const void *in, size_t from) const
    {
        float value = widen(in, from);
        *sum = op == SAR_SUM ? SAR_APPLY_SUM(float, *sum, value) : SAR_APPLY_PROD(float, *sum, value);
    }

    /** Value `to` of out = sum, rounded to 16 bits. */
    SAR_HOST_DEVICE void round(void *out, size_t to, float sum) const
    {
        uint32_t bits = sar_float_bits(sum);
        ((uint16_t *)out)[to] = dtype == SAR_BF16 ? sar_to_bf16(bits) : sar_to_fp16(bits);
    }

    /** out[to] = out[to] op in[from]. Host twin: struct sar_op_kernels. */
    SAR_HOST_DEVICE void apply(void *out, size_t to, const void *in, size_t from) const
    {
        char *a = (char *)out + to * size;
        const char *b = (const char *)in + from * size;
        switch (dtype) {
        case SAR_FLOAT: sar_apply_float(op, a, b); break;
        case SAR_DOUBLE: sar_apply_double(op, a, b); break;
        case SAR_INT8: sar_apply_int8(op, a, b); break;
        case SAR_INT16: sar_apply_int16(op, a, b); break;
        case SAR_INT32: sar_apply_int32(op, a, b); break;
        case SAR_INT64: sar_apply_int64(op, a, b); break;
        case SAR_UINT8: sar_apply_uint8(op, a, b); break;
        case SAR_UINT16: sar_apply_uint16(op, a, b); break;
        case SAR_UINT32: sar_apply_uint32(op, a, b); break;
        case SAR_UINT64: sar_apply_uint64(op, a, b); break;
        case SAR_BF16: sar_apply_bf16(op, a, b); break;
        default: sar_apply_fp16(op, a, b); break;
        }
    }

    /** out[to] = in[from]. */
    SAR_HOST_DEVICE void copy(void *out, size_t to, const void *in, size_t from) const
    {
        if (size == 1)
            ((uint8_t *)out)[to] = ((const uint8_t *)in)[from];
        else if (size == 2)
            ((uint16_t *)out)[to] = ((const uint16_t *)in)[from];
        else if (size == 4)
            ((uint32_t *)out)[to] = ((const uint32_t *)in)[from];
        else
            ((uint64_t *)out)[to] = ((const uint64_t *)in)[from];
    }
};

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
    uint64_t zero; /* 0: of a constant, nvcc makes min.f32, which prefers -0 where a comparison does not */
    size_t row_len, n; /* n: vectors */
    const uint32_t *contributors;
    void *accumulators;

    SAR_HOST_DEVICE void operator()(size_t i) const
    {
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
