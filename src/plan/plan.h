/* SPDX-License-Identifier: BSD-3-Clause */
/* Plans: one tensor again and again. A plan has a record of its own and knobs of its own. Once its scheme
 * is settled it is steady: a call takes what was agreed last time as it is, and ranks tell each other
 * only what their messages carry. After MPIX_SPARSE_PROFILE_EVERY calls the tensor is agreed on and
 * looked at again. */

#ifndef SAR_PLAN_PLAN_H
#define SAR_PLAN_PLAN_H

#include "plan/context.h"

struct sar_plan {
    struct sar_context *context; /**< NULL once its communicator is gone */
    struct sar_plan *next;       /**< on this communicator */
    struct sar_policy policy;
    struct sar_record record;
    uint64_t steady; /**< calls to come that agree on nothing */
    struct sar_ballot all;
    struct sar_agreed agreed;
    struct sar_selection selection;
};

/** Make a plan. Collective: all ranks succeed or all fail alike.
 * @param hints     on rank 0, knobs that go before those of the communicator
 * @param sentence  room for SAR_SENTENCE bytes, set on SAR_BAD_KNOB */
enum sar_status sar_plan_open(struct sar_context *context, const struct sar_source *hints,
                              struct sar_plan *plan, char *sentence);

/** Local. */
void sar_plan_close(struct sar_plan *plan);

#endif
