/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of a call: look at this rank's input, agree on what all ranks must know, profile the tensor
 * when it is due, select, run the scheme, hand the outcome over. Everything that one rank alone may get
 * wrong before the scheme starts goes through the agreement, so that all ranks go on or none does.
 *
 * Nothing in here waits unless it is asked to: a call moves from phase to phase as often as somebody lets
 * it. */

#include "plan/call.h"

#include "base/steady.h"
#include "net/distance.h"
#include "net/window.h"
#include "plan/forward.h"
#include "plan/progress.h"
#include "plan/request.h"
#include "plan/steps.h"

static const double PAUSE = 20e-6; /* seconds in which a program may have used the caches for itself */

struct sar_span sar_call_span(const struct sar_pending *op, const char *name)
{
    const struct sar_traffic *traffic = &op->request.exchange.traffic;
    return sar_span_begin(name, traffic->bytes_sent, traffic->bytes_received);
}

void sar_call_span_end(const struct sar_pending *op, struct sar_span *span)
{
    const struct sar_traffic *traffic = &op->request.exchange.traffic;
    sar_span_end(span, &(struct sar_scene){ op->context->net.number, op->context->epoch, -1, -1,
                                            traffic->bytes_sent, traffic->bytes_received });
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
    struct sar_span span = sar_call_span(op, "write");
    sar_call_write(op, &span.work);
    sar_call_span_end(op, &span);
    sar_call_end_homework(op);
    op->call->nnz_out = op->request.output.nnz;
    op->context->left = PMPI_Wtime();
    sar_call_report(op, op->context->left - op->start);
    end(op, op->call->verdict);
}

static void begin_to_run(struct sar_pending *op)
{
    op->step = sar_call_span(op, op->request.scheme->name);
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
    op->step = sar_call_span(op, "profile");
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
    struct sar_span span = sar_call_span(op, "select");
    enum sar_status status = sar_call_select(op);
    sar_call_span_end(op, &span);
    if (status != SAR_OK) {
        end_badly(op, status, true);
        return;
    }
    sar_call_set_homework(op);
    settle_plan(op);
    sar_forward_plan(op);
    sar_call_open(op);
    op->opened = true;
    sar_call_compact(op);
    if (op->profile_due && op->call->dense_face && !op->request.scheme->on_dense_buffers)
        begin_to_profile(op);
    else
        begin_to_run(op);
}

/* All ranks know that one of them cannot share memory: the same input, by another scheme. What that takes
 * teaches nothing. */
static void begin_again(struct sar_pending *op)
{
    sar_context_part(op->context);
    sar_call_reopen(op);
    select_and_open(op);
    op->context->homework.record = NULL;
}

static void fail(struct sar_pending *op)
{
    enum sar_status status = op->request.exchange.status;
    if (op->context->net.window != NULL)
        op->context->net.window->lacking = sar_segment_lacks(status);
    if (status == SAR_UNSHARED)
        op->phase = SAR_PARTED;
    else
        end_badly(op, status, false);
}

static void run(struct sar_pending *op, bool block)
{
    bool done;
    sar_request_advance(&op->request, block, &done);
    if (!done)
        return;
    sar_call_span_end(op, &op->step);
    if (op->call->verdict.status != SAR_OK)
        op->phase = SAR_DONE;
    else if (op->request.exchange.status != SAR_OK)
        fail(op);
    else
        finish(op);
}

static void profile(struct sar_pending *op, bool block)
{
    bool done = false;
    if (op->status == SAR_OK)
        op->status = sar_profile_advance(&op->profiling, block, &op->record->profile, &done);
    if (op->status == SAR_OK && !done)
        return;
    sar_call_span_end(op, &op->step);
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
    if (op->profile_due) {
        sar_lessons_refresh(&op->record->lessons);
        op->record->lasts = 0;
    }
}

/* The agreement is over: false when the call is, too. */
static bool all_is_well(struct sar_pending *op)
{
    sar_call_span_end(op, &op->step);
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
    const struct sar_window *window = op->context->net.window;
    bool lacking = window != NULL && window->lacking;
    op->step = sar_call_span(op, "agree");
    op->agreement.mine = sar_call_ballot(op);
    op->agreement.mine.busy = lacking ? SAR_BUSY_LACKING : block ? SAR_BUSY_NOT : SAR_BUSY;
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
    if (op->agreement.all.busy == SAR_BUSY_LACKING)
        sar_context_part(op->context);
    if (op->agreement.all.busy == SAR_BUSY_NOT)
        sar_distance_watch(&op->context->net);
    look_up_record(op);
    if (op->profile_due && !op->call->dense_face) {
        sar_call_fetch(op);
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
    sar_call_open(op);
    sar_exchange_fail(&op->request.exchange, op->call->verdict.status);
    sar_call_compact(op);
    begin_to_run(op);
}

/* Coordinates are looked at, and sorted or given wider indices where that is needed. */
static struct sar_work ingesting(const struct sar_pending *op)
{
    const struct sar_coo *coo = &op->call->coo;
    const struct sar_run *run = &op->request.input;
    struct sar_work work = sar_work_on("ingest", coo->nnz, op->call->shape.element_size, 0);
    work.format = run->index == coo->indices ? "sorted" : run->value == coo->values ? "resized" : "unsorted";
    return work;
}

/* What a program that computed in between may have driven out of the caches. */
static void fetch(const struct sar_context *context)
{
    size_t rest = offsetof(struct sar_context, found);
    if (context->net.window != NULL)
        sar_fetch(context->net.window, sizeof *context->net.window);
    sar_fetch((const char *)context + rest, sizeof *context - rest);
    sar_fetch(&context->records[context->found], sizeof context->records[0]);
    sar_steady_fetch();
}

static void begin(struct sar_pending *op, bool block)
{
    sar_context_reset(op->context);
    op->context->epoch++;
    op->start = PMPI_Wtime();
    if (op->start - op->context->left > PAUSE)
        fetch(op->context);
    op->whole = sar_call_span(op, "call");
    struct sar_span span = sar_call_span(op, "prepare");
    sar_call_prepare(op);
    if (!op->call->dense_face && !op->call->remote)
        span.work = ingesting(op);
    sar_call_span_end(op, &span);
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
        else if (before == SAR_PARTED)
            begin_again(op);
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
        sar_call_span_end(op, &op->whole);
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
    op.step = sar_call_span(&op, "profile");
    op.status = sar_profile_start(&context->net, &call->shape, &run, slots, &context->arena, &op.profiling);
    if (op.status == SAR_OK)
        op.status = sar_profile_advance(&op.profiling, true, profile, &done);
    sar_call_span_end(&op, &op.step);
    if (op.status != SAR_OK)
        end_badly(&op, op.status, true);
}
