/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_PLAN_HINTS_H
#define SAR_PLAN_HINTS_H

#include "plan/context.h"

/** Apply hints, which must have the same values on all ranks. Collective: all ranks succeed or all fail
 * alike, and then the knobs stay as they are.
 * @param config    equal on all ranks, in and out
 * @param sentence  room for SAR_SENTENCE bytes, set on SAR_BAD_KNOB */
enum sar_status sar_hints_apply(const struct sar_net *net, const struct sar_source *hints,
                                struct sar_config *config, char *sentence);

/** Refuse, by SAR_BAD_KNOB, knobs that count only when a communicator is first used, and that hints have
 * changed since. Equal arguments on all ranks.
 * @param sentence  as above */
enum sar_status sar_hints_in_time(const struct sar_config *before, const struct sar_config *after,
                                  char *sentence);

#endif
