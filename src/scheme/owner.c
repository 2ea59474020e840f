/* SPDX-License-Identifier: BSD-3-Clause */
#include "scheme/owner.h"

#include <math.h>
#include <string.h>

#include "tensor/stretch.h"

static const double SPARE_ROOM = 1.05; /* of the expected outcome */

static int ranks_of(const struct sar_request *request)
{
    return request->net->ranks;
}

static bool reaches(const struct sar_request *request, int owner)
{
    const struct sar_owner *o = request->state;
    return o->peers == NULL || o->peers->reaches(request, owner);
}

static int contributor(const struct sar_request *request, int i)
{
    const struct sar_owner *o = request->state;
    if (o->peers != NULL)
        return o->peers->contributor(request, i);
    return i < ranks_of(request) ? i : -1;
}

static void open_by(struct sar_request *request, const struct sar_owner_terms *terms)
{
    struct sar_owner *o = request->state;
    struct sar_owner_forecast f = sar_owner_forecast(request->agreed, terms);
    o->map = *terms->map;
    o->width = f.width;
    o->segments = (uint32_t)f.segments;
    for (int r = 0; r < ranks_of(request); r++)
        o->reached += reaches(request, r);
    request->notes.partition = sar_partition_names[o->map.kind];
    request->notes.grain = o->map.kind == SAR_PARTITION_RANGE ? 0 : 1 << o->map.grain_shift;
}

void sar_owner_open(struct sar_request *request, const struct sar_map *map)
{
    struct sar_owner *o = request->state;
    double share = 1.0 / ranks_of(request);
    open_by(request,
            &(struct sar_owner_terms){ share, share, request->own_wire[0], request->own_wire[1], map, 1 });
    o->contiguous = map->kind == SAR_PARTITION_RANGE;
    request->streams = o->segments > 1;
}

void sar_owner_open_among(struct sar_request *request, const struct sar_owner_terms *terms,
                          const struct sar_owner_peers *peers)
{
    ((struct sar_owner *)request->state)->peers = peers;
    open_by(request, terms);
}

/* Slots that a rank owns of a segment. */
static uint64_t span_of(const struct sar_owner *o, int rank, uint32_t segment)
{
    if (o->contiguous)
        return o->bounds[rank + 1] - o->bounds[rank];
    uint64_t slots = sar_map_slots(&o->map, (uint32_t)rank), before = segment * o->width;
    uint64_t rest = slots > before ? slots - before : 0;
    return rest < o->width ? rest : o->width;
}

static struct sar_layout layout_of(const struct sar_request *request, int rank, uint32_t segment)
{
    uint64_t span = span_of(request->state, rank, segment);
    return sar_agreed_layout(request->agreed, span, sar_index_size(span));
}

struct sar_shape sar_owner_shape(const struct sar_request *request, int rank, uint32_t segment)
{
    struct sar_layout layout = layout_of(request, rank, segment);
    struct sar_shape shape = sar_request_shape(request);
    shape.count = layout.span;
    shape.index_size = layout.index_size;
    return shape;
}

/* The map, with slots counted from the segment on. */
static struct sar_map segment_map(const struct sar_owner *o, uint32_t segment)
{
    struct sar_map map = o->map;
    map.base = segment * o->width;
    return map;
}

/* Of what is on a device. */
static enum sar_status receive_segment(struct sar_request *request, uint32_t segment, struct sar_run *parts)
{
    const struct sar_owner *o = request->state;
    struct sar_division division = { o->map, o->width, o->segments };
    return request->splitter->give(request->splitter, &division, segment, parts);
}

enum sar_status sar_owner_split(struct sar_request *request, uint32_t segment, struct sar_run *parts)
{
    struct sar_owner *o = request->state;
    const struct sar_shape *shape = &request->agreed->shape;
    struct sar_map map = segment_map(o, segment);
    if (request->splitter != NULL)
        return receive_segment(request, segment, parts);
    struct sar_span span = sar_request_span(request, "partition");
    uint64_t limit = sar_times((segment + 1) * o->width, map.parts);
    size_t from = o->taken;
    o->taken =
        segment + 1 == o->segments ? request->input.nnz : sar_run_find(shape, &request->input, from, limit);
    struct sar_run run = sar_run_slice(shape, &request->input, from, o->taken);
    SAR_TRY(request->device->partition(&map, shape, &run, request->passing, parts));
    sar_request_span_end(request, &span);
    return SAR_OK;
}

static enum sar_status gather(struct sar_request *request, uint32_t segment, struct sar_run *parts)
{
    const struct sar_owner *o = request->state;
    if (o->peers != NULL)
        return o->peers->gather(request, segment, parts);
    return o->contiguous ? sar_contiguous_split(request, o->bounds, parts)
                         : sar_owner_split(request, segment, parts);
}

