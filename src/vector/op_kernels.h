/* SPDX-License-Identifier: BSD-3-Clause */
/* Basic types, reduction ops, and the loops that compute an op on values of a type. */

#ifndef SAR_VECTOR_OP_KERNELS_H
#define SAR_VECTOR_OP_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Basic types. SAR_BF16 and SAR_FP16 are floats of 16 bits, see vector/half.h. */
enum sar_dtype {
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
    SAR_DTYPES
};

/** Reduction ops. The first four are defined for all types, the others for integers. */
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

/** True if an op treats values as true or false and returns 0 or 1. */
static inline bool sar_op_is_logical(enum sar_op op)
{
    return op == SAR_LAND || op == SAR_LOR || op == SAR_LXOR;
}

/** True if x op 0 is x for every x except a float's -0.0. */
static inline bool sar_op_zero_is_neutral(enum sar_op op)
{
    return op == SAR_SUM || op == SAR_BOR || op == SAR_BXOR;
}

/** Loops for one basic type and one op. */
struct sar_op_kernels {
    size_t size; /**< bytes of a basic value */
    /** Sets out[0, n) to the op's identity: identity op x has the bits of x, or is 0 or 1 if the op is
     * logical. */
    void (*fill_identity)(void *out, size_t n);
    /** out[i] = out[i] op in[i]. */
    void (*apply)(void *out, const void *in, size_t n);
    /** out[i] = out[i] op 0. */
    void (*apply_zero)(void *out, size_t n);
    /** For i in [0, n): row position[i] of out = that row op row i of in. A row has row_len values. */
    void (*apply_rows)(void *out, const uint32_t *position, const void *in, size_t n, size_t row_len);
    /** Kernels that accumulate values of 16 bits into floats, for sums and products; else NULL. A caller that
     * accumulates several values uses them and rounds once. */
    const struct sar_op_kernels *wide;
    /** out[i] = in[i] rounded to 16 bits; in holds floats. NULL if wide is NULL. */
    void (*round)(void *out, const void *in, size_t n);
};

/** Returns the kernels of a type and an op, or NULL if the op is undefined for the type. */
const struct sar_op_kernels *sar_op_kernels_of(enum sar_dtype dtype, enum sar_op op);

#endif
