/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of a call: look at this rank's input, agree on what all ranks must know, profile the tensor
 * when it is due, select, run the scheme, hand the outcome over. Everything that one rank alone may get
 * wrong before the scheme starts goes through the agreement, so that all ranks go on or none does. */

#include "plan/call.h"

#include <math.h>
#include <string.h>

#include "plan/request.h"

enum {
    SAMPLE_GROUPS = 256, /* of a dense buffer, looked at before the agreement */
    SAMPLE_GROUP = 64    /* elements each */
};

struct work {
    struct sar_context *context;
    struct sar_call *call;
    struct sar_record *record;
    struct sar_ballot all;
    struct sar_agreed agreed;
    struct sar_selection selection;
    struct sar_request request;
    struct sar_sink dense_sink;
    bool profile_due;
    double start;
};

/* Estimate a dense buffer's elements from groups that lie where a hash puts them. */
static size_t estimate_nnz(const struct sar_call *call)
{
    size_t count = (size_t)call->shape.count, seen = 0, present = 0;
    const unsigned char *buf = call->in_place ? call->buffers.recvbuf : call->buffers.sendbuf;
    if (count <= (size_t)SAMPLE_GROUPS * SAMPLE_GROUP)
        return sar_dense_count(&call->shape, buf, count);
    size_t stride = count / SAMPLE_GROUPS;
    for (uint32_t g = 0; g < SAMPLE_GROUPS; g++) {
        size_t at =
            g * stride + sar_hash_range(sar_mix32(g + 1), (uint32_t)(stride - SAMPLE_GROUP < UINT32_MAX
                                                                         ? stride - SAMPLE_GROUP + 1
                                                                         : UINT32_MAX));
        present += sar_dense_count(&call->shape, buf + at * call->shape.element_size, SAMPLE_GROUP);
        seen += SAMPLE_GROUP;
    }
    return (size_t)((double)present / (double)seen * (double)count);
}

static void fail(struct sar_call *call, enum sar_status status, int64_t value)
{
    if (call->verdict.status == SAR_OK)
        call->verdict = (struct sar_verdict){ .status = status, .value = value };
}

static size_t largest_state(void)
{
    size_t largest = 0;
    for (size_t i = 0; sar_schemes[i] != NULL; i++)
        largest = sar_schemes[i]->state_size > largest ? sar_schemes[i]->state_size : largest;
    return largest;
}

/* Everything local that may fail before the scheme. */
static void prepare(struct work *w)
{
    struct sar_call *call = w->call;
    struct sar_request *request = &w->request;
    long long bad = 0;
    if (call->verdict.status != SAR_OK)
        return;
    enum sar_status status = sar_exchange_open(&w->context->net, &w->context->arena, &request->exchange);
    if (status == SAR_OK)
        status = sar_arena_take_zeroed(&w->context->arena, 1, largest_state(), &request->state);
    if (status == SAR_OK && !call->dense_face)
        status = request->device->ingest(&call->shape, &call->coo, &w->context->arena, &request->input, &bad);
    fail(call, status, bad);
}

static struct sar_ballot make_ballot(const struct work *w)
{
    const struct sar_call *call = w->call;
    struct sar_ballot ballot = sar_ballot_make(&w->context->net, call->field);
    ballot.status = (int64_t)call->verdict.status;
    ballot.status_value = call->verdict.value;
    ballot.seconds = w->context->homework.nanoseconds;
    if (call->verdict.status != SAR_OK || !call->native)
        return ballot;
    if (call->dense_face)
        ballot.nnz_max = (int64_t)estimate_nnz(call);
    else
        ballot.nnz_max = (int64_t)w->request.input.nnz;
    ballot.nnz_sum = ballot.nnz_max;
    return ballot;
}

/* A difference between ranks explains more than what it led to on one of them, a wrong argument more than a
 * difference that it makes. */
