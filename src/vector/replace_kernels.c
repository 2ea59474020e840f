/* SPDX-License-Identifier: BSD-3-Clause */
#include "vector/replace_kernels.h"

#include <string.h>

#define DEFINE_REPLACE(bytes)                                                                           \
    static void fill##bytes(void *out, size_t n)                                                        \
    {                                                                                                   \
        memset(out, 0, n *(bytes));                                                                     \
    }                                                                                                   \
    static void replace##bytes(void *out, const void *in, size_t n)                                     \
    {                                                                                                   \
        memmove(out, in, n *(bytes));                                                                   \
    }                                                                                                   \
    static void keep##bytes(void *out, size_t n)                                                        \
    {                                                                                                   \
        (void)out, (void)n;                                                                             \
    }                                                                                                   \
    static void replace_rows##bytes(void *out, const uint32_t *position, const void *in, size_t n,      \
                                    size_t row_len)                                                     \
    {                                                                                                   \
        size_t row = row_len * (bytes);                                                                 \
        for (size_t i = 0; i < n; i++)                                                                  \
            memcpy((unsigned char *)out + position[i] * row, (const unsigned char *)in + i * row, row); \
    }                                                                                                   \
    static const struct sar_op_kernels kernels##bytes = {                                               \
        .size = (bytes),                                                                                \
        .fill_identity = fill##bytes,                                                                   \
        .apply = replace##bytes,                                                                        \
        .apply_zero = keep##bytes,                                                                      \
        .apply_rows = replace_rows##bytes,                                                              \
    };

DEFINE_REPLACE(1)
DEFINE_REPLACE(2)
DEFINE_REPLACE(4)
DEFINE_REPLACE(8)

const struct sar_op_kernels *sar_replace_kernels_of(unsigned bytes)
{
    return bytes == 1 ? &kernels1 : bytes == 2 ? &kernels2 : bytes == 4 ? &kernels4 : &kernels8;
}

enum sar_dtype sar_unsigned_of(unsigned bytes)
{
    return bytes == 1 ? SAR_UINT8 : bytes == 2 ? SAR_UINT16 : bytes == 4 ? SAR_UINT32 : SAR_UINT64;
}
