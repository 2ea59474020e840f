/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan/plan.h"

#include <stdlib.h>

#include "plan/group.h"
#include "plan/hints.h"

/* Ranks may have freed different plans: any that is left tells the same. */
static uint64_t family_of(const struct sar_context *context, const struct sar_plan *made)
{
    size_t at;
    for (const struct sar_plan *plan = context->plans; plan != NULL; plan = plan->next)
        if (sar_config_same(&plan->policy.config, &made->policy.config, &at))
            return plan->family;
    return made->number;
}

static void link_in(struct sar_context *context, struct sar_plan *plan)
{
    plan->context = context;
    plan->next = context->plans;
    context->plans = plan;
}

static enum sar_status take_bounds(const struct sar_context *context, struct sar_plan *plan)
{
    plan->record.keep.bounds = malloc(((size_t)context->net.ranks + 1) * sizeof *plan->record.keep.bounds);
    return plan->record.keep.bounds == NULL ? SAR_NO_MEMORY : SAR_OK;
}

enum sar_status sar_plan_open(struct sar_context *context, const struct sar_source *hints,
                              const struct sar_call *call, struct sar_plan *plan, char *sentence)
{
    struct sar_config config = context->policy.config;
    const struct sar_net *net = &context->net;
    *plan = (struct sar_plan){ .call = call };
    SAR_TRY(sar_hints_apply(net, hints, &config, sentence));
    SAR_TRY(sar_hints_in_time(&context->policy.config, &config, sentence));
    plan->policy = sar_policy_make(&config, context->policy.seed);
    plan->number = context->plans_made++;
    plan->family = family_of(context, plan);
    enum sar_status status = sar_net_worst(net, take_bounds(context, plan));
    if (status == SAR_OK)
        link_in(context, plan);
    else
        sar_plan_close(plan);
    return status;
}

enum sar_status sar_plan_derive(const struct sar_plan *from, struct sar_plan *plan)
{
    *plan = (struct sar_plan){ .policy = from->policy, .family = from->family };
    SAR_TRY(take_bounds(from->context, plan));
    link_in(from->context, plan);
    return SAR_OK;
}

void sar_plan_close(struct sar_plan *plan)
{
    struct sar_context *context = plan->context;
    sar_group_close(plan);
    free(plan->record.keep.bounds);
    plan->record.keep.bounds = NULL;
    if (context == NULL)
        return;
    if (context->homework.record == &plan->record)
        context->homework.record = NULL;
    struct sar_plan **at = &context->plans;
    while (*at != plan)
        at = &(*at)->next;
    *at = plan->next;
}
