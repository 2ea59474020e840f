/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of a call: look at this rank's input, agree on what all ranks must know, profile the tensor
 * when it is due, select, run the scheme, hand the outcome over. Everything that one rank alone may get
 * wrong before the scheme starts goes through the agreement, so that all ranks go on or none does.
 *
 * Nothing in here waits unless it is asked to: a call moves from phase to phase as often as somebody lets
 * it. */

#include "plan/call.h"

#include <math.h>
#include <string.h>

#include "plan/request.h"
#include "plan/steps.h"

enum { ROW_PASSES = 4 };

/* Only floats have narrow forms. A product may leave their range long before the float's. */
static enum sar_values values_of(const struct sar_pending *op)
{
    const struct sar_shape *shape = &op->call->shape;
    bool travels = op->context->net.ranks > 1;
    bool narrows = op->call->native && shape->base == SAR_FLOAT && shape->op != SAR_PROD;
    return travels && narrows ? (enum sar_values)op->context->config.wire_values : SAR_VALUES_FULL;
}

/* Seconds for the work of one element: a row's further values pass through memory, from where they stand
 * into a message, out of another, into a sum and on. */
static double element_seconds(const struct sar_machine *machine, const struct sar_shape *shape)
{
    double bytes = shape->row > 1 ? (double)(shape->element_size - shape->element_size / shape->row) : 0;
    return machine->gamma + ROW_PASSES * bytes * machine->memory;
}

static void describe(struct sar_pending *op)
{
    const struct sar_context *c = op->context;
    const struct sar_call *call = op->call;
    struct sar_agreed *a = &op->agreed;
    *a = (struct sar_agreed){
        .shape = call->shape,
        .machine = c->machine,
        .nodes = c->net.nodes,
        .dense_face = call->dense_face,
        .in_place = call->in_place,
        .native = call->native,
        .imbalance = c->config.imbalance,
        .partition = c->partition,
        .grain = c->config.grain,
        .skewness = op->record->profiled ? fmax(op->record->profile.skewness, 1) : 1,
        .values = values_of(op),
        .segment = c->config.segment,
        .seed = c->seed,
        .push_wire = c->push_wire,
        .pull_wire = c->pull_wire,
        .push_smallest = strcmp(c->config.push_wire, "smallest") == 0,
        .pull_smallest = strcmp(c->config.pull_wire, "smallest") == 0,
        .nnz_mean = (double)op->agreement.all.nnz_sum / c->net.ranks,
        .nnz_max = (double)op->agreement.all.nnz_max,
    };
    a->machine.gamma = element_seconds(&c->machine, &call->shape);
    double density = call->shape.count == 0 ? 0 : a->nnz_mean / (double)call->shape.count;
    a->gamma =
        op->record->profiled ? op->record->profile.gamma : sar_gamma_independent(density, c->net.ranks);
}

static enum sar_status select_scheme(struct sar_pending *op)
{
    const struct sar_context *c = op->context;
    describe(op);
    SAR_TRY(sar_select(&op->agreed, &c->config, &op->record->lessons, c->forced, &op->selection));
    if (c->config.explain && c->net.rank == 0)
        sar_selection_explain(&op->selection, &op->agreed, &op->record->lessons,
                              op->record->profiled ? &op->record->profile : NULL, stderr);
    return SAR_OK;
}

/* The time of the call before this one, now known of all ranks. */
static void do_homework(struct sar_pending *op)
{
    struct sar_homework *h = &op->context->homework;
    if (h->record != NULL && op->agreement.all.seconds > 0)
        sar_lesson(&h->record->lessons, h->scheme, h->predicted, (double)op->agreement.all.seconds * 1e-9);
    h->record = NULL;
}

/* Room for the outcome of dense buffers: scratch, from which it is scattered. */
static enum sar_status dense_room(struct sar_sink *sink, struct sar_request *request, size_t nnz,
                                  struct sar_run *run)
{
    struct sar_run made;
    const struct sar_shape *shape = &request->agreed->shape;
    (void)sink;
    SAR_TRY(sar_run_take(shape, nnz, request->arena, &made));
    sar_run_copy(shape, run, &made);
    run->index = made.index;
    run->value = made.value;
    return SAR_OK;
}

