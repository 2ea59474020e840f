/* SPDX-License-Identifier: BSD-3-Clause */
/* The ops on single values, of a type that is known when kernels run: they wait for memory, so that a branch
 * all threads take alike is free, and kernels are compiled once instead of 96 times. */

#ifndef SAR_CUDA_FOLD_CUH
#define SAR_CUDA_FOLD_CUH

#include "tensor/arithmetic.h"

#define SAR_DEFINE_FOLD(name, type, wide, kind)                                        \
    SAR_HOST_DEVICE static inline void name(enum sar_op op, void *out, const void *in) \
    {                                                                                  \
        type a = *(type *)out, b = *(const type *)in;                                  \
        switch (op) {                                                                  \
        case SAR_SUM: a = (type)SAR_FOLD_##kind##SUM(wide, a, b); break;               \
        case SAR_MAX: a = (type)SAR_FOLD_##kind##MAX(wide, a, b); break;               \
        case SAR_MIN: a = (type)SAR_FOLD_##kind##MIN(wide, a, b); break;               \
        default: a = (type)SAR_FOLD_##kind##PROD(wide, a, b); break;                   \
        }                                                                              \
        *(type *)out = a;                                                              \
    }

SAR_DEFINE_FOLD(sar_fold_float, float, float, )
SAR_DEFINE_FOLD(sar_fold_double, double, double, )
SAR_DEFINE_FOLD(sar_fold_bf16, uint16_t, bf16, HALF_)
SAR_DEFINE_FOLD(sar_fold_fp16, uint16_t, fp16, HALF_)

/* Signed and unsigned integers differ in their order alone. */
#define SAR_DEFINE_INTEGER_FOLD(name, type, ordered, wide)                             \
    SAR_HOST_DEVICE static inline void name(enum sar_op op, void *out, const void *in) \
    {                                                                                  \
        type a = *(type *)out, b = *(const type *)in;                                  \
        switch (op) {                                                                  \
        case SAR_SUM: a = (type)SAR_FOLD_SUM(wide, a, b); break;                       \
        case SAR_MAX: a = (type)SAR_FOLD_MAX(wide, (ordered)a, (ordered)b); break;     \
        case SAR_MIN: a = (type)SAR_FOLD_MIN(wide, (ordered)a, (ordered)b); break;     \
        case SAR_PROD: a = (type)SAR_FOLD_PROD(wide, a, b); break;                     \
        case SAR_LAND: a = (type)SAR_FOLD_LAND(wide, a, b); break;                     \
        case SAR_BAND: a = (type)SAR_FOLD_BAND(wide, a, b); break;                     \
        case SAR_LOR: a = (type)SAR_FOLD_LOR(wide, a, b); break;                       \
        case SAR_BOR: a = (type)SAR_FOLD_BOR(wide, a, b); break;                       \
        case SAR_LXOR: a = (type)SAR_FOLD_LXOR(wide, a, b); break;                     \
        default: a = (type)SAR_FOLD_BXOR(wide, a, b); break;                           \
        }                                                                              \
        *(type *)out = a;                                                              \
    }

SAR_DEFINE_INTEGER_FOLD(sar_fold_int8, uint8_t, int8_t, uint32_t)
SAR_DEFINE_INTEGER_FOLD(sar_fold_int16, uint16_t, int16_t, uint32_t)
SAR_DEFINE_INTEGER_FOLD(sar_fold_int32, uint32_t, int32_t, uint32_t)
SAR_DEFINE_INTEGER_FOLD(sar_fold_int64, uint64_t, int64_t, uint64_t)
SAR_DEFINE_INTEGER_FOLD(sar_fold_uint8, uint8_t, uint8_t, uint32_t)
SAR_DEFINE_INTEGER_FOLD(sar_fold_uint16, uint16_t, uint16_t, uint32_t)
SAR_DEFINE_INTEGER_FOLD(sar_fold_uint32, uint32_t, uint32_t, uint32_t)
SAR_DEFINE_INTEGER_FOLD(sar_fold_uint64, uint64_t, uint64_t, uint64_t)

/** Values of a type, and what is done to them. */
struct sar_arithmetic {
    enum sar_base base;
    enum sar_op op;
    unsigned size; /* bytes of a value */

    /** Whether many are to be folded into floats, and rounded once. */
    SAR_HOST_DEVICE bool is_rounded() const
    {
        return (base == SAR_BF16 || base == SAR_FP16) && (op == SAR_SUM || op == SAR_PROD);
    }

    /** A value of such. */
    SAR_HOST_DEVICE float widen(const void *in, size_t from) const
    {
        uint16_t half = ((const uint16_t *)in)[from];
        return base == SAR_BF16 ? SAR_HALF_WIDE(bf16, half) : SAR_HALF_WIDE(fp16, half);
    }

    /** Float = itself op value `from` of in. Host twin: `wide` of struct sar_kernels. */
    SAR_HOST_DEVICE void fold_wide(float *sum, const void *in, size_t from) const
    {
        float value = widen(in, from);
        *sum = op == SAR_SUM ? SAR_FOLD_SUM(float, *sum, value) : SAR_FOLD_PROD(float, *sum, value);
    }

    SAR_HOST_DEVICE void round(void *out, size_t to, float sum) const
    {
        uint32_t bits = sar_float_bits(sum);
        ((uint16_t *)out)[to] = base == SAR_BF16 ? sar_to_bf16(bits) : sar_to_fp16(bits);
    }

    /** Value `to` of out = itself op value `from` of in. Host twin: struct sar_kernels. */
    SAR_HOST_DEVICE void fold(void *out, size_t to, const void *in, size_t from) const
    {
        char *a = (char *)out + to * size;
        const char *b = (const char *)in + from * size;
        switch (base) {
        case SAR_FLOAT: sar_fold_float(op, a, b); break;
        case SAR_DOUBLE: sar_fold_double(op, a, b); break;
        case SAR_INT8: sar_fold_int8(op, a, b); break;
        case SAR_INT16: sar_fold_int16(op, a, b); break;
        case SAR_INT32: sar_fold_int32(op, a, b); break;
        case SAR_INT64: sar_fold_int64(op, a, b); break;
        case SAR_UINT8: sar_fold_uint8(op, a, b); break;
        case SAR_UINT16: sar_fold_uint16(op, a, b); break;
        case SAR_UINT32: sar_fold_uint32(op, a, b); break;
        case SAR_UINT64: sar_fold_uint64(op, a, b); break;
        case SAR_BF16: sar_fold_bf16(op, a, b); break;
        default: sar_fold_fp16(op, a, b); break;
        }
    }

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
