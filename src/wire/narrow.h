/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_WIRE_NARROW_H
#define SAR_WIRE_NARROW_H

#include "wire/wire.h"

/** Values of 16 bits on the way: floats are rounded to the nearest, ties to even. What overflows becomes an
 * infinity, what underflows a zero; NaNs, infinities and signs stay. All of these functions leave a run alone
 * where its layout says SAR_VALUES_FULL. */

/** Make a run what its receiver will read. Where zeros may be lost on the way, elements that have become
 * zeros leave it at once. The run's old arrays are only read. */
enum sar_status sar_round_run(const struct sar_layout *layout, struct sar_arena *arena, struct sar_run *run);

/** Round n floats where they are. */
void sar_round_values(enum sar_values values, void *value, size_t n);

/** Replace a run's floats by values of 16 bits, in memory from the arena. */
enum sar_status sar_narrow_run(const struct sar_layout *layout, struct sar_arena *arena, struct sar_run *run);

/** The other way; exact. */
enum sar_status sar_widen_run(const struct sar_layout *layout, struct sar_arena *arena, struct sar_run *run);

#endif
