/* SPDX-License-Identifier: BSD-3-Clause */
/* The first look at a call: on this rank, and at what all ranks have told. */

#include <math.h>

#include "net/halves.h"
#include "plan/steps.h"

enum {
    SAMPLE_MOST = 16384, /* elements of a dense buffer that are looked at before the agreement */
    SAMPLE_SHARE = 16,   /* and one in so many, */
    SAMPLE_BYTES = 65536 /* where it has more bytes than these */
};

static size_t estimate_nnz(const struct sar_pending *op)
{
    const struct sar_call *call = op->call;
    const struct sar_shape *shape = &call->shape;
    const void *buf = call->in_place ? call->buffers.recvbuf : call->buffers.sendbuf;
    size_t count = (size_t)shape->count, share = count / SAMPLE_SHARE;
    if (call->remote)
        return op->marks.nnz;
    if (sar_call_has_elements(call))
        return (size_t)*call->parcel[0]->nnz;
    bool small = count * shape->element_size <= SAMPLE_BYTES;
    return sar_dense_estimate(shape, buf, small ? count : share < SAMPLE_MOST ? share : SAMPLE_MOST);
}

void sar_call_interpret(struct sar_call *call, const struct sar_policy *policy)
{
    static const enum sar_base bases[] = { [SAR_ELEMENT_BF16] = SAR_BF16, [SAR_ELEMENT_FP16] = SAR_FP16 };
    struct sar_shape *shape = &call->shape;
    int element = policy->config.element;
    call->room = sar_staging_room(policy->config.staging);
    if (call->narrow && element != SAR_ELEMENT_INTEGER) {
        shape->base = bases[element];
        shape->kernels = sar_kernels_of(shape->base, shape->op);
        call->native = shape->kernels != NULL;
        if (!call->native)
            sar_blame(&call->verdict, SAR_UNDEFINED_OP, call->field[SAR_FIELD_OP]);
    }
    if (call->native && (shape->base == SAR_BF16 || shape->base == SAR_FP16)) {
        call->buffers.datatype = MPI_UINT16_T; /* some that MPI has for halves it cannot even copy */
        call->buffers.op = sar_half_op(shape->base, shape->op);
    }
}

size_t sar_call_state_size(void)
{
    size_t largest = 0;
    for (size_t i = 0; sar_schemes[i] != NULL; i++)
        largest = sar_schemes[i]->state_size > largest ? sar_schemes[i]->state_size : largest;
    return largest;
}

void sar_call_prepare(struct sar_pending *op)
{
    struct sar_call *call = op->call;
    struct sar_request *request = &op->request;
    long long bad = 0;
    enum sar_status status = sar_exchange_open(&op->context->net, &op->context->arena, &request->exchange);
    if (status == SAR_OK)
        status = sar_arena_take_zeroed(&op->context->arena, 1, sar_call_state_size(), &request->state);
    sar_blame(&call->verdict, status, 0);
    if (call->verdict.status != SAR_OK)
        return;
    if (!call->remote && !call->dense_face)
        request->before_input = sar_arena_mark(&op->context->arena);
    if (call->remote)
        status = sar_remote_look(op, &bad);
    else if (call->dense_face)
        status = sar_call_look_into(op);
    else
        status =
            request->device->ingest(&call->shape, &call->coo, &op->context->arena, &request->input, &bad);
    sar_blame(&call->verdict, status, bad);
}

/* Starts of plans need not agree again, so that what fails in them is known to this rank alone. */
static enum sar_staged staged(const struct sar_pending *op)
{
    const struct sar_call *call = op->call;
    bool planned = op->plan != NULL && (call->gathered || call->memory.accelerator != NULL);
    if (!call->dense_face)
        return SAR_STAGED_NOT;
    if (call->remote && !call->direct)
        return SAR_STAGED_PIECEWISE;
    return call->direct || planned ? SAR_STAGED_WHOLE : SAR_STAGED_NOT;
}

struct sar_ballot sar_call_ballot(const struct sar_pending *op)
{
    const struct sar_call *call = op->call;
    struct sar_ballot ballot = sar_ballot_make(&op->context->net, call->field);
    ballot.status = (int64_t)call->verdict.status;
    ballot.status_value = call->verdict.value;
    ballot.staged = staged(op);
    ballot.seconds = op->context->homework.nanoseconds;
    ballot.entry = op->context->homework.entry;
    if (call->verdict.status != SAR_OK || !call->native)
        return ballot;
    if (call->dense_face)
        ballot.nnz_max = (int64_t)estimate_nnz(op);
    else
        ballot.nnz_max = (int64_t)op->request.input.nnz;
    ballot.nnz_sum = ballot.nnz_max;
    return ballot;
}

/* A difference between ranks explains more than what it led to on one of them, a wrong argument more than a
 * difference that it makes. */
struct sar_verdict sar_call_judge(const struct sar_ballot *all)
{
    static const enum sar_status mismatch[SAR_FIELDS] = {
        SAR_MISMATCHED_CALL,     SAR_MISMATCHED_PLANS, SAR_MISMATCHED_COUNT,
        SAR_MISMATCHED_DATATYPE, SAR_MISMATCHED_OP,    SAR_MISMATCHED_IN_PLACE,
    };
    struct sar_verdict v = { .agreed = true,
                             .status = (enum sar_status)all->status,
                             .rank = all->status_rank,
                             .value = all->status_value };
    for (int i = 0; v.status == SAR_OK && i < SAR_FIELDS; i++) {
        if (all->field[i].low == all->field[i].high)
            continue;
        v = (struct sar_verdict){ .agreed = true,
                                  .status = mismatch[i],
                                  .low = all->field[i].low,
                                  .high = all->field[i].high,
                                  .low_rank = all->field[i].low_rank,
                                  .high_rank = all->field[i].high_rank };
    }
    return v;
}
