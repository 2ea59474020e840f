/* SPDX-License-Identifier: BSD-3-Clause */
/* Floats of 16 bits the obvious way, number by number. */

#ifndef SAR_TESTS_SUPPORT_FLOAT16_H
#define SAR_TESTS_SUPPORT_FLOAT16_H

#include <stdbool.h>
#include <stdint.h>

#include "vector/vec_desc.h"

bool is_float16(enum sar_dtype base);

/** The number that 16 bits of SAR_BF16 or SAR_FP16 stand for. */
float float16_value(enum sar_dtype base, uint16_t bits);

/** The nearest of them to a number, of two as near the even one. */
uint16_t float16_of(enum sar_dtype base, double value);

#endif
