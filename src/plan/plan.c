/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan/plan.h"

#include <stdlib.h>
#include <string.h>

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

static void link_in(struct sar_context *context, struct sar_plan *plan)
{
    plan->context = context;
    plan->next = context->plans;
    context->plans = plan;
}

enum sar_status sar_plan_open(struct sar_context *context, const struct sar_source *source,
                              struct sar_plan *plan, char *sentence)
{
    struct hints hints;
    const struct sar_net *net = &context->net;
    memset(&hints, 0, sizeof hints);
    *plan = (struct sar_plan){ .context = NULL };
    if (net->rank == 0)
        read_hints(context, source, &hints);
    SAR_TRY(sar_net_broadcast(net, &hints, (int)sizeof hints));
    memcpy(sentence, hints.sentence, sizeof hints.sentence);
    SAR_TRY(hints.status);
    plan->policy = sar_policy_make(&hints.config, context->policy.seed);
    plan->record.keep.bounds = malloc(((size_t)net->ranks + 1) * sizeof *plan->record.keep.bounds);
    enum sar_status status = sar_net_worst(net, plan->record.keep.bounds == NULL ? SAR_NO_MEMORY : SAR_OK);
    if (status == SAR_OK)
        link_in(context, plan);
    else
        sar_plan_close(plan);
    return status;
}

void sar_plan_close(struct sar_plan *plan)
{
    struct sar_context *context = plan->context;
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
