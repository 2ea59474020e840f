/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "scheme/outsource.h"
#include "scheme/scheme.h"
#include "tensor/stretch.h"
#include "wire/narrow.h"

_Static_assert((int)SAR_SCRATCHES == SAR_WORKER_TURNS, "a worker keeps messages as long as others do");

const struct sar_scheme *const sar_schemes[] = {
    &sar_scheme_dense,
    &sar_scheme_allgather,
    &sar_scheme_recursive_doubling,
    &sar_scheme_balanced,
    &sar_scheme_split_allgather,
    &sar_scheme_split_dense,
    &sar_scheme_ring,
    &sar_scheme_hybrid,
    &sar_scheme_omni,
    &sar_scheme_sparse_ps,
    &sar_scheme_oktopk,
    &sar_scheme_shared,
    &sar_scheme_two_level,
    NULL,
};

const struct sar_scheme *sar_scheme_find(const char *name)
{
    for (size_t i = 0; sar_schemes[i] != NULL; i++)
        if (strcmp(sar_schemes[i]->name, name) == 0)
            return sar_schemes[i];
    return NULL;
}

const char *sar_sparse_obstacle(const struct sar_agreed *agreed)
{
    return agreed->native ? NULL : "type or op";
}

struct sar_span sar_request_span(const struct sar_request *request, const char *name)
{
    const struct sar_traffic *traffic = &request->exchange.traffic;
    return sar_span_begin(name, traffic->bytes_sent, traffic->bytes_received);
}

void sar_request_span_end(const struct sar_request *request, struct sar_span *span)
{
    const struct sar_traffic *traffic = &request->exchange.traffic;
    sar_span_end(span, &(struct sar_scene){ request->net->number, request->epoch, request->stages_run - 1,
                                            request->place, traffic->bytes_sent, traffic->bytes_received });
}

struct sar_shape sar_request_shape(const struct sar_request *request)
{
    struct sar_shape shape = request->agreed->shape;
    shape.absent_is_zero |= request->agreed->dense_face && request->minus_zero;
    return shape;
}

struct sar_envelope sar_request_envelope(const struct sar_request *request, struct sar_layout layout)
{
    return (struct sar_envelope){ layout, request->fingerprint, request->epoch, request->minus_zero };
}

static void note_wire(const char **note, const char *name)
{
    if (*note == NULL)
        *note = name;
    else if (strcmp(*note, name) != 0)
        *note = "mixed";
}

/* The host's; a device's is done when that gets to it. Formats with values of absent elements go through
 * these. */
static struct sar_work coding(const struct sar_request *request, const char *kind,
                              const struct sar_layout *layout, const struct sar_message *message)
{
    struct sar_header header;
    if (request->worker != NULL || !sar_message_header(message->buffer, &header))
        return (struct sar_work){ 0 };
    const struct sar_wire *wire = sar_wires[header.wire];
    bool values = wire == &sar_wire_dense || wire == &sar_wire_block;
    struct sar_work work = sar_work_on(kind, header.nnz, request->agreed->shape.element_size,
                                       values ? layout->span * request->agreed->shape.row : layout->span);
    work.format = wire->name;
    return work;
}

static enum sar_status encode(struct sar_request *request, bool pull, struct sar_layout layout,
                              const struct sar_run *run, struct sar_message *message)
{
    const struct sar_agreed *agreed = request->agreed;
    struct sar_envelope envelope = sar_request_envelope(request, layout);
    const struct sar_wire *wire;
    if (request->worker != NULL) {
        SAR_TRY(sar_outsource_encode(request, pull, layout, run, message, &wire));
    } else {
        wire = sar_agreed_wire(agreed, pull, request->own_wire[pull], &layout, run);
        SAR_TRY(sar_message_encode(&envelope, wire, run, request->passing, message));
    }
    note_wire(pull ? &request->notes.pull_wire : &request->notes.push_wire, wire->name);
    return SAR_OK;
}

enum sar_status sar_request_encode(struct sar_request *request, bool pull, struct sar_layout layout,
                                   struct sar_run *run, struct sar_message *message)
{
    struct sar_span span = sar_request_span(request, "encode");
    SAR_TRY(sar_round_run(&layout, request->passing, run));
    if (message == NULL)
        return SAR_OK;
    SAR_TRY(encode(request, pull, layout, run, message));
    if (span.from != 0)
        span.work = coding(request, "encode", &layout, message);
    sar_request_span_end(request, &span);
    return SAR_OK;
}

