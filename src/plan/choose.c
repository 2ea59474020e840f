/* SPDX-License-Identifier: BSD-3-Clause */
/* What all ranks know of a call, and the scheme for it. */

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "plan/steps.h"

enum { LASTS = 16 /* calls for which a selection is taken over */ };

static const double DRIFT = 0.03; /* of what calls have shown of the scheme, until it is made anew */

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

/* Whether nothing that the last selection went by has changed to speak of. All ranks find the same. */
static bool still_holds(const struct sar_pending *op)
{
    const struct sar_record *record = op->record;
    int runs = record->selection.runs;
    double change = record->lessons.ratio[runs] - record->ratio;
    return record->lasts > 0 && !op->policy->config.explain && record->shared == op->agreed.share_memory &&
           sar_predictions_hold(&record->predictions, &op->agreed) &&
           (op->policy->forced != NULL || fabs(change) <= DRIFT * record->ratio) &&
           sar_schemes[runs]->obstacle(&op->agreed) == NULL;
}

/* To ask all schemes takes as long as a small call does, and longer where none of that is in the caches. */
static enum sar_status choose(struct sar_pending *op)
{
    const struct sar_policy *policy = op->policy;
    struct sar_record *record = op->record;
    if (still_holds(op)) {
        record->lasts--;
        op->selection = record->selection;
        return SAR_OK;
    }
    SAR_TRY(sar_select(&op->agreed, &policy->config, &record->lessons, policy->forced, &record->predictions,
                       &op->selection));
    record->selection = op->selection;
    record->ratio = record->lessons.ratio[op->selection.runs];
    record->shared = op->agreed.share_memory;
    record->lasts = op->selection.settled ? LASTS : 0;
    return SAR_OK;
}

enum sar_status sar_call_select(struct sar_pending *op)
{
    const struct sar_policy *policy = op->policy;
    struct sar_context *context = op->context;
    describe(op);
    if (context->apart > 0)
        context->apart--;
    SAR_TRY(choose(op));
    if (policy->config.explain && op->context->net.rank == 0)
        sar_selection_explain(&op->selection, &op->agreed, &op->record->lessons,
                              op->record->profiled ? &op->record->profile : NULL, stderr);
    sar_call_tell_selection(op);
    return SAR_OK;
}
