/* SPDX-License-Identifier: BSD-3-Clause */
/* Plans: one tensor again and again. A plan has a record of its own and knobs of its own. Once its scheme
 * is settled it is steady: a call takes what was agreed last time as it is, and ranks tell each other
 * only what their messages carry. After MPIX_SPARSE_PROFILE_EVERY calls the tensor is agreed on and
 * looked at again. */

#ifndef SAR_PLAN_PLAN_H
#define SAR_PLAN_PLAN_H

#include "plan/context.h"

struct sar_call;
struct sar_group;

struct sar_plan {
    struct sar_context *context; /**< NULL once its communicator is gone */
    struct sar_plan *next;       /**< on this communicator */
    const struct sar_call *call; /**< what all its calls have in common */
    uint64_t number;             /**< of the plans made on this communicator; equal on all ranks */
    uint64_t family;             /**< the same for plans with the same knobs; likewise */
    struct sar_plan *companion;  /**< the next plan of those that travel together, see plan/group.h */
    struct sar_group *group;     /**< of those that this plan led last, or NULL */
    struct sar_policy policy;
    struct sar_record record;
    uint64_t steady; /**< calls to come that agree on nothing */
    struct sar_ballot all;
    struct sar_agreed agreed;
    struct sar_selection selection;
};

/** Make a plan for calls like one that is kept. Collective: all ranks succeed or all fail alike.
 * @param hints     knobs that go before those of the communicator
 * @param sentence  room for SAR_SENTENCE bytes, set on SAR_BAD_KNOB */
enum sar_status sar_plan_open(struct sar_context *context, const struct sar_source *hints,
                              const struct sar_call *call, struct sar_plan *plan, char *sentence);

/** Make a plan with the knobs of another, on its communicator. Local. */
enum sar_status sar_plan_derive(const struct sar_plan *from, struct sar_plan *plan);

/** Local. */
void sar_plan_close(struct sar_plan *plan);

#endif