/* Find and encode a segment of the push. */
static enum sar_status prepare_push(struct sar_request *request, uint32_t segment)
{
    struct sar_owner *o = request->state;
    struct sar_run *parts = o->mine[segment % 2];
    SAR_TRY(gather(request, segment, parts));
    for (int r = 0; r < ranks_of(request); r++) {
        if (!reaches(request, r))
            continue;
        o->pushed[r] += parts[r].nnz;
        sar_request_glance(request);
        struct sar_message *message = r == request->net->rank ? NULL : &o->outgoing[segment % 2][r];
        SAR_TRY(sar_request_encode(request, false, layout_of(request, r, segment), &parts[r], message));
    }
    return SAR_OK;
}

enum sar_status sar_owner_begin(struct sar_request *request)
{
    struct sar_owner *o = request->state;
    size_t ranks = (size_t)ranks_of(request);
    for (int parity = 0; parity < 2; parity++) {
        SAR_TRY(sar_request_take(request, ranks, sizeof *o->mine[0], &o->mine[parity]));
        SAR_TRY(sar_request_take(request, ranks, sizeof *o->outgoing[0], &o->outgoing[parity]));
    }
    SAR_TRY(sar_request_take(request, ranks, sizeof *o->waiting, &o->waiting));
    SAR_TRY(sar_request_take(request, ranks, sizeof *o->runs, &o->runs));
    SAR_TRY(sar_request_take(request, ranks, sizeof *o->came, &o->came));
    SAR_TRY(sar_request_take(request, ranks, sizeof *o->pushed, &o->pushed));
    SAR_TRY(sar_request_take(request, ranks, sizeof *o->kept, &o->kept));
    if (o->contiguous && o->bounds == NULL)
        SAR_TRY(sar_contiguous_bounds(request, &o->map, &o->bounds));
    sar_request_next_scratch(request);
    return prepare_push(request, 0);
}

