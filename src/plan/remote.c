/* SPDX-License-Identifier: BSD-3-Clause */
/* Vectors in device memory. The device marks what is present, compacts or splits it, and scatters the
 * outcome, so that only elements travel; a scheme that works on vectors has them pass through the host. */

#include "plan/steps.h"
#include "tensor/stretch.h"

static struct sar_mirror *input_of(struct sar_call *call)
{
    return &call->mirror[call->in_place ? 1 : 0];
}

static size_t block_room(const struct sar_pending *op)
{
    return sar_staging_room(op->policy->config.staging);
}

static struct sar_load load_of(struct sar_pending *op)
{
    struct sar_call *call = op->call;
    return (struct sar_load){ &call->memory, &call->shape,      input_of(call)->device,
                              &op->marks,    op->request.arena, block_room(op) };
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
    SAR_TRY(sar_offload_compact(&load, &op->arrival));
    op->request.input = op->arrival.run;
    return SAR_OK;
}

/* The segments' parts follow each other in the arrival. */
static enum sar_status split_all(struct sar_pending *op, const struct sar_division *split,
                                 unsigned long long **first)
{
    struct sar_load load = load_of(op);
    size_t cells = (size_t)split->segments * split->map.parts;
    struct sar_span span = sar_request_span(&op->request, "partition");
    SAR_TRY(sar_request_take(&op->request, cells + 1, sizeof **first, first));
    SAR_TRY(sar_offload_split(&load, split, &op->arrival, *first));
    op->request.input.nnz = op->arrival.run.nnz;
    sar_request_span_end(&op->request, &span);
    return SAR_OK;
}

/* A segment's elements, looked at as they come. */
static enum sar_status bring(struct sar_pending *op, size_t until)
{
    struct sar_arrival *arrival = &op->arrival;
    const struct sar_shape *shape = &op->call->shape;
    size_t here = arrival->here;
    SAR_TRY(sar_arrival_until(arrival, until));
    const char *value = (const char *)arrival->run.value + here * shape->element_size;
    op->request.minus_zero |= sar_has_negative_zero(shape->base, value, (arrival->here - here) * shape->row);
    return SAR_OK;
}

static enum sar_status give_parts(struct sar_splitter *splitter, const struct sar_division *split,
                                  uint32_t segment, struct sar_run parts[])
{
    struct sar_pending *op = splitter->owner;
    struct sar_shape shape = op->call->shape;
    shape.index_size = sizeof(uint32_t);
    unsigned long long *first = splitter->state;
    if (segment == 0)
        SAR_TRY(split_all(op, split, &first));
    splitter->state = first;
    first += (size_t)segment * split->map.parts;
    SAR_TRY(bring(op, (size_t)first[split->map.parts]));
    for (uint32_t p = 0; p < split->map.parts; p++)
        parts[p] = sar_run_slice(&shape, &op->arrival.run, (size_t)first[p], (size_t)first[p + 1]);
    return SAR_OK;
}

void sar_remote_offer(struct sar_pending *op)
{
    op->splitter = (struct sar_splitter){ give_parts, op, NULL };
    op->request.splitter = &op->splitter;
}

/* The caller's buffers may name mirrors: those of a plan that has travelled with others. */
static enum sar_status hand_over(struct sar_pending *op)
{
    struct sar_call *call = op->call;
    struct sar_dense_call *buffers = &op->request.buffers;
    buffers->sendbuf = call->in_place ? MPI_IN_PLACE : call->mirror[0].device;
    buffers->recvbuf = call->mirror[1].device;
    return sar_mirrors_read(&call->memory, NULL, 0);
}

enum sar_status sar_remote_pass(struct sar_pending *op)
{
    struct sar_call *call = op->call;
    struct sar_course course = { input_of(call)->device, call->mirror[1].device, call->mirror[1].bytes };
    if (call->direct)
        return hand_over(op);
    op->request.pipe = &op->pipe;
    return sar_pipe_open(&op->pipe, &call->memory, &course, op->request.piece);
}

enum sar_status sar_remote_write(struct sar_pending *op, const struct sar_delivery *outcome)
{
    struct sar_call *call = op->call;
    struct sar_destination to = { &call->memory, &call->shape, call->mirror[1].device, block_room(op) };
    return sar_offload_write(&to, outcome);
}

void sar_remote_end(struct sar_pending *op)
{
    if (op->arrival.memory.accelerator != NULL)
        sar_arrival_end(&op->arrival);
    (void)sar_pipe_close(&op->pipe);
    sar_offload_unmark(&op->call->memory, &op->marks);
}
