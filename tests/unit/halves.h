/* SPDX-License-Identifier: BSD-3-Clause */
/* Floats of 16 bits the obvious way, number by number. */

#ifndef SAR_TESTS_UNIT_HALVES_H
#define SAR_TESTS_UNIT_HALVES_H

#include <stdbool.h>
#include <stdint.h>

#include "tensor/shape.h"

bool is_half(enum sar_base base);

/** The number that 16 bits of SAR_BF16 or SAR_FP16 stand for. */
float half_value(enum sar_base base, uint16_t bits);

/** The nearest of them to a number, of two as near the even one. */
uint16_t half_of(enum sar_base base, double value);

#endif
