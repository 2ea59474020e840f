/* SPDX-License-Identifier: BSD-3-Clause */
/* Ops on two values, shared by the host's loops (op_kernels.c) and CUDA kernels. `wide` is the type of the
 * computation; `kind` is bf16 or fp16. */

#ifndef SAR_VECTOR_OP_MACROS_H
#define SAR_VECTOR_OP_MACROS_H

#include "vector/half.h"

#define SAR_APPLY_SUM(wide, a, b) ((wide)(a) + (wide)(b))
#define SAR_APPLY_PROD(wide, a, b) ((wide)(a) * (wide)(b))
#define SAR_APPLY_MAX(wide, a, b) ((a) > (b) ? (a) : (b))
#define SAR_APPLY_MIN(wide, a, b) ((a) < (b) ? (a) : (b))

/* Ops on integers. */
#define SAR_APPLY_BAND(wide, a, b) ((wide)(a) & (wide)(b))
#define SAR_APPLY_BOR(wide, a, b) ((wide)(a) | (wide)(b))
#define SAR_APPLY_BXOR(wide, a, b) ((wide)(a) ^ (wide)(b))
#define SAR_APPLY_LAND(wide, a, b) ((a) != 0 && (b) != 0)
#define SAR_APPLY_LOR(wide, a, b) ((a) != 0 || (b) != 0)
#define SAR_APPLY_LXOR(wide, a, b) (((a) != 0) != ((b) != 0))

/* Ops on floats of 16 bits, given as bits. */
#define SAR_HALF_TO_FLOAT(kind, a) sar_float_from_bits(sar_from_##kind(a))
#define SAR_APPLY_HALF_SUM(kind, a, b) \
    sar_to_##kind(sar_float_bits(SAR_HALF_TO_FLOAT(kind, a) + SAR_HALF_TO_FLOAT(kind, b)))
#define SAR_APPLY_HALF_PROD(kind, a, b) \
    sar_to_##kind(sar_float_bits(SAR_HALF_TO_FLOAT(kind, a) * SAR_HALF_TO_FLOAT(kind, b)))
#define SAR_APPLY_HALF_MAX(kind, a, b) (SAR_HALF_TO_FLOAT(kind, a) > SAR_HALF_TO_FLOAT(kind, b) ? (a) : (b))
#define SAR_APPLY_HALF_MIN(kind, a, b) (SAR_HALF_TO_FLOAT(kind, a) < SAR_HALF_TO_FLOAT(kind, b) ? (a) : (b))

#endif
