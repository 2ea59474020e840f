/* SPDX-License-Identifier: BSD-3-Clause */
/* Groups: small plans that are started together travel as one. Their tensors are laid end to end in one of
 * the group's own, which is reduced in place by one call, and come apart again afterwards. So as many small
 * tensors as there are cost the messages of one.
 *
 * Plans are chained by plan->companion. The first one leads: it keeps the group, with its profile, its
 * choice and its memory, for the next time that the same plans are started together. */

#ifndef SAR_PLAN_GROUP_H
#define SAR_PLAN_GROUP_H

#include "plan/call.h"

/** The number that stands for a group in an agreement: members << SAR_GROUP_SHIFT, and a digest. */
enum { SAR_GROUP_SHIFT = 32 };

struct sar_group {
    struct sar_plan plan;  /**< of the tensor that the members make; first */
    unsigned char *tensor; /**< the members' end to end */
    size_t members;
    uint64_t numbers[]; /**< of the members' plans, in order */
};

/** Whether a plan gains by travelling with others: where copying its tensor in and out costs less than the
 * messages that it saves, or where the knob says so. Equal on all ranks. */
bool sar_plan_is_small(const struct sar_plan *plan);

/** Whether two small plans can travel together. Equal on all ranks. */
bool sar_plans_are_alike(const struct sar_plan *a, const struct sar_plan *b);

/** Describe the call that a chain of plans makes together, and make the group unless the leader keeps it.
 * Where memory is lacking the call's verdict says so, and leader->group is NULL. Local. */
void sar_group_prepare(struct sar_plan *leader, struct sar_call *call);

/** Copy the members' tensors into the group's. */
void sar_group_gather(const struct sar_plan *leader);

/** Copy the outcome to where the members want it. */
void sar_group_scatter(const struct sar_plan *leader);

/** Free the group that a plan keeps. */
void sar_group_close(struct sar_plan *leader);

#endif
