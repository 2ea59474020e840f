/* SPDX-License-Identifier: BSD-3-Clause */
/* Ops on single values. The type and op are arguments of the kernels, not template parameters: kernels are
 * bound by memory, so a branch that all threads take alike is free, and they are compiled once instead of
 * 96 times. */

#ifndef SAR_CUDA_VALUE_OPS_CUH
#define SAR_CUDA_VALUE_OPS_CUH

#include "vector/op_macros.h"

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

#endif