enum sar_status sar_request_read(struct sar_request *request, struct sar_layout layout,
                                 const struct sar_message *message, struct sar_run *run)
{
    struct sar_envelope envelope = sar_request_envelope(request, layout);
    struct sar_span span = sar_request_span(request, "decode");
    SAR_TRY(request->worker != NULL ? sar_outsource_read(request, &envelope, message, run)
                                    : sar_message_decode(&envelope, message, request->passing, run));
    request->minus_zero |= envelope.note != 0;
    if (span.from != 0)
        span.work = coding(request, "decode", &layout, message);
    sar_request_span_end(request, &span);
    return SAR_OK;
}

enum sar_status sar_request_decode(struct sar_request *request, struct sar_layout layout, int port,
                                   struct sar_run *run)
{
    return sar_request_read(request, layout, &request->exchange.arrived[port], run);
}

struct sar_work sar_work_on_runs(const char *kind, const struct sar_shape *shape, const struct sar_run runs[],
                                 size_t n)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += runs[i].nnz;
    return sar_work_on(kind, sum, shape->element_size, shape->count);
}

static void end_reduction(const struct sar_request *request, struct sar_span *span,
                          const struct sar_shape *shape, const struct sar_run runs[], size_t n)
{
    if (span->from != 0 && request->worker == NULL)
        span->work = sar_work_on_runs("reduce", shape, runs, n);
    sar_request_span_end(request, span);
}

static enum sar_status reduce(struct sar_request *request, const struct sar_shape *shape,
                              const struct sar_run runs[], size_t n, struct sar_run *out)
{
    if (request->worker != NULL)
        return sar_worker_reduce(request->worker, shape, runs, n, out);
    SAR_TRY(sar_run_take(shape, sar_reduce_bound(shape, runs, n), request->passing, out));
    return request->device->reduce(shape, runs, n, request->passing, out);
}

enum sar_status sar_request_reduce(struct sar_request *request, const struct sar_shape *shape,
                                   const struct sar_run runs[], size_t n, struct sar_run *out)
{
    struct sar_span span = sar_request_span(request, "reduce");
    SAR_TRY(reduce(request, shape, runs, n, out));
    end_reduction(request, &span, shape, runs, n);
    return SAR_OK;
}

enum sar_status sar_request_deliver(struct sar_request *request, const struct sar_shape *shape,
                                    const struct sar_run runs[], size_t n)
{
    struct sar_run out = { NULL, NULL, 0 };
    struct sar_span span = sar_request_span(request, "deliver");
    SAR_TRY(request->sink->room(request->sink, request, sar_reduce_bound(shape, runs, n), &out));
    SAR_TRY(request->device->reduce(shape, runs, n, request->arena, &out));
    request->output = out;
    end_reduction(request, &span, shape, runs, n);
    return SAR_OK;
}

void sar_request_copy(const struct sar_request *request, const struct sar_shape *shape,
                      const struct sar_run *from, struct sar_run *to, bool past_caches)
{
    struct sar_span span = sar_request_span(request, "copy");
    if (past_caches)
        sar_run_stream(shape, from, to);
    else
        sar_run_copy(shape, from, to);
    span.work = sar_work_on("copy", from->nnz, shape->element_size, 0);
    sar_request_span_end(request, &span);
}

void sar_request_append(const struct sar_request *request, const struct sar_run *run, unsigned index_size,
                        uint64_t base, struct sar_run *out)
{
    const struct sar_shape *shape = &request->agreed->shape;
    struct sar_span span = sar_request_span(request, "copy");
    sar_run_append(shape, run, index_size, base, out);
    span.work = sar_work_on("append", run->nnz, shape->element_size, 0);
    sar_request_span_end(request, &span);
}

/* Three, for what a rank keeps of its own input is needed in the step after the next. */
void sar_request_next_scratch(struct sar_request *request)
{
    unsigned turn = request->turn++;
    request->passing = &request->scratch[turn % SAR_SCRATCHES];
    request->exchange.arena = request->passing;
    sar_arena_recycle(request->passing);
    if (request->worker == NULL)
        return;
    sar_worker_turn(request->worker, turn);
    request->exchange.arena = request->worker->messages;
}

bool sar_request_glance(struct sar_request *request)
{
    bool over;
    sar_exchange_advance(&request->exchange, false, &over);
    return over;
}

void sar_request_settle(struct sar_request *request)
{
    const struct sar_agreed *agreed = request->agreed;
    sar_round_values(agreed->values, request->output.value, request->output.nnz * agreed->shape.row);
}

enum sar_status sar_request_take(struct sar_request *request, size_t n, size_t size, void *memory)
{
    void *taken;
    SAR_TRY(sar_arena_take_zeroed(request->arena, n, size, &taken));
    memcpy(memory, &taken, sizeof taken);
    return SAR_OK;
}
