/* SPDX-License-Identifier: BSD-3-Clause */
/* Vectors in device memory. The device marks what is present, compacts or splits it, and scatters the
 * outcome, so that only elements travel; a scheme that works on vectors has them fetched, and written back
 * by whoever made the mirrors. */

#include "plan/steps.h"
#include "tensor/stretch.h"

static struct sar_mirror *input_of(struct sar_call *call)
{
    return &call->mirror[call->in_place ? 1 : 0];
}

static struct sar_load load_of(struct sar_pending *op)
{
    struct sar_call *call = op->call;
    return (struct sar_load){ &call->memory, &call->shape, input_of(call)->device, &op->marks };
}

enum sar_status sar_remote_mark(struct sar_pending *op)
{
    struct sar_call *call = op->call;
    return sar_offload_mark(&call->memory, &call->shape, input_of(call)->device, &op->marks);
}

/* Elements that could not be marked have no room. */
enum sar_status sar_remote_compact(struct sar_pending *op)
{
    struct sar_load load = load_of(op);
    if (op->call->verdict.status != SAR_OK)
        return SAR_OK;
    return sar_offload_compact(&load, op->room, &op->request.input);
}

/* What has been split, for as long as the call takes. */
struct parted {
    struct sar_run run;
    unsigned long long *first;
};

static enum sar_status split_all(struct sar_pending *op, const struct sar_division *split,
                                 struct parted *parted)
{
    const struct sar_shape *shape = &op->call->shape;
    struct sar_load load = load_of(op);
    size_t cells = (size_t)split->segments * split->map.parts;
    struct sar_span span = sar_request_span(&op->request, "partition");
    SAR_TRY(sar_request_take(&op->request, cells + 1, sizeof *parted->first, &parted->first));
    SAR_TRY(sar_offload_split(&load, split, op->room, &parted->run, parted->first));
    op->request.input.nnz = parted->run.nnz;
    op->request.minus_zero =
        sar_has_negative_zero(shape->base, parted->run.value, parted->run.nnz * shape->row);
    sar_request_span_end(&op->request, &span);
    return SAR_OK;
}

static enum sar_status give_parts(struct sar_splitter *splitter, const struct sar_division *split,
                                  uint32_t segment, struct sar_run parts[])
{
    struct sar_pending *op = splitter->owner;
    struct sar_shape shape = op->call->shape;
    shape.index_size = sizeof(uint32_t);
    if (segment == 0) {
        SAR_TRY(sar_request_take(&op->request, 1, sizeof(struct parted), &splitter->state));
        SAR_TRY(split_all(op, split, splitter->state));
    }
    struct parted *parted = splitter->state;
    const unsigned long long *first = parted->first + (size_t)segment * split->map.parts;
    for (uint32_t p = 0; p < split->map.parts; p++)
        parts[p] = sar_run_slice(&shape, &parted->run, (size_t)first[p], (size_t)first[p + 1]);
    return SAR_OK;
}

void sar_remote_offer(struct sar_pending *op)
{
    op->splitter = (struct sar_splitter){ give_parts, op, NULL };
    op->request.splitter = &op->splitter;
}

enum sar_status sar_remote_fetch(struct sar_pending *op)
{
    return sar_mirrors_read(&op->call->memory, op->call->mirror, 2);
}

enum sar_status sar_remote_write(struct sar_pending *op, const struct sar_delivery *outcome)
{
    struct sar_call *call = op->call;
    struct sar_mirror *mirror = &call->mirror[1];
    mirror->out = false;
    return sar_offload_write(&call->memory, &call->shape, mirror->device, outcome);
}

void sar_remote_end(struct sar_pending *op)
{
    sar_mirror_release(&op->room[0]);
    sar_mirror_release(&op->room[1]);
    sar_offload_unmark(&op->call->memory, &op->marks);
}