/* A failure in here is this rank's alone until the first message tells the others. */
static void compact(struct sar_pending *op)
{
    struct sar_request *request = &op->request;
    const struct sar_call *call = op->call;
    const void *buf = call->in_place ? call->buffers.recvbuf : call->buffers.sendbuf;
    if (!call->dense_face || request->scheme->on_dense_buffers)
        return;
    enum sar_status status = request->device->compact(&call->shape, buf, (size_t)op->agreed.nnz_max,
                                                      request->arena, &request->input);
    sar_exchange_fail(&request->exchange, status);
    if (status == SAR_OK)
        request->minus_zero = sar_has_negative_zero(call->shape.base, request->input.value,
                                                    request->input.nnz * call->shape.row);
}

static uint32_t fingerprint(const struct sar_pending *op)
{
    uint32_t hash = (uint32_t)op->selection.runs;
    for (int i = 0; i < SAR_FIELDS; i++)
        hash = sar_murmur3_wide((uint64_t)op->call->field[i], hash);
    return hash;
}

static void open_request(struct sar_pending *op, bool block)
{
    struct sar_request *request = &op->request;
    request->scheme = sar_schemes[op->selection.runs];
    request->agreed = &op->agreed;
    request->net = &op->context->net;
    request->arena = request->passing = &op->context->arena;
    request->scratch = op->context->scratch;
    request->keep = &op->record->keep;
    request->recompute = op->context->config.recompute;
    request->buffers = op->call->buffers;
    request->blocking = block;
    request->epoch = op->context->epoch;
    request->fingerprint = fingerprint(op);
    op->dense_sink.room = dense_room;
    request->sink = op->call->dense_face ? &op->dense_sink : op->call->sink;
}

/* From here on ranks may fare differently: what later choices depend on is set before. */
static void set_homework(struct sar_pending *op)
{
    op->context->homework = (struct sar_homework){ op->record, op->selection.runs,
                                                   op->selection.prices[op->selection.runs].predicted, 0 };
    op->record->lessons.settled = op->selection.choice + 1;
}

static void end(struct sar_pending *op, struct sar_verdict verdict)
{
    op->call->verdict = verdict;
    op->phase = SAR_DONE;
}

static void end_badly(struct sar_pending *op, enum sar_status status, bool agreed)
{
    end(op, (struct sar_verdict){ .status = status, .agreed = agreed });
}

/* Time that passes while the caller computes says nothing about the scheme. */
static void finish(struct sar_pending *op)
{
    double seconds = MPI_Wtime() - op->start;
    sar_call_write(op);
    op->context->homework.nanoseconds = op->blocking ? (int64_t)(seconds * 1e9) : 0;
    op->call->nnz_out = op->request.output.nnz;
    sar_call_report(op, seconds);
    end(op, op->call->verdict);
}

static void run(struct sar_pending *op, bool block)
{
    bool done;
    sar_request_advance(&op->request, block, &done);
    if (!done)
        return;
    if (op->request.exchange.status != SAR_OK)
        end_badly(op, op->request.exchange.status, false);
    else
        finish(op);
}

static void begin_to_run(struct sar_pending *op)
{
    sar_request_begin(&op->request);
    op->phase = SAR_RUNNING;
}

/* Ranks that cannot count all know of it, and those that can go on without them. */
static void begin_to_profile(struct sar_pending *op)
{
    uint32_t slots = sar_profile_slots((uint64_t)op->agreement.all.nnz_sum);
    op->profile_due = false;
    op->phase = SAR_PROFILING;
    op->status = sar_profile_start(&op->context->net, &op->call->shape, &op->request.input, slots,
                                   &op->context->arena, &op->profiling);
}

/* Dense buffers are looked at once they have been compacted, which some schemes do without. */
static void select_and_open(struct sar_pending *op, bool block)
{
    enum sar_status status = select_scheme(op);
    if (status != SAR_OK) {
        end_badly(op, status, true);
        return;
    }
    set_homework(op);
    open_request(op, block);
    op->opened = true;
    compact(op);
    if (op->profile_due && op->call->dense_face && !op->request.scheme->on_dense_buffers)
        begin_to_profile(op);
    else
        begin_to_run(op);
}

