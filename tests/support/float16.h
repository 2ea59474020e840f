/* SPDX-License-Identifier: BSD-3-Clause */
/* Reference conversion of 16-bit floats, one number at a time. */

#ifndef SAR_TESTS_SUPPORT_FLOAT16_H
#define SAR_TESTS_SUPPORT_FLOAT16_H

#include <stdbool.h>
#include <stdint.h>

#include "vector/vec_desc.h"

bool is_float16(enum sar_dtype base);

/** Value of a SAR_BF16 or SAR_FP16 number. */
float float16_value(enum sar_dtype base, uint16_t bits);

/** Nearest 16-bit float to a number; ties go to even. */
uint16_t float16_of(enum sar_dtype base, double value);

#endif
