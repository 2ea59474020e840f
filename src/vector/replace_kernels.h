/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels of an op that keeps the later of two values: for elements that are copied, not reduced. */

#ifndef SAR_VECTOR_REPLACE_KERNELS_H
#define SAR_VECTOR_REPLACE_KERNELS_H

#include "vector/op_kernels.h"

/** Returns the kernels for basic values of 1, 2, 4 or 8 bytes. */
const struct sar_op_kernels *sar_replace_kernels_of(unsigned bytes);

/** Returns the unsigned type of 1, 2, 4 or 8 bytes. */
enum sar_dtype sar_unsigned_of(unsigned bytes);

#endif
