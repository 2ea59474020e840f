/* SPDX-License-Identifier: BSD-3-Clause */
/* Floats as values of 16 bits in messages. Rounding is to the nearest, ties to even. Overflow gives an
 * infinity, underflow a zero; NaNs, infinities and signs stay. All functions do nothing if the layout says
 * SAR_PRECISION_FULL. */

#ifndef SAR_WIRE_ROUND16_H
#define SAR_WIRE_ROUND16_H

#include "wire/wire.h"

/** Rounds vec to the values that its receiver decodes, in new arrays of the arena. Drops elements that become
 * zero if the layout says zero_is_absent. */
enum sar_status sar_round16_spvec(const struct sar_wire_layout *layout, struct sar_arena *arena,
                                  struct sar_spvec *vec);

/** Rounds n floats in place. */
void sar_round16_values(enum sar_wire_precision precision, void *value, size_t n);

/** Replaces the floats of vec by values of 16 bits, in memory of the arena. */
enum sar_status sar_round16_encode(const struct sar_wire_layout *layout, struct sar_arena *arena,
                                   struct sar_spvec *vec);

/** Replaces values of 16 bits by floats, exactly, in memory of the arena. */
enum sar_status sar_round16_decode(const struct sar_wire_layout *layout, struct sar_arena *arena,
                                   struct sar_spvec *vec);

#endif
