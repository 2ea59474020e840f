/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_TENSOR_SHAPE_H
#define SAR_TENSOR_SHAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/host_device.h"

/** Basic types. SAR_BF16 and SAR_FP16, the last ones, are floats of 16 bits, see tensor/half.h. */
enum sar_base {
    SAR_FLOAT,
    SAR_DOUBLE,
    SAR_INT8,
    SAR_INT16,
    SAR_INT32,
    SAR_INT64,
    SAR_UINT8,
    SAR_UINT16,
    SAR_UINT32,
    SAR_UINT64,
    SAR_BF16,
    SAR_FP16,
    SAR_BASES
};

/** The first four are defined for all types, the others for integers. */
enum sar_op {
    SAR_SUM,
    SAR_MAX,
    SAR_MIN,
    SAR_PROD,
    SAR_LAND,
    SAR_BAND,
    SAR_LOR,
    SAR_BOR,
    SAR_LXOR,
    SAR_BXOR,
    SAR_OPS
};

/** Whether an op takes values as true or false. What comes out is 0 or 1. */
static inline bool sar_op_is_logical(enum sar_op op)
{
    return op == SAR_LAND || op == SAR_LOR || op == SAR_LXOR;
}

/** Whether x op 0 is x, but for floats' -0.0. */
static inline bool sar_op_keeps(enum sar_op op)
{
    return op == SAR_SUM || op == SAR_BOR || op == SAR_BXOR;
}

/** Arithmetic of one basic type and one op. */
struct sar_kernels {
    size_t size; /**< bytes of a basic value */
    /** x op anything gives anything, in bits, or as 0 or 1 where the op is logical: the value of accumulators
     * that nothing has reached yet. */
    void (*fill_identity)(void *out, size_t n);
    /** out[i] = out[i] op in[i]. */
    void (*fold)(void *out, const void *in, size_t n);
    /** out[i] = out[i] op 0. */
    void (*fold_zero)(void *out, size_t n);
    /** Row at[i] of out = itself op row i of in, for i = 0, 1 … n-1. A row has `row` basic values. */
    void (*fold_rows)(void *out, const uint32_t *at, const void *in, size_t n, size_t row);
    /** The same of such values into floats, which lose less than values do: of sums and products of 16 bits,
     * else NULL. What is to be rounded once is folded by these, and rounded then. */
    const struct sar_kernels *wide;
    /** Values of floats. */
    void (*round)(void *out, const void *in, size_t n);
};

/** NULL where the op is not defined for the type. */
const struct sar_kernels *sar_kernels_of(enum sar_base base, enum sar_op op);

/** What the vector is; equal on all ranks. */
struct sar_shape {
    uint64_t count;      /**< elements */
    size_t row;          /**< basic values in an element */
    size_t element_size; /**< bytes of an element */
    unsigned index_size; /**< bytes of an index inside the library, 4 or 8 */
    enum sar_base base;  /**< basic type */
    enum sar_op op;
    bool absent_is_zero; /**< an absent element takes part in the reduction as a zero (dense interface) */
    const struct sar_kernels *kernels;
};

/** Bytes of an index below count. */
static inline unsigned sar_index_size(uint64_t count)
{
    return count <= (uint64_t)UINT32_MAX + 1 ? 4 : 8;
}

/** Present elements in ascending order of index. Points into memory that others own. */
struct sar_run {
    void *index; /**< nnz indices of shape.index_size bytes */
    void *value; /**< nnz elements */
    size_t nnz;
};

static inline uint64_t sar_index_get(const void *index, unsigned size, size_t i)
{
    return size == 4 ? ((const uint32_t *)index)[i] : ((const uint64_t *)index)[i];
}

static inline void sar_index_set(void *index, unsigned size, size_t i, uint64_t value)
{
    if (size == 4)
        ((uint32_t *)index)[i] = (uint32_t)value;
    else
        ((uint64_t *)index)[i] = value;
}

/** Compile `call` twice, once for each index size as a constant, so that inlined loops have no test
 * inside. */
#define SAR_FOR_INDEX_SIZE(size, call) \
    do {                               \
        if ((size) == 4) {             \
            enum { INDEX_SIZE = 4 };   \
            call;                      \
        } else {                       \
            enum { INDEX_SIZE = 8 };   \
            call;                      \
        }                              \
    } while (0)

/** a * b, or the largest number when that does not fit: sizes are compared before memory is asked for. */
static inline uint64_t sar_times(uint64_t a, uint64_t b)
{
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

/** a + b, likewise. */
static inline uint64_t sar_plus(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

#define SAR_INLINE SAR_HOST_DEVICE static inline __attribute__((always_inline))

/** Variants of a loop for newer processors, chosen at load time where the toolchain can. */
#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(SAR_NO_CLONES) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define SAR_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define SAR_CLONES
#endif

/** For functions written for AVX-512, as of Ice Lake and Zen 4, which sar_is_wide guards; not defined where
 * the compiler has no such. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(SAR_NO_CLONES)
#define SAR_WIDE __attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi2,bmi,bmi2,popcnt")))
#define sar_is_wide()                                                               \
    (__builtin_cpu_supports("avx512vbmi2") && __builtin_cpu_supports("avx512bw") && \
     __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("bmi2"))
#else
#define sar_is_wide() false
#endif

#endif
