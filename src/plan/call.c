/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of a call: look at this rank's input, agree on what all ranks must know, profile the tensor
 * when it is due, select, run the scheme, hand the outcome over. Everything that one rank alone may get
 * wrong before the scheme starts goes through the agreement, so that all ranks go on or none does.
 *
 * Nothing in here waits unless it is asked to: a call moves from phase to phase as often as somebody lets
 * it. */

#include "plan/call.h"

#include <string.h>

#include "plan/forward.h"
#include "plan/progress.h"
#include "plan/request.h"
#include "plan/steps.h"

static struct sar_span begin_span(const struct sar_pending *op, const char *name)
{
    const struct sar_traffic *traffic = &op->request.exchange.traffic;
    return sar_span_begin(name, traffic->bytes_sent, traffic->bytes_received);
}

static void end_span(const struct sar_pending *op, struct sar_span *span)
{
    const struct sar_traffic *traffic = &op->request.exchange.traffic;
    sar_span_end(span, &(struct sar_scene){ op->context->net.number, op->context->epoch, -1, -1,
                                            traffic->bytes_sent, traffic->bytes_received });
}

/* What could not be marked is not offered: the request has failed. */
static bool takes_parts(const struct sar_pending *op)
{
    return op->request.scheme->splits && op->call->verdict.status == SAR_OK &&
           sar_agreed_map(&op->agreed).kind != SAR_PARTITION_RANGE;
}

/* Coordinates of a device, where the host is to look at them. */
static void fetch(struct sar_pending *op)
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

/* A failure in here is this rank's alone until the first message tells the others. */
static void compact(struct sar_pending *op)
{
    struct sar_request *request = &op->request;
    const struct sar_call *call = op->call;
    const void *buf = call->in_place ? call->buffers.recvbuf : call->buffers.sendbuf;
    request->raw = call->dense_face && request->scheme->compacts && !op->profile_due && !call->remote;
    bool parts = call->remote && takes_parts(op);
    if (request->raw || (parts && !op->profile_due && sar_remote_offer(op)))
        return;
    if (!call->dense_face) {
        fetch(op);
        return;
    }
    if (request->scheme->on_dense_buffers) {
        sar_exchange_fail(&request->exchange, call->remote ? sar_remote_pass(op) : SAR_OK);
        return;
    }
    struct sar_span span = begin_span(op, "compact");
    enum sar_status status = call->remote
                                 ? sar_remote_compact(op)
                                 : request->device->compact(&call->shape, buf, (size_t)op->agreed.nnz_max,
                                                            request->arena, &request->input);
    sar_exchange_fail(&request->exchange, status);
    if (status == SAR_OK)
        request->minus_zero = sar_has_negative_zero(call->shape.base, request->input.value,
                                                    request->input.nnz * call->shape.row);
    if (parts && status == SAR_OK)
        sar_remote_offer(op);
    end_span(op, &span);
}

static uint32_t fingerprint(const struct sar_pending *op)
{
    uint32_t hash = (uint32_t)op->selection.runs;
    for (int i = 0; i < SAR_FIELDS; i++)
        hash = sar_murmur3_wide((uint64_t)op->call->field[i], hash);
    return hash;
}

/* MPI's blocking and nonblocking collectives do not match each other: which it is must be agreed on. */
static void open_request(struct sar_pending *op)
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
    request->blocking = op->agreement.all.busy == 0;
    request->piece = op->agreement.all.staged != 0 ? sar_staging_room(op->policy->config.staging) : 0;
    request->epoch = op->context->epoch;
    request->fingerprint = fingerprint(op);
    op->scratch = sar_sink_in_buffers(&op->context->outcome[0], &op->context->outcome[1]);
    request->sink = op->call->dense_face ? &op->scratch.sink : op->call->sink;
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

static void finish(struct sar_pending *op)
{
    struct sar_span span = begin_span(op, "write");
    sar_call_write(op);
    end_span(op, &span);
    sar_call_end_homework(op);
    op->call->nnz_out = op->request.output.nnz;
    sar_call_report(op, PMPI_Wtime() - op->start);
    end(op, op->call->verdict);
}

static void run(struct sar_pending *op, bool block)
{
    bool done;
    sar_request_advance(&op->request, block, &done);
    if (!done)
        return;
    end_span(op, &op->step);
    if (op->call->verdict.status != SAR_OK)
        op->phase = SAR_DONE;
    else if (op->request.exchange.status != SAR_OK)
        end_badly(op, op->request.exchange.status, false);
    else
        finish(op);
}

static void begin_to_run(struct sar_pending *op)
{
    op->step = begin_span(op, op->request.scheme->name);
    sar_request_begin(&op->request);
    op->phase = SAR_RUNNING;
}

/* Ranks that cannot count all know of it, and those that can go on without them. */
static void begin_to_profile(struct sar_pending *op)
{
    uint32_t slots = sar_profile_slots((uint64_t)op->agreement.all.nnz_sum);
    op->profile_due = false;
    op->phase = SAR_PROFILING;
    op->mark = sar_call_seconds(op);
    op->step = begin_span(op, "profile");
    op->status = sar_profile_start(&op->context->net, &op->call->shape, &op->request.input, slots,
                                   &op->context->arena, &op->profiling);
}

/* Up to the call that is profiled next. */
static void settle_plan(struct sar_pending *op)
{
    struct sar_plan *plan = op->plan;
    uint64_t every = op->policy->config.profile_every;
    if (plan == NULL || !op->selection.settled)
        return;
    plan->steady = (every - plan->record.calls % every) % every;
    plan->all = op->agreement.all;
    plan->agreed = op->agreed;
    plan->selection = op->selection;
}

