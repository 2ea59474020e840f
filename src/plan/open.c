/* SPDX-License-Identifier: BSD-3-Clause */
/* The request that a call hands to its scheme, once that is selected, and the input in it. */

#include <string.h>

#include "plan/steps.h"

static uint32_t fingerprint(const struct sar_pending *op)
{
    uint32_t hash = (uint32_t)op->selection.runs;
    for (int i = 0; i < SAR_FIELDS; i++)
        hash = sar_murmur3_wide((uint64_t)op->call->field[i], hash);
    return hash;
}

/* MPI's blocking and nonblocking collectives do not match each other: which it is must be agreed on. */
void sar_call_open(struct sar_pending *op)
{
    struct sar_request *request = &op->request;
    request->scheme = sar_schemes[op->selection.runs];
    request->agreed = &op->agreed;
    request->net = &op->context->net;
    request->arena = request->passing = &op->context->arena;
    request->scratch = op->context->scratch;
    request->keep = &op->record->keep;
    request->recompute = op->policy->config.recompute;
    request->buffers = op->call->buffers;
    request->blocking = op->agreement.all.busy == SAR_BUSY_NOT;
    request->gives_way = true;
    request->votes = op->agreement.all.staged != SAR_STAGED_NOT;
    request->piece = op->agreement.all.staged == SAR_STAGED_PIECEWISE ? op->call->room : 0;
    request->epoch = op->context->epoch;
    request->fingerprint = fingerprint(op);
    op->scratch = sar_sink_in_buffers(&op->context->outcome[0], &op->context->outcome[1]);
    request->sink = op->call->dense_face ? &op->scratch.sink : op->call->sink;
}

/* Coordinates that the scheme has moved are looked at again. */
static void ingest_again(struct sar_pending *op)
{
    const struct sar_call *call = op->call;
    struct sar_request *request = &op->request;
    long long bad = 0;
    enum sar_status status =
        request->device->ingest(&call->shape, &call->coo, &op->context->arena, &request->input, &bad);
    sar_exchange_fail(&request->exchange, status);
    if (status != SAR_OK)
        request->input = (struct sar_run){ NULL, NULL, 0 };
}

/* Elements of the host's vectors may lie where the scheme had them. */
void sar_call_reopen(struct sar_pending *op)
{
    struct sar_request before = op->request;
    memset(before.state, 0, sar_call_state_size());
    before.exchange.status = SAR_OK;
    op->request =
        (struct sar_request){ .device = before.device, .state = before.state, .exchange = before.exchange };
    if (!op->call->dense_face || op->call->remote)
        op->request.input = before.input;
    op->request.minus_zero = op->call->remote && before.minus_zero;
    if (before.input_moved)
        ingest_again(op);
}

/* What could not be marked is not offered: the request has failed. */
static bool takes_parts(const struct sar_pending *op)
{
    return op->request.scheme->splits && op->call->verdict.status == SAR_OK &&
           sar_agreed_map(&op->agreed).kind != SAR_PARTITION_RANGE;
}

void sar_call_fetch(struct sar_pending *op)
{
    struct sar_request *request = &op->request;
    long long bad = 0;
    if (!op->call->remote || op->call->dense_face || op->call->verdict.status != SAR_OK)
        return;
    enum sar_status status = sar_remote_fetch(op, &bad);
    sar_exchange_fail(&request->exchange, status);
    if (status != SAR_OK)
        request->input = (struct sar_run){ NULL, NULL, 0 };
}

void sar_call_compact(struct sar_pending *op)
{
    struct sar_request *request = &op->request;
    const struct sar_call *call = op->call;
    const struct sar_scheme *scheme = request->scheme;
    bool own = call->dense_face && scheme->compact != NULL && !call->remote && !sar_call_has_elements(call);
    request->raw = own && !op->profile_due;
    request->may_fold = call->dense_face && !call->remote && call->parcel[1] == NULL;
    bool parts = call->remote && takes_parts(op);
    if (request->raw || (parts && !op->profile_due && sar_remote_offer(op)))
        return;
    if (own) {
        sar_exchange_fail(&request->exchange, scheme->compact(request));
        return;
    }
    if (!call->dense_face) {
        sar_call_fetch(op);
        return;
    }
    if (scheme->on_dense_buffers) {
        sar_call_pass(op);
        sar_exchange_fail(&request->exchange, call->remote ? sar_remote_pass(op) : SAR_OK);
        return;
    }
    struct sar_span span = sar_call_span(op, "compact");
    enum sar_status status = call->remote ? sar_remote_compact(op) : sar_call_take_elements(op);
    sar_exchange_fail(&request->exchange, status);
    if (status == SAR_OK)
        request->minus_zero = sar_has_negative_zero(call->shape.base, request->input.value,
                                                    request->input.nnz * call->shape.row);
    if (parts && status == SAR_OK)
        sar_remote_offer(op);
    if (!call->remote)
        span.work = sar_work_on("compact", request->input.nnz, call->shape.element_size,
                                call->shape.count * call->shape.row);
    sar_call_span_end(op, &span);
}
