/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan/plan.h"

#include <stdlib.h>
#include <string.h>

#include "plan/group.h"

/* What rank 0 tells the others. */
struct hints {
    enum sar_status status;
    struct sar_config config;
    char sentence[SAR_SENTENCE];
};

static void read_hints(const struct sar_context *context, const struct sar_source *source, struct hints *h)
{
    h->config = context->policy.config;
    h->status = sar_config_apply(&h->config, source, h->sentence, sizeof h->sentence);
    if (h->status == SAR_OK)
        h->status = sar_context_check(&h->config, h->sentence, sizeof h->sentence);
}

static bool same_knobs(const struct sar_config *a, const struct sar_config *b)
{
    char left[SAR_KNOB_PATH], right[SAR_KNOB_PATH];
    enum sar_origin origin;
    for (size_t i = 0; sar_config_show(a, i, left, sizeof left, &origin); i++) {
        sar_config_show(b, i, right, sizeof right, &origin);
        if (strcmp(left, right) != 0)
            return false;
    }
    return true;
}

/* Ranks may have freed different plans: any that is left tells the same. */
static uint64_t family_of(const struct sar_context *context, const struct sar_plan *made)
{
    for (const struct sar_plan *plan = context->plans; plan != NULL; plan = plan->next)
        if (same_knobs(&plan->policy.config, &made->policy.config))
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

enum sar_status sar_plan_open(struct sar_context *context, const struct sar_source *source,
                              const struct sar_call *call, struct sar_plan *plan, char *sentence)
{
    struct hints hints;
    const struct sar_net *net = &context->net;
    memset(&hints, 0, sizeof hints);
    *plan = (struct sar_plan){ .call = call };
    if (net->rank == 0)
        read_hints(context, source, &hints);
    SAR_TRY(sar_net_broadcast(net, &hints, (int)sizeof hints));
    memcpy(sentence, hints.sentence, sizeof hints.sentence);
    SAR_TRY(hints.status);
    plan->policy = sar_policy_make(&hints.config, context->policy.seed);
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