/* Dense buffers are looked at once they have been compacted, which some schemes do without. */
static void select_and_open(struct sar_pending *op)
{
    struct sar_span span = begin_span(op, "select");
    enum sar_status status = sar_call_select(op);
    end_span(op, &span);
    if (status != SAR_OK) {
        end_badly(op, status, true);
        return;
    }
    sar_call_set_homework(op);
    settle_plan(op);
    sar_forward_plan(op);
    open_request(op);
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
    end_span(op, &op->step);
    op->apart += sar_call_seconds(op) - op->mark;
    op->record->profiled |= op->status == SAR_OK;
    op->record->predictions.known = false;
    sar_call_tell_profile(op);
    if (op->opened) {
        sar_exchange_fail(&op->request.exchange, op->status);
        begin_to_run(op);
    } else if (op->status != SAR_OK) {
        end_badly(op, op->status, true);
    } else {
        select_and_open(op);
    }
}

static void look_up_record(struct sar_pending *op)
{
    uint64_t every = op->policy->config.profile_every;
    op->record = op->plan != NULL ? &op->plan->record : sar_context_record(op->context, op->call->field);
    op->profile_due = op->record->calls++ % every == 0 && op->context->net.ranks > 1;
    if (op->profile_due)
        sar_lessons_refresh(&op->record->lessons);
}

/* The agreement is over: false when the call is, too. */
static bool all_is_well(struct sar_pending *op)
{
    end_span(op, &op->step);
    if (op->status != SAR_OK) {
        end_badly(op, op->status, false);
        return false;
    }
    op->call->verdict = sar_call_judge(&op->agreement.all);
    if (op->call->verdict.status != SAR_OK) {
        op->phase = SAR_DONE;
        return false;
    }
    op->entry = sar_call_seconds(op);
    sar_call_do_homework(op);
    return true;
}

static void begin_to_agree(struct sar_pending *op, bool block)
{
    op->step = begin_span(op, "agree");
    op->agreement.mine = sar_call_ballot(op);
    op->agreement.mine.busy = !block;
    op->status = sar_agree_start(&op->context->net, &op->agreement);
    op->phase = SAR_AGREEING;
}

static void agree(struct sar_pending *op, bool block)
{
    bool done = false;
    if (op->status == SAR_OK)
        op->status = sar_agree_test(&op->context->net, &op->agreement, block, &done);
    if (op->status == SAR_OK && !done)
        return;
    if (!all_is_well(op))
        return;
    look_up_record(op);
    if (op->profile_due && !op->call->dense_face) {
        fetch(op);
        begin_to_profile(op);
    } else {
        select_and_open(op);
    }
}

/* What was agreed before holds. A rank that cannot go on says so in place of its messages. */
static void begin_steadily(struct sar_pending *op)
{
    struct sar_plan *plan = op->plan;
    plan->steady--;
    plan->record.calls++;
    op->agreement.all = plan->all;
    op->agreed = plan->agreed;
    op->selection = plan->selection;
    op->record = &plan->record;
    open_request(op);
    sar_exchange_fail(&op->request.exchange, op->call->verdict.status);
    compact(op);
    begin_to_run(op);
}

static void begin(struct sar_pending *op, bool block)
{
    sar_context_reset(op->context);
    op->context->epoch++;
    op->start = PMPI_Wtime();
    op->whole = begin_span(op, "call");
    struct sar_span span = begin_span(op, "prepare");
    sar_call_prepare(op);
    end_span(op, &span);
    if (op->plan != NULL && op->plan->steady > 0) {
        begin_steadily(op);
        return;
    }
    begin_to_agree(op, block);
}

/* Go on from phase to phase until one has to wait. */
static void advance(struct sar_pending *op, bool block)
{
    enum sar_phase before;
    do {
        before = op->phase;
        if (before == SAR_QUEUED)
            begin(op, block);
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
    op->policy = op->plan != NULL ? &op->plan->policy : &context->policy;
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
        end_span(op, &op->whole);
        sar_remote_end(op);
        context->first = op->next;
        if (op->finished != NULL)
            op->finished(op);
        block = false;
    }
}

/* Others may come only when calls in flight on other communicators are done. */
static bool agree_now(struct sar_pending *op)
{
    const struct sar_net *net = &op->context->net;
    bool done = false;
    int looks = 0;
    op->context->epoch++;
    begin_to_agree(op, true);
    while (op->status == SAR_OK && !done)
        op->status = sar_agree_test(net, &op->agreement, sar_progress_meanwhile(net, &looks), &done);
    return all_is_well(op);
}

/* A look at the buffers tells nothing of those to come. */
void sar_call_check(struct sar_context *context, struct sar_call *call)
{
    struct sar_pending op = { .context = context, .call = call };
    bool native = call->native;
    call->native = false;
    agree_now(&op);
    call->native = native;
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
    if (!agree_now(&op))
        return;
    op.step = begin_span(&op, "profile");
    op.status = sar_profile_start(&context->net, &call->shape, &run, slots, &context->arena, &op.profiling);
    if (op.status == SAR_OK)
        op.status = sar_profile_advance(&op.profiling, true, profile, &done);
    end_span(&op, &op.step);
    if (op.status != SAR_OK)
        end_badly(&op, op.status, true);
}