static struct sar_verdict judge(const struct sar_ballot *all)
{
    static const enum sar_status mismatch[SAR_FIELDS] = {
        SAR_MISMATCHED_CALL, SAR_MISMATCHED_COUNT,    SAR_MISMATCHED_DATATYPE,
        SAR_MISMATCHED_OP,   SAR_MISMATCHED_IN_PLACE,
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

static bool agree(struct work *w)
{
    struct sar_agreement agreement = { .mine = make_ballot(w) };
    bool done;
    enum sar_status status = sar_agree_start(&w->context->net, &agreement);
    if (status == SAR_OK)
        status = sar_agree_finish(&w->context->net, &agreement, true, &done);
    w->all = agreement.all;
    w->call->verdict = judge(&w->all);
    if (status != SAR_OK)
        w->call->verdict = (struct sar_verdict){ .status = status };
    w->context->epoch++;
    return w->call->verdict.status == SAR_OK;
}

/* The time of the call before this one, now known of all ranks. */
static void do_homework(struct work *w)
{
    struct sar_homework *h = &w->context->homework;
    if (h->record != NULL && w->all.seconds > 0)
        sar_lesson(&h->record->lessons, h->scheme, h->predicted, (double)w->all.seconds * 1e-9);
    h->record = NULL;
}

static enum sar_status profile(struct work *w)
{
    uint32_t slots = sar_profile_slots((uint64_t)w->all.nnz_sum);
    SAR_TRY(sar_profile_measure(&w->context->net, &w->call->shape, &w->request.input, slots,
                                &w->context->arena, &w->record->profile));
    w->record->profiled = true;
    return SAR_OK;
}

/* Only floats have narrow forms. A product may leave their range long before the float's. */
static enum sar_values values_of(const struct work *w)
{
    const struct sar_shape *shape = &w->call->shape;
    bool travels = w->context->net.ranks > 1;
    bool narrows = w->call->native && shape->base == SAR_FLOAT && shape->op != SAR_PROD;
    return travels && narrows ? (enum sar_values)w->context->config.wire_values : SAR_VALUES_FULL;
}

static void describe(struct work *w)
{
    const struct sar_context *c = w->context;
    const struct sar_call *call = w->call;
    struct sar_agreed *a = &w->agreed;
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
        .skewness = w->record->profiled ? fmax(w->record->profile.skewness, 1) : 1,
        .values = values_of(w),
        .segment = c->config.segment,
        .seed = c->seed,
        .push_wire = c->push_wire,
        .pull_wire = c->pull_wire,
        .push_smallest = strcmp(c->config.push_wire, "smallest") == 0,
        .pull_smallest = strcmp(c->config.pull_wire, "smallest") == 0,
        .nnz_mean = (double)w->all.nnz_sum / c->net.ranks,
        .nnz_max = (double)w->all.nnz_max,
    };
    double density = call->shape.count == 0 ? 0 : a->nnz_mean / (double)call->shape.count;
    a->gamma = w->record->profiled ? w->record->profile.gamma : sar_gamma_independent(density, c->net.ranks);
}

static enum sar_status select_scheme(struct work *w)
{
    const struct sar_context *c = w->context;
    describe(w);
    SAR_TRY(sar_select(&w->agreed, &c->config, &w->record->lessons, c->forced, &w->selection));
    if (c->config.explain && c->net.rank == 0)
        sar_selection_explain(&w->selection, &w->agreed, &w->record->lessons,
                              w->record->profiled ? &w->record->profile : NULL, stderr);
    return SAR_OK;
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
static void compact(struct work *w)
{
    struct sar_request *request = &w->request;
    const struct sar_call *call = w->call;
    const void *buf = call->in_place ? call->buffers.recvbuf : call->buffers.sendbuf;
    if (!call->dense_face || request->scheme->on_dense_buffers)
        return;
    enum sar_status status = request->device->compact(&call->shape, buf, (size_t)w->agreed.nnz_max,
                                                      request->arena, &request->input);
    sar_exchange_fail(&request->exchange, status);
    if (status == SAR_OK)
        request->minus_zero = sar_has_negative_zero(call->shape.base, request->input.value,
                                                    request->input.nnz * call->shape.row);
}

static uint32_t fingerprint(const struct work *w)
{
    uint32_t hash = (uint32_t)w->selection.runs;
    for (int i = 0; i < SAR_FIELDS; i++)
        hash = sar_murmur3_wide((uint64_t)w->call->field[i], hash);
    return hash;
}

static void run_scheme(struct work *w)
{
    struct sar_request *request = &w->request;
    bool done = false;
    request->scheme = sar_schemes[w->selection.runs];
    request->agreed = &w->agreed;
    request->net = &w->context->net;
    request->arena = request->passing = &w->context->arena;
    request->scratch = w->context->scratch;
    request->keep = &w->record->keep;
    request->recompute = w->context->config.recompute;
    request->buffers = w->call->buffers;
    request->blocking = true;
    request->epoch = w->context->epoch;
    request->fingerprint = fingerprint(w);
    w->dense_sink.room = dense_room;
    request->sink = w->call->dense_face ? &w->dense_sink : w->call->sink;
    compact(w);
    if (w->call->dense_face && !request->scheme->on_dense_buffers && w->profile_due)
        sar_exchange_fail(&request->exchange, profile(w));
    sar_request_begin(request);
    while (!done)
        sar_request_advance(request, true, &done);
    if (request->exchange.status != SAR_OK)
        w->call->verdict = (struct sar_verdict){ .status = request->exchange.status };
}

/* In place, only the elements of this rank and of the outcome differ from zero. */
static void write_dense(struct work *w)
{
    const struct sar_call *call = w->call;
    const struct sar_request *request = &w->request;
    unsigned char *buf = call->buffers.recvbuf;
    if (!call->dense_face || request->output_in_place)
        return;
    if (call->in_place)
        sar_dense_clear(&call->shape, &request->input, buf);
    else
        memset(buf, 0, (size_t)call->shape.count * call->shape.element_size);
    request->device->scatter(&call->shape, &request->output, buf);
}

static void name(char *to, const char *from)
{
    snprintf(to, MPIX_SPARSE_NAME_MAX, "%s", from == NULL ? "none" : from);
}

static void report(struct work *w, double seconds)
{
    const struct sar_request *request = &w->request;
    const struct sar_notes *notes = &request->notes;
    MPIX_Sparse_report_t *r = &w->context->report;
    bool dense_buffers = w->call->dense_face && request->output_in_place;
    *r = (MPIX_Sparse_report_t){
        .grain = notes->grain,
        .ranks = w->context->net.ranks,
        .nodes = w->context->net.nodes,
        .count = (MPI_Count)w->call->shape.count,
        .row = (MPI_Count)w->call->shape.row,
        .nnz_in = dense_buffers ? -1 : (MPI_Count)request->input.nnz,
        .nnz_in_max = (MPI_Count)w->all.nnz_max,
        .nnz_in_sum = (MPI_Count)w->all.nnz_sum,
        .nnz_out = dense_buffers ? -1 : (MPI_Count)request->output.nnz,
        .bytes_sent = (MPI_Count)request->exchange.traffic.bytes_sent,
        .bytes_received = (MPI_Count)request->exchange.traffic.bytes_received,
        .header_bytes_sent = (MPI_Count)request->exchange.traffic.header_bytes_sent,
        .messages_sent = (MPI_Count)request->exchange.traffic.messages_sent,
        .push_imbalance = notes->push_imbalance,
        .pull_imbalance = notes->pull_imbalance,
        .predicted_seconds = w->selection.prices[w->selection.runs].price,
        .measured_seconds = seconds,
    };
    name(r->scheme, request->scheme->name);
    name(r->choice, sar_schemes[w->selection.choice]->name);
    name(r->push_wire, notes->push_wire);
    name(r->pull_wire, notes->pull_wire);
    name(r->partition, notes->partition);
    sar_selection_reason(&w->selection, r->reason, sizeof r->reason);
    w->context->reported = true;
}

/* From here on ranks may fare differently: what later choices depend on is set before. */
static void set_homework(struct work *w)
{
    w->context->homework = (struct sar_homework){ w->record, w->selection.runs,
                                                  w->selection.prices[w->selection.runs].predicted, 0 };
    w->record->lessons.settled = w->selection.choice + 1;
}

static void finish(struct work *w)
{
    double seconds = MPI_Wtime() - w->start;
    w->context->homework.nanoseconds = (int64_t)(seconds * 1e9);
    w->call->nnz_out = w->request.output.nnz;
    report(w, seconds);
}

void sar_call_run(struct sar_context *context, struct sar_call *call)
{
    struct work w = {
        .context = context, .call = call, .start = MPI_Wtime(), .request.device = &sar_device_host
    };
    enum sar_status status = SAR_OK;
    sar_context_reset(context);
    prepare(&w);
    if (!agree(&w))
        return;
    do_homework(&w);
    w.record = sar_context_record(context, call->field);
    w.profile_due = w.record->calls++ % context->config.profile_every == 0 && context->net.ranks > 1;
    if (w.profile_due)
        sar_lessons_refresh(&w.record->lessons);
    if (!call->dense_face && w.profile_due)
        status = profile(&w);
    if (status == SAR_OK)
        status = select_scheme(&w);
    if (status != SAR_OK) {
        call->verdict = (struct sar_verdict){ .status = status, .agreed = true };
        return;
    }
    set_homework(&w);
    run_scheme(&w);
    if (call->verdict.status != SAR_OK)
        return;
    write_dense(&w);
    finish(&w);
}

void sar_call_profile(struct sar_context *context, struct sar_call *call, uint32_t slots,
                      struct sar_profile *profile)
{
    struct work w = { .context = context, .call = call };
    struct sar_run run = { NULL, NULL, 0 };
    sar_arena_reset(&context->arena);
    if (call->verdict.status == SAR_OK)
        fail(call, sar_device_host.compact(&call->shape, call->buffers.sendbuf, 0, &context->arena, &run), 0);
    if (!agree(&w))
        return;
    do_homework(&w);
    enum sar_status status =
        sar_profile_measure(&context->net, &call->shape, &run, slots, &context->arena, profile);
    if (status != SAR_OK)
        call->verdict = (struct sar_verdict){ .status = status, .agreed = true };
}
