/* SPDX-License-Identifier: BSD-3-Clause */
/* The push: from a rank's elements to the sums of its part.
 *
 * A part's message leaves as soon as it is encoded. Those of a segment are encoded ahead as long as the step
 * before has messages under way; the others, and all of the first segment, when it is their turn to leave. */

#include "scheme/outsource.h"
#include "scheme/owner_parts.h"
#include "tensor/stretch.h"

enum { EAGER_BYTES = 4096 /* of a message that has left, with any MPI, when it has been handed over */ };

/* Of what is on a device. */
static enum sar_status receive_segment(struct sar_request *request, uint32_t segment, struct sar_run *parts)
{
    const struct sar_owner *o = request->state;
    struct sar_division division = { o->map, o->width, o->segments };
    return request->splitter->give(request->splitter, &division, segment, parts);
}

enum sar_status sar_owner_split(struct sar_request *request, uint32_t segment, const struct sar_run *memory,
                                struct sar_run *parts)
{
    struct sar_owner *o = request->state;
    const struct sar_shape *shape = &request->agreed->shape;
    struct sar_map map = sar_owner_segment_map(o, segment);
    struct sar_span span = sar_request_span(request, "partition");
    uint64_t limit = sar_times((segment + 1) * o->width, map.parts);
    size_t from = o->taken;
    o->taken =
        segment + 1 == o->segments ? request->input.nnz : sar_run_find(shape, &request->input, from, limit);
    struct sar_run run = sar_run_slice(shape, &request->input, from, o->taken);
    SAR_TRY(memory == NULL ? request->device->partition(&map, shape, &run, request->passing, parts)
                           : sar_partition_into(&map, shape, &run, request->passing, memory, parts));
    span.work = sar_work_on("partition", run.nnz, shape->element_size, 0);
    sar_request_span_end(request, &span);
    return SAR_OK;
}

static enum sar_status split(struct sar_request *request, uint32_t segment, struct sar_run *parts)
{
    const struct sar_owner *o = request->state;
    if (o->peers != NULL)
        return o->peers->split(request, segment, parts);
    if (o->contiguous)
        return sar_contiguous_split(request, o->bounds, parts);
    return request->splitter != NULL ? receive_segment(request, segment, parts)
                                     : sar_owner_split(request, segment, NULL, parts);
}

/* The order in which parts leave: to the next rank first, so that not all send to the same one. The part that
 * stays comes last. */
static int owner_at(const struct sar_request *request, int place)
{
    return (request->net->rank + 1 + place) % request->net->ranks;
}

static enum sar_status encode_part(struct sar_request *request, uint32_t segment, int owner)
{
    struct sar_owner *o = request->state;
    struct sar_run *part = &o->mine[segment % 2][owner];
    if (!sar_owner_reaches(request, owner))
        return SAR_OK;
    if (o->peers != NULL)
        SAR_TRY(o->peers->gather(request, segment, owner, part));
    o->pushed[owner] += part->nnz;
    struct sar_message *message = owner == request->net->rank ? NULL : &o->outgoing[segment % 2][owner];
    return sar_request_encode(request, false, sar_owner_layout(request, owner, segment), part, message);
}

enum sar_status sar_owner_prepare(struct sar_request *request, uint32_t segment)
{
    struct sar_owner *o = request->state;
    SAR_TRY(split(request, segment, o->mine[segment % 2]));
    for (o->encoded = 0; o->encoded < request->net->ranks && !sar_request_glance(request); o->encoded++)
        SAR_TRY(encode_part(request, segment, owner_at(request, o->encoded)));
    return SAR_OK;
}

static void expect_parts(struct sar_request *request)
{
    for (int r, i = 0; (r = sar_owner_contributor(request, i)) >= 0; i++)
        if (r != request->net->rank)
            sar_exchange_expect(&request->exchange, sar_owner_port(request, SAR_OWNER_PUSH, r));
}

/* What is long MPI sends in steps. */
static void send_part(struct sar_request *request, int owner)
{
    const struct sar_owner *o = request->state;
    const struct sar_message *messages = o->outgoing[o->step % 2];
    struct sar_exchange *x = &request->exchange;
    if (request->worker != NULL && x->status == SAR_OK)
        sar_exchange_fail(x, sar_outsource_await(request, &messages[owner]));
    sar_exchange_send(x, sar_owner_port(request, SAR_OWNER_PUSH, owner),
                      messages == NULL ? NULL : &messages[owner]);
    if (x->status == SAR_OK && messages[owner].bytes > EAGER_BYTES)
        sar_request_glance(request);
}

