/* SPDX-License-Identifier: BSD-3-Clause */
/* Conversion of floats to bf16 or fp16 for messages, and back. Values are rounded to the nearest, ties to
 * even. Overflow gives an infinity, underflow a zero. NaNs, infinities and signs are kept. With the precision
 * SAR_PRECISION_FULL the functions do nothing. */

#ifndef SAR_WIRE_ROUND16_H
#define SAR_WIRE_ROUND16_H

#include "wire/wire.h"

/** Replaces the floats of vec by the floats that sar_round16_encode and sar_round16_decode would yield, in
 * memory of the arena. If layout->zero_is_absent, removes elements that become zero. */
enum sar_status sar_round16_spvec(const struct sar_wire_layout *layout, struct sar_arena *arena,
                                  struct sar_spvec *vec);

/** Rounds n floats at `value` in place, as sar_round16_spvec. */
void sar_round16_values(enum sar_wire_precision precision, void *value, size_t n);

/** Replaces the floats of vec by values of 16 bits, in memory of the arena: vec->value then points into
 * `arena`; the old array stays the caller's. */
enum sar_status sar_round16_encode(const struct sar_wire_layout *layout, struct sar_arena *arena,
                                   struct sar_spvec *vec);

/** Replaces the values of 16 bits of vec by equal floats, in memory of the arena, as sar_round16_encode. */
enum sar_status sar_round16_decode(const struct sar_wire_layout *layout, struct sar_arena *arena,
                                   struct sar_spvec *vec);

#endif
