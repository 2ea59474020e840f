/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan/forward.h"

#include <stdio.h>

enum { WIDEST = 8 /* bytes of a basic type, but for rare ones */ };

static bool is_asked_for(const struct sar_policy *policy)
{
    return policy->forced != NULL && policy->forced->on_dense_buffers;
}

static bool is_small(const struct sar_context *context, const struct sar_shape *shape)
{
    uint64_t few =
        sar_net_common_window(&context->net) != NULL ? SAR_FORWARD_BYTES_SHARED : SAR_FORWARD_BYTES;
    return sar_times(shape->count, shape->element_size) <= few;
}

/* Where a rank's arguments make no sense, the others' may: the agreement lets all know, unless the others
 * have so little that they do without. */
static bool is_in_doubt(const struct sar_call *call)
{
    enum sar_status status = call->verdict.status;
    bool unknown = status == SAR_BAD_DATATYPE || status == SAR_BAD_OP;
    return status == SAR_BAD_COUNT || (unknown && sar_times(call->shape.count, WIDEST) > SAR_FORWARD_BYTES);
}

bool sar_forward_always(const struct sar_context *context, const struct sar_call *call)
{
    const struct sar_policy *policy = &context->policy;
    if (policy->forward == 0 || !call->dense_face || is_in_doubt(call))
        return false;
    return !call->native || is_asked_for(policy) ||
           (policy->forced == NULL && is_small(context, &call->shape));
}

bool sar_forward_turn(struct sar_context *context, const struct sar_call *call)
{
    struct sar_record *record = sar_context_find(context, call->field);
    if (record == NULL || record->follow == 0)
        return false;
    record->follow--;
    return true;
}

struct sar_precedent sar_forward_precedent(struct sar_context *context, const struct sar_call *call)
{
    bool always = sar_forward_always(context, call);
    return (struct sar_precedent){ .context = context,
                                   .record = always ? NULL : sar_context_find(context, call->field),
                                   .records_made = context->records_made,
                                   .shape = call->shape };
}

void sar_forward_plan(struct sar_pending *op)
{
    struct sar_record *record = op->record;
    uint64_t most = op->policy->forward;
    bool dense = sar_schemes[op->selection.runs]->on_dense_buffers;
    if (op->plan != NULL || !op->call->dense_face)
        return;
    record->stretch = dense && op->selection.settled && op->agreement.all.staged != SAR_STAGED_PIECEWISE
                          ? 2 * record->stretch + 1
                          : 0;
    record->stretch = record->stretch < most ? record->stretch : most;
    record->follow = record->stretch;
}

struct sar_span sar_forward_begin(struct sar_context *context, const struct sar_call *call, const char *name)
{
    context->forwarded = call->shape;
    context->forwarded_last = context->reported = true;
    return sar_span_begin(name, 0, 0);
}

void sar_forward_end(const struct sar_context *context, struct sar_span *span)
{
    sar_span_end(span, &(struct sar_scene){ context->net.number, context->epoch, -1, -1, 0, 0 });
}

MPIX_Sparse_report_t sar_forward_report(const struct sar_context *context)
{
    const struct sar_shape *shape = &context->forwarded;
    double bytes = (double)shape->count * (double)shape->element_size;
    MPI_Count ring = (MPI_Count)(2 * bytes * (context->net.ranks - 1) / context->net.ranks);
    MPIX_Sparse_report_t report = {
        .scheme = "dense",
        .choice = "dense",
        .reason = "handed to MPI_Allreduce: nothing to gain, or nothing gained lately",
        .push_wire = "none",
        .pull_wire = "none",
        .partition = "none",
        .ranks = context->net.ranks,
        .nodes = context->net.nodes.n,
        .count = (MPI_Count)shape->count,
        .row = (MPI_Count)shape->row,
        .nnz_in = -1,
        .nnz_in_max = -1,
        .nnz_in_sum = -1,
        .nnz_out = -1,
        .bytes_sent = ring,
        .bytes_received = ring,
        .measured_seconds = -1,
    };
    return report;
}