/* Up to the one that leaves at a place. A device encodes the next one while that one comes from it. */
static void encode_until(struct sar_request *request, int place)
{
    struct sar_owner *o = request->state;
    struct sar_exchange *x = &request->exchange;
    int last = request->worker != NULL && place + 1 < request->net->ranks ? place + 1 : place;
    for (; o->encoded <= last && x->status == SAR_OK; o->encoded++)
        sar_exchange_fail(x, encode_part(request, o->step, owner_at(request, o->encoded)));
}

void sar_owner_push(struct sar_request *request)
{
    struct sar_owner *o = request->state;
    o->coming = o->step;
    o->ready = o->folds = 0;
    o->folded.nnz = 0;
    expect_parts(request);
    for (int place = 0; place < request->net->ranks; place++) {
        int owner = owner_at(request, place);
        encode_until(request, place);
        if (owner != request->net->rank && sar_owner_reaches(request, owner))
            send_part(request, owner);
    }
}

/* Decode what has come of the push, as far as nothing is missing between. */
static enum sar_status decode_ready(struct sar_request *request)
{
    struct sar_owner *o = request->state;
    int rank = request->net->rank;
    struct sar_layout layout = sar_owner_layout(request, rank, o->coming);
    for (int r; (r = sar_owner_contributor(request, o->ready)) >= 0; o->ready++) {
        if (r == rank)
            o->came[o->ready] = o->mine[o->coming % 2][rank];
        else if (sar_exchange_has(&request->exchange, r))
            SAR_TRY(sar_request_decode(request, layout, r, &o->came[o->ready]));
        else
            break;
    }
    return SAR_OK;
}

/* Reduce what is ready: the sums that there are, and what is not in them. */
static enum sar_status fold_ready(struct sar_request *request, const struct sar_shape *shape)
{
    struct sar_owner *o = request->state;
    size_t n = 0;
    if (o->folds == o->ready)
        return SAR_OK;
    if (o->folds > 0)
        o->runs[n++] = o->folded;
    for (int r = o->folds; r < o->ready; r++)
        o->runs[n++] = o->came[r];
    o->folds = o->ready;
    return sar_request_reduce(request, shape, o->runs, n, &o->folded);
}

/* Whether to reduce what is ready while the rest is awaited. Not where absent elements are folded, too, since
 * sums do not tell who lacked them; nor where sums are rounded, since they would be more than once, and as
 * often as time has it. And not before there is as much as has been summed, so that all sums together are at
 * most twice the work of one in the end. */
static bool is_worth_folding(const struct sar_request *request, const struct sar_shape *shape)
{
    const struct sar_owner *o = request->state;
    size_t nnz = 0;
    if (shape->absent_is_zero || shape->kernels->wide != NULL)
        return false;
    for (int r = o->folds; r < o->ready; r++)
        nnz += o->came[r].nnz;
    return request->agreed->nodes > 1 && o->ready - o->folds + (o->folds > 0) > 1 && nnz >= o->folded.nnz;
}

enum sar_status sar_owner_arrived(struct sar_request *request)
{
    struct sar_owner *o = request->state;
    int before = o->ready;
    SAR_TRY(decode_ready(request));
    struct sar_shape shape = sar_owner_shape(request, request->net->rank, o->coming);
    return o->ready > before && is_worth_folding(request, &shape) ? fold_ready(request, &shape) : SAR_OK;
}

/* A -0.0 that came late makes sums void, see sar_request_shape. */
enum sar_status sar_owner_sum(struct sar_request *request, struct sar_run *sums)
{
    struct sar_owner *o = request->state;
    SAR_TRY(decode_ready(request));
    struct sar_shape shape = sar_owner_shape(request, request->net->rank, o->coming);
    if (shape.absent_is_zero)
        o->folds = 0;
    SAR_TRY(fold_ready(request, &shape));
    *sums = o->folded;
    return SAR_OK;
}