static void profile(struct sar_pending *op, bool block)
{
    bool done = false;
    if (op->status == SAR_OK)
        op->status = sar_profile_advance(&op->profiling, block, &op->record->profile, &done);
    if (op->status == SAR_OK && !done)
        return;
    op->record->profiled |= op->status == SAR_OK;
    if (op->opened) {
        sar_exchange_fail(&op->request.exchange, op->status);
        begin_to_run(op);
    } else if (op->status != SAR_OK) {
        end_badly(op, op->status, true);
    } else {
        select_and_open(op, block);
    }
}

static void look_up_record(struct sar_pending *op)
{
    struct sar_context *context = op->context;
    op->record = sar_context_record(context, op->call->field);
    op->profile_due = op->record->calls++ % context->config.profile_every == 0 && context->net.ranks > 1;
    if (op->profile_due)
        sar_lessons_refresh(&op->record->lessons);
}

static void agree(struct sar_pending *op, bool block)
{
    bool done = false;
    if (op->status == SAR_OK)
        op->status = sar_net_test(&op->context->net, &op->agreement.request, block, &done);
    if (op->status == SAR_OK && !done)
        return;
    op->context->epoch++;
    if (op->status != SAR_OK) {
        end_badly(op, op->status, false);
        return;
    }
    op->call->verdict = sar_call_judge(&op->agreement.all);
    if (op->call->verdict.status != SAR_OK) {
        op->phase = SAR_DONE;
        return;
    }
    do_homework(op);
    look_up_record(op);
    if (op->profile_due && !op->call->dense_face)
        begin_to_profile(op);
    else
        select_and_open(op, block);
}

static void begin(struct sar_pending *op)
{
    sar_context_reset(op->context);
    op->start = MPI_Wtime();
    sar_call_prepare(op);
    op->agreement.mine = sar_call_ballot(op);
    op->status = sar_agree_start(&op->context->net, &op->agreement);
    op->phase = SAR_AGREEING;
}

/* Go on from phase to phase until one has to wait. */
static void advance(struct sar_pending *op, bool block)
{
    enum sar_phase before;
    do {
        before = op->phase;
        if (before == SAR_QUEUED)
            begin(op);
        else if (before == SAR_AGREEING)
            agree(op, block);
        else if (before == SAR_PROFILING)
            profile(op, block);
        else if (before == SAR_RUNNING)
            run(op, block);
    } while (op->phase != before);
}

void sar_call_start(struct sar_context *context, struct sar_call *call, struct sar_pending *op)
{
    op->context = context;
    op->call = call;
    op->request.device = &sar_device_host;
    if (context->first == NULL)
        context->first = op;
    else
        context->last->next = op;
    context->last = op;
}

void sar_call_advance(struct sar_context *context, bool block)
{
    struct sar_pending *op;
    while ((op = context->first) != NULL) {
        advance(op, block);
        if (op->phase != SAR_DONE)
            return;
        context->first = op->next;
        if (op->finished != NULL)
            op->finished(op);
        block = false;
    }
}

/* Agree at once. */
static enum sar_status agree_now(struct sar_pending *op)
{
    struct sar_context *context = op->context;
    bool done;
    op->agreement.mine = sar_call_ballot(op);
    SAR_TRY(sar_agree_start(&context->net, &op->agreement));
    SAR_TRY(sar_net_test(&context->net, &op->agreement.request, true, &done));
    context->epoch++;
    op->call->verdict = sar_call_judge(&op->agreement.all);
    return op->call->verdict.status;
}

void sar_call_profile(struct sar_context *context, struct sar_call *call, uint32_t slots,
                      struct sar_profile *profile)
{
    struct sar_pending op = { .context = context, .call = call };
    struct sar_run run = { NULL, NULL, 0 };
    bool done;
    sar_arena_reset(&context->arena);
    if (call->verdict.status == SAR_OK)
        call->verdict.status =
            sar_device_host.compact(&call->shape, call->buffers.sendbuf, 0, &context->arena, &run);
    enum sar_status status = agree_now(&op);
    if (status == SAR_OK) {
        do_homework(&op);
        status = sar_profile_start(&context->net, &call->shape, &run, slots, &context->arena, &op.profiling);
    }
    if (status == SAR_OK)
        status = sar_profile_advance(&op.profiling, true, profile, &done);
    if (status != SAR_OK && call->verdict.status == SAR_OK)
        end_badly(&op, status, true);
}