/* Decode what has come of the push, as far as nothing is missing between. */
static enum sar_status decode_ready(struct sar_request *request)
{
    struct sar_owner *o = request->state;
    int rank = request->net->rank;
    struct sar_layout layout = layout_of(request, rank, o->coming);
    for (int r; (r = contributor(request, o->ready)) >= 0; o->ready++) {
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
 * sums do not tell who lacked them. And not before there is as much as has been summed, so that all sums
 * together are at most twice the work of one in the end. */
static bool is_worth_folding(const struct sar_request *request, const struct sar_shape *shape)
{
    const struct sar_owner *o = request->state;
    size_t nnz = 0;
    for (int r = o->folds; r < o->ready; r++)
        nnz += o->came[r].nnz;
    return request->agreed->nodes > 1 && !shape->absent_is_zero && o->ready - o->folds + (o->folds > 0) > 1 &&
           nnz >= o->folded.nnz;
}

enum sar_status sar_owner_arrived(struct sar_request *request)
{
    struct sar_owner *o = request->state;
    int before = o->ready;
    SAR_TRY(decode_ready(request));
    struct sar_shape shape = sar_owner_shape(request, request->net->rank, o->coming);
    return o->ready > before && is_worth_folding(request, &shape) ? fold_ready(request, &shape) : SAR_OK;
}

/* Reduce what the step before has brought of the push. A -0.0 that came late makes sums void, see
 * sar_request_shape. */
static enum sar_status reduce_segment(struct sar_request *request, struct sar_run *sums)
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

enum sar_status sar_owner_sum(struct sar_request *request, struct sar_run *sums)
{
    return reduce_segment(request, sums);
}

/* What has arrived of the pull is decoded when this step's messages are on their way already. */
static void put_aside_pull(struct sar_request *request)
{
    struct sar_owner *o = request->state;
    size_t ranks = (size_t)ranks_of(request);
    memcpy(o->waiting, request->exchange.arrived + ranks, ranks * sizeof *o->waiting);
}

enum sar_status sar_owner_reduce(struct sar_request *request)
{
    struct sar_owner *o = request->state;
    sar_request_next_scratch(request);
    put_aside_pull(request);
    if (o->step == 0)
        return SAR_OK;
    uint32_t segment = o->step - 1;
    struct sar_run *sums = &o->sums[segment % 2];
    SAR_TRY(reduce_segment(request, sums));
    return sar_request_encode(request, true, layout_of(request, request->net->rank, segment), sums,
                              &o->pulled[segment % 2]);
}

enum { LANE_PUSH, LANE_PULL };

static int port(const struct sar_request *request, int lane, int rank)
{
    return lane * ranks_of(request) + rank;
}

/* A message to the owner of each part: to the next one first, so that not all send to the same one. */
void sar_owner_push(struct sar_request *request)
{
    struct sar_owner *o = request->state;
    const struct sar_message *messages = o->outgoing[o->step % 2];
    int ranks = ranks_of(request), rank = request->net->rank;
    o->coming = o->step;
    o->ready = o->folds = 0;
    o->folded.nnz = 0;
    for (int r, i = 0; (r = contributor(request, i)) >= 0; i++)
        if (r != rank)
            sar_exchange_expect(&request->exchange, port(request, LANE_PUSH, r));
    for (int i = 1; i < ranks; i++) {
        int owner = (rank + i) % ranks;
        if (reaches(request, owner))
            sar_exchange_send(&request->exchange, port(request, LANE_PUSH, owner),
                              messages == NULL ? NULL : &messages[owner]);
    }
}

/* One message to all whose elements are in it, likewise. */
static void pull(struct sar_request *request, const struct sar_message *message)
{
    int ranks = ranks_of(request), rank = request->net->rank, n = 0, self = 0;
    for (int r = 0; r < ranks; r++)
        if (r != rank && reaches(request, r))
            sar_exchange_expect(&request->exchange, port(request, LANE_PULL, r));
    for (int r; (r = contributor(request, n)) >= 0; n++)
        self = r == rank ? n : self;
    for (int i = 1; i < n; i++)
        sar_exchange_send(&request->exchange, port(request, LANE_PULL, contributor(request, (self + i) % n)),
                          message);
}

void sar_owner_post(struct sar_request *request)
{
    struct sar_owner *o = request->state;
    if (o->step < o->segments)
        sar_owner_push(request);
    if (o->step > 0)
        pull(request, &o->pulled[(o->step - 1) % 2]);
    request->again = o->step < o->segments;
    o->step++;
}

/* Room for the outcome so far and n elements more. The first time room for the whole outcome is asked for, as
 * far as it can be foreseen. */
static enum sar_status room_for(struct sar_request *request, size_t n)
{
    struct sar_run *out = &request->output;
    size_t wanted = out->nnz + n;
    const struct sar_owner *o = request->state;
    if (o->segments > 1 && out->index == NULL) {
        double share = (double)o->reached / ranks_of(request);
        double expected = sar_agreed_union(request->agreed, ranks_of(request)) * share * SPARE_ROOM;
        expected = fmin(expected, (double)request->agreed->shape.count);
        wanted = expected > (double)wanted ? (size_t)expected : wanted;
    }
    return request->sink->room(request->sink, request, wanted, out);
}

/* Put n parts of a segment together behind what is there: they have no index in common, so it is a reduction
 * in which nothing meets. */
static enum sar_status append(struct sar_request *request, size_t n)
{
    struct sar_owner *o = request->state;
    struct sar_shape shape = request->agreed->shape;
    struct sar_span span = sar_request_span(request, "deliver");
    shape.absent_is_zero = false;
    SAR_TRY(room_for(request, sar_reduce_bound(&shape, o->runs, n)));
    struct sar_run *out = &request->output;
    struct sar_run end = { (unsigned char *)out->index + out->nnz * shape.index_size,
                           (unsigned char *)out->value + out->nnz * shape.element_size, 0 };
    SAR_TRY(request->device->reduce(&shape, o->runs, n, request->passing, &end));
    out->nnz += end.nnz;
    sar_request_span_end(request, &span);
    return SAR_OK;
}

/* Decode what an earlier step has brought of the pull, and put it in its place. */
static enum sar_status deliver_segment(struct sar_request *request, uint32_t segment)
{
    struct sar_owner *o = request->state;
    struct sar_map map = segment_map(o, segment);
    struct sar_run *run = o->runs;
    for (int r = 0; r < ranks_of(request); r++) {
        if (!reaches(request, r))
            continue;
        *run = o->sums[segment % 2];
        sar_request_glance(request);
        if (r != request->net->rank)
            SAR_TRY(sar_request_read(request, layout_of(request, r, segment), &o->waiting[r], run));
        o->kept[r] += run->nnz;
        if (!o->contiguous)
            SAR_TRY(request->device->unpartition(&map, &request->agreed->shape, (uint32_t)r, request->passing,
                                                 run));
        run++;
    }
    return o->contiguous ? sar_contiguous_deliver(request, o->bounds, o->runs)
                         : append(request, (size_t)(run - o->runs));
}

/* post has counted the step already. */
enum sar_status sar_owner_meanwhile(struct sar_request *request)
{
    struct sar_owner *o = request->state;
    uint32_t step = o->step - 1;
    if (step + 1 < o->segments)
        SAR_TRY(prepare_push(request, step + 1));
    return step < 2 ? SAR_OK : deliver_segment(request, step - 2);
}

/* Of the parts that this rank speaks of; the others' numbers are 0. */
static double imbalance(const struct sar_request *request, const size_t *parts)
{
    const struct sar_owner *o = request->state;
    size_t largest = 0, sum = 0;
    for (int r = 0; r < ranks_of(request); r++) {
        largest = parts[r] > largest ? parts[r] : largest;
        sum += parts[r];
    }
    return sum == 0 ? 1 : (double)largest * o->reached / (double)sum;
}

enum sar_status sar_owner_finish(struct sar_request *request)
{
    struct sar_owner *o = request->state;
    put_aside_pull(request);
    SAR_TRY(deliver_segment(request, o->segments - 1));
    request->notes.push_imbalance = imbalance(request, o->pushed);
    request->notes.pull_imbalance = imbalance(request, o->kept);
    return SAR_OK;
}
