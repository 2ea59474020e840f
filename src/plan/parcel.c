/* SPDX-License-Identifier: BSD-3-Clause */
/* Vectors of enqueued calls, whose functions may not ask a device for anything: they come in parcels, and so
 * do outcomes go. What comes is elements or the vector, as the device found room. */

#include "plan/steps.h"

static struct sar_parcel *elements_of(const struct sar_call *call)
{
    struct sar_parcel *parcel = call->parcel[0];
    return parcel != NULL && sar_parcel_is_sparse(parcel) ? parcel : NULL;
}

bool sar_call_has_elements(const struct sar_call *call)
{
    return elements_of(call) != NULL;
}

/* Indices are put aside while a vector is made of elements. */
static enum sar_status take_spare(struct sar_context *context, const struct sar_call *call, void **spare)
{
    const struct sar_parcel *parcel = elements_of(call);
    if (parcel == NULL)
        return SAR_OK;
    return sar_arena_take(&context->arena, (size_t)*parcel->nnz, call->shape.index_size, spare);
}

enum sar_status sar_call_look_into(struct sar_pending *op)
{
    return take_spare(op->context, op->call, &op->spare);
}

enum sar_status sar_call_take_elements(struct sar_pending *op)
{
    const struct sar_call *call = op->call;
    const struct sar_parcel *parcel = elements_of(call);
    const void *buf = call->in_place ? call->buffers.recvbuf : call->buffers.sendbuf;
    struct sar_request *request = &op->request;
    if (parcel == NULL)
        return request->device->compact(&call->shape, buf, (size_t)op->agreed.nnz_max, request->arena,
                                        &request->input);
    request->input = sar_parcel_run(parcel);
    return SAR_OK;
}

void sar_call_pass(struct sar_pending *op)
{
    struct sar_parcel *parcel = elements_of(op->call);
    if (parcel != NULL)
        sar_parcel_expand(&op->call->shape, parcel, op->spare);
}

enum sar_status sar_call_make_whole(struct sar_context *context, struct sar_call *call)
{
    struct sar_parcel *parcel = elements_of(call);
    void *spare = NULL;
    if (parcel == NULL)
        return SAR_OK;
    sar_context_reset(context);
    SAR_TRY(take_spare(context, call, &spare));
    sar_parcel_expand(&call->shape, parcel, spare);
    return SAR_OK;
}

/* In place, elements that came stand where all of the outcome is to be. */
bool sar_call_send(struct sar_pending *op, const struct sar_delivery *outcome)
{
    const struct sar_call *call = op->call;
    struct sar_parcel *parcel = call->parcel[1];
    if (parcel == NULL)
        return false;
    if (sar_parcel_fill(&call->shape, outcome->runs, outcome->n, parcel))
        return true;
    if (!sar_call_has_elements(call))
        return false;
    op->request.device->expand(&call->shape, outcome->runs, outcome->n, call->buffers.recvbuf);
    return true;
}
