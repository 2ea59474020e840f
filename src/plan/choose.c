/* SPDX-License-Identifier: BSD-3-Clause */
/* What all ranks know of a call, and the scheme for it. */

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "plan/steps.h"

/* Only floats have narrow forms. A product may leave their range long before the float's. */
static enum sar_values values_of(const struct sar_pending *op)
{
    const struct sar_shape *shape = &op->call->shape;
    bool travels = op->context->net.ranks > 1;
    bool narrows = op->call->native && shape->base == SAR_FLOAT && shape->op != SAR_PROD;
    return travels && narrows ? (enum sar_values)op->policy->config.wire_values : SAR_VALUES_FULL;
}

static void describe(struct sar_pending *op)
{
    const struct sar_context *c = op->context;
    const struct sar_policy *policy = op->policy;
    const struct sar_call *call = op->call;
    struct sar_agreed *a = &op->agreed;
    *a = (struct sar_agreed){
        .shape = call->shape,
        .machine = c->machine,
        .nodes = c->net.nodes.n,
        .node_ranks = c->net.nodes.most,
        .share_memory = c->net.window != NULL && c->apart == 0,
        .dense_face = call->dense_face,
        .in_place = call->in_place,
        .forwards = call->dense_face && op->plan == NULL && policy->forward > 0,
        .native = call->native,
        .imbalance = policy->config.imbalance,
        .partition = policy->partition,
        .grain = policy->config.grain,
        .skewness = op->record->profiled ? fmax(op->record->profile.skewness, 1) : 1,
        .values = values_of(op),
        .segment = policy->config.segment,
        .throttle = c->policy.config.throttle,
        .seed = policy->seed,
        .push_wire = policy->push_wire,
        .pull_wire = policy->pull_wire,
        .push_smallest = strcmp(policy->config.push_wire, "smallest") == 0,
        .pull_smallest = strcmp(policy->config.pull_wire, "smallest") == 0,
        .nnz_mean = (double)op->agreement.all.nnz_sum / c->net.ranks,
        .nnz_max = (double)op->agreement.all.nnz_max,
    };
    a->machine.gamma = sar_element_seconds(&c->machine, &call->shape);
    double density = call->shape.count == 0 ? 0 : a->nnz_mean / (double)call->shape.count;
    a->gamma =
        op->record->profiled ? op->record->profile.gamma : sar_gamma_independent(density, c->net.ranks);
}

enum sar_status sar_call_select(struct sar_pending *op)
{
    const struct sar_policy *policy = op->policy;
    struct sar_context *context = op->context;
    describe(op);
    if (context->apart > 0)
        context->apart--;
    SAR_TRY(sar_select(&op->agreed, &policy->config, &op->record->lessons, policy->forced,
                       &op->record->predictions, &op->selection));
    if (policy->config.explain && op->context->net.rank == 0)
        sar_selection_explain(&op->selection, &op->agreed, &op->record->lessons,
                              op->record->profiled ? &op->record->profile : NULL, stderr);
    sar_call_tell_selection(op);
    return SAR_OK;
}
