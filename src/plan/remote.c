/* SPDX-License-Identifier: BSD-3-Clause */
/* Arrays in device memory. Of vectors the device marks what is present, compacts or splits it, and scatters
 * the outcome, so that only elements travel; or, where it also reduces and codes them, only messages. A
 * scheme that works on vectors has them pass through the host. Coordinates are sorted there; they come to the
 * host unless they are split, reduced and coded there, too. */

#include "plan/steps.h"
#include "scheme/outsource.h"
#include "tensor/stretch.h"

enum {
    MOST_SLOTS = 1024, /* of the index space for an element of the fullest rank */
    MOST_PINNED = 64   /* blocks of a ring, for messages of all calls under way */
};

static struct sar_mirror *input_of(struct sar_call *call)
{
    return &call->mirror[call->in_place ? 1 : 0];
}

static struct sar_load load_of(struct sar_pending *op)
{
    struct sar_call *call = op->call;
    return (struct sar_load){ &call->memory, &call->shape,      input_of(call)->device,
                              &op->marks,    op->request.arena, call->room };
}

static enum sar_status gather(struct sar_pending *op, long long *bad)
{
    struct sar_call *call = op->call;
    bool ascends;
    SAR_TRY(sar_offload_ingest(&call->memory, &call->shape, &call->coo, &op->arrival, &ascends));
    op->request.input.nnz = op->arrival.from.nnz;
    return ascends ? SAR_OK : sar_remote_fetch(op, bad);
}

enum sar_status sar_remote_look(struct sar_pending *op, long long *bad)
{
    struct sar_call *call = op->call;
    if (!call->dense_face)
        return gather(op, bad);
    return sar_offload_mark(&call->memory, &call->shape, input_of(call)->device, &op->marks);
}

enum sar_status sar_remote_fetch(struct sar_pending *op, long long *bad)
{
    struct sar_call *call = op->call;
    struct sar_arrival *arrival = &op->arrival;
    struct sar_arena *arena = &op->context->arena;
    struct sar_run *input = &op->request.input;
    if (input->nnz == 0 || input->index != NULL)
        return SAR_OK;
    SAR_TRY(sar_arrival_begin(arrival, call->room, arena));
    SAR_TRY(sar_arrival_until(arrival, arrival->from.nnz));
    struct sar_coo here = { arrival->run.index, arrival->run.value, arrival->run.nnz, call->coo.type };
    return op->request.device->ingest(&call->shape, &here, arena, input, bad);
}

/* Elements that could not be marked have no room. */
enum sar_status sar_remote_compact(struct sar_pending *op)
{
    struct sar_load load = load_of(op);
    if (op->call->verdict.status != SAR_OK || op->request.input.index != NULL)
        return SAR_OK;
    SAR_TRY(sar_offload_compact(&load, &op->arrival));
    op->request.input = op->arrival.run;
    return SAR_OK;
}

/* What has been split, for as long as the call takes. The segments' parts follow each other. */
struct parted {
    struct sar_run run; /* of which elements arrive on the host, or are the worker's */
    unsigned long long *first;
};

static enum sar_status split_to_host(struct sar_pending *op, const struct sar_load *load,
                                     const struct sar_division *split, struct parted *parted)
{
    SAR_TRY(sar_offload_split(load, split, &op->arrival, parted->first));
    parted->run = op->arrival.run;
    return SAR_OK;
}

static enum sar_status split_there(struct sar_pending *op, const struct sar_load *load,
                                   const struct sar_division *split, struct parted *parted)
{
    struct sar_worker *worker = op->request.worker;
    struct sar_shape shape = op->call->shape;
    if (op->call->dense_face)
        return sar_worker_split(worker, load, split, &parted->run, parted->first, &op->request.minus_zero);
    shape.index_size = op->arrival.index_size;
    return sar_worker_partition(worker, &shape, split, &op->arrival.from, &parted->run, parted->first);
}

static enum sar_status split_all(struct sar_pending *op, const struct sar_division *split,
                                 struct parted *parted)
{
    struct sar_load load = load_of(op);
    struct sar_request *request = &op->request;
    size_t cells = (size_t)split->segments * split->map.parts;
    struct sar_span span = sar_request_span(request, "partition");
    SAR_TRY(sar_request_take(request, cells + 1, sizeof *parted->first, &parted->first));
    SAR_TRY(request->worker == NULL ? split_to_host(op, &load, split, parted)
                                    : split_there(op, &load, split, parted));
    request->input.nnz = parted->run.nnz;
    sar_request_span_end(request, &span);
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
    if (segment == 0) {
        SAR_TRY(sar_request_take(&op->request, 1, sizeof(struct parted), &splitter->state));
        SAR_TRY(split_all(op, split, splitter->state));
    }
    const struct parted *parted = splitter->state;
    const unsigned long long *first = parted->first + (size_t)segment * split->map.parts;
    if (op->request.worker == NULL)
        SAR_TRY(bring(op, (size_t)first[split->map.parts]));
    for (uint32_t p = 0; p < split->map.parts; p++)
        parts[p] = sar_run_slice(&shape, &parted->run, (size_t)first[p], (size_t)first[p + 1]);
    return SAR_OK;
}

/* Where bitmaps of the index space, which devices reduce in, are small beside the elements of coordinates,
 * and these can be numbered as sorting does. */
static bool is_dense_enough(const struct sar_pending *op)
{
    const struct sar_agreed *a = &op->agreed;
    return a->dense_face || ((double)a->shape.count <= MOST_SLOTS * a->nnz_max && a->nnz_max <= UINT32_MAX);
}

/* A message is some kernels to a device, each of which takes microseconds to begin. */
static bool is_worth_a_worker(const struct sar_pending *op)
{
    double each = op->agreed.nnz_max / op->agreed.machine.ranks;
    return each >= (double)op->policy->config.cuda_least && sar_agreed_suits_devices(&op->agreed) &&
           is_dense_enough(op);
}

bool sar_remote_offer(struct sar_pending *op)
{
    bool worth = is_worth_a_worker(op), here = op->request.input.index != NULL;
    if (!worth && (here || !op->call->dense_face))
        return false;
    op->splitter = (struct sar_splitter){ give_parts, op, NULL };
    op->request.splitter = &op->splitter;
    if (worth) {
        sar_worker_open(&op->worker, &op->call->memory, op->request.arena, op->context->messages,
                        MOST_PINNED * op->call->room);
        op->request.worker = &op->worker;
        op->worker.direct = op->call->aware;
        if (op->call->aware)
            op->request.exchange.landing = &op->worker.berths.supply;
    }
    return true;
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
    struct sar_destination to = { &call->memory, &call->shape, call->mirror[1].device, call->room };
    return sar_offload_write(&to, outcome);
}

/* No two pieces have an index in common, so that reducing them does no more than to put them in order. */
enum sar_status sar_remote_assemble(struct sar_pending *op)
{
    struct sar_request *request = &op->request;
    struct sar_shape shape = sar_outsource_shape(request);
    struct sar_run out;
    SAR_TRY(request->sink->lend(request->sink, &op->call->memory, &shape, request->output.nnz, &out));
    SAR_TRY(sar_worker_reduce_into(request->worker, &shape, request->pieces, request->pieces_n, &out));
    return sar_worker_wait(request->worker);
}

void sar_remote_end(struct sar_pending *op)
{
    sar_worker_end(&op->worker);
    if (op->arrival.memory.accelerator != NULL)
        sar_arrival_end(&op->arrival);
    (void)sar_pipe_close(&op->pipe);
    sar_offload_unmark(&op->call->memory, &op->marks);
}
