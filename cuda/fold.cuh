/* SPDX-License-Identifier: BSD-3-Clause */
/* The ops on single values, of a type that is known when kernels run: they wait for memory, so that a branch
 * all threads take alike is free, and kernels are compiled once instead of 32 times. */

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
SAR_DEFINE_FOLD(sar_fold_int32, int32_t, uint32_t, )
SAR_DEFINE_FOLD(sar_fold_int64, int64_t, uint64_t, )
SAR_DEFINE_FOLD(sar_fold_uint32, uint32_t, uint32_t, )
SAR_DEFINE_FOLD(sar_fold_uint64, uint64_t, uint64_t, )
SAR_DEFINE_FOLD(sar_fold_bf16, uint16_t, bf16, HALF_)
SAR_DEFINE_FOLD(sar_fold_fp16, uint16_t, fp16, HALF_)

/** Values of a type, and what is done to them. */
struct sar_arithmetic {
    enum sar_base base;
    enum sar_op op;
    unsigned size; /* bytes of a value */

    /** Value `to` of out = itself op value `from` of in. Host twin: struct sar_kernels. */
    SAR_HOST_DEVICE void fold(void *out, size_t to, const void *in, size_t from) const
    {
        char *a = (char *)out + to * size;
        const char *b = (const char *)in + from * size;
        switch (base) {
        case SAR_FLOAT: sar_fold_float(op, a, b); break;
        case SAR_DOUBLE: sar_fold_double(op, a, b); break;
        case SAR_INT32: sar_fold_int32(op, a, b); break;
        case SAR_INT64: sar_fold_int64(op, a, b); break;
        case SAR_UINT32: sar_fold_uint32(op, a, b); break;
        case SAR_UINT64: sar_fold_uint64(op, a, b); break;
        case SAR_BF16: sar_fold_bf16(op, a, b); break;
        default: sar_fold_fp16(op, a, b); break;
        }
    }

    SAR_HOST_DEVICE void copy(void *out, size_t to, const void *in, size_t from) const
    {
        if (size == 2)
            ((uint16_t *)out)[to] = ((const uint16_t *)in)[from];
        else if (size == 4)
            ((uint32_t *)out)[to] = ((const uint32_t *)in)[from];
        else
            ((uint64_t *)out)[to] = ((const uint64_t *)in)[from];
    }
};

#endif
