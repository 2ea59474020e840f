/* SPDX-License-Identifier: BSD-3-Clause */
/* What the ops do to two values; one text for the host's loops (kernels.c) and for a device's. `wide` is the
 * type to compute in, for halves the name of their kind, bf16 or fp16. */

#ifndef SAR_TENSOR_ARITHMETIC_H
#define SAR_TENSOR_ARITHMETIC_H

#include "tensor/half.h"

#define SAR_FOLD_SUM(wide, a, b) ((wide)(a) + (wide)(b))
#define SAR_FOLD_PROD(wide, a, b) ((wide)(a) * (wide)(b))
#define SAR_FOLD_MAX(wide, a, b) ((a) > (b) ? (a) : (b))
#define SAR_FOLD_MIN(wide, a, b) ((a) < (b) ? (a) : (b))

/* Of integers. */
#define SAR_FOLD_BAND(wide, a, b) ((wide)(a) & (wide)(b))
#define SAR_FOLD_BOR(wide, a, b) ((wide)(a) | (wide)(b))
#define SAR_FOLD_BXOR(wide, a, b) ((wide)(a) ^ (wide)(b))
#define SAR_FOLD_LAND(wide, a, b) ((a) != 0 && (b) != 0)
#define SAR_FOLD_LOR(wide, a, b) ((a) != 0 || (b) != 0)
#define SAR_FOLD_LXOR(wide, a, b) (((a) != 0) != ((b) != 0))

/* Of halves, as bits. */
#define SAR_HALF_WIDE(kind, a) sar_float_of(sar_from_##kind(a))
#define SAR_FOLD_HALF_SUM(kind, a, b) \
    sar_to_##kind(sar_float_bits(SAR_HALF_WIDE(kind, a) + SAR_HALF_WIDE(kind, b)))
#define SAR_FOLD_HALF_PROD(kind, a, b) \
    sar_to_##kind(sar_float_bits(SAR_HALF_WIDE(kind, a) * SAR_HALF_WIDE(kind, b)))
#define SAR_FOLD_HALF_MAX(kind, a, b) (SAR_HALF_WIDE(kind, a) > SAR_HALF_WIDE(kind, b) ? (a) : (b))
#define SAR_FOLD_HALF_MIN(kind, a, b) (SAR_HALF_WIDE(kind, a) < SAR_HALF_WIDE(kind, b) ? (a) : (b))

#endif
