/* SPDX-License-Identifier: BSD-3-Clause */
#include "scheme/owner_parts.h"

bool sar_owner_reaches(const struct sar_request *request, int owner)
{
    const struct sar_owner *o = request->state;
    return o->peers == NULL || o->peers->reaches(request, owner);
}

int sar_owner_contributor(const struct sar_request *request, int i)
{
    const struct sar_owner *o = request->state;
    if (o->peers != NULL)
        return o->peers->contributor(request, i);
    return i < request->net->ranks ? i : -1;
}

static void open_by(struct sar_request *request, const struct sar_owner_terms *terms)
{
    struct sar_owner *o = request->state;
    struct sar_owner_forecast f = sar_owner_forecast(request->agreed, terms);
    o->map = *terms->map;
    o->width = f.width;
    o->segments = (uint32_t)f.segments;
    request->exchange.throttle = f.throttle;
    for (int r = 0; r < request->net->ranks; r++)
        o->reached += sar_owner_reaches(request, r);
    request->notes.partition = sar_partition_names[o->map.kind];
    request->notes.grain = o->map.kind == SAR_PARTITION_RANGE ? 0 : 1 << o->map.grain_shift;
}

void sar_owner_open(struct sar_request *request, const struct sar_map *map)
{
    struct sar_owner *o = request->state;
    double share = 1.0 / request->net->ranks;
    open_by(request, &(struct sar_owner_terms){ .push_share = share,
                                                .pull_share = share,
                                                .push_wire = request->own_wire[0],
                                                .pull_wire = request->own_wire[1],
                                                .map = map,
                                                .span = (double)map->span,
                                                .together = 1 });
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

struct sar_layout sar_owner_layout(const struct sar_request *request, int rank, uint32_t segment)
{
    uint64_t span = span_of(request->state, rank, segment);
    return sar_agreed_layout(request->agreed, span, sar_index_size(span));
}

struct sar_shape sar_owner_shape(const struct sar_request *request, int rank, uint32_t segment)
{
    struct sar_layout layout = sar_owner_layout(request, rank, segment);
    struct sar_shape shape = sar_request_shape(request);
    shape.count = layout.span;
    shape.index_size = layout.index_size;
    return shape;
}

struct sar_map sar_owner_segment_map(const struct sar_owner *o, uint32_t segment)
{
    struct sar_map map = o->map;
    map.base = segment * o->width;
    return map;
}

enum sar_status sar_owner_begin(struct sar_request *request)
{
    struct sar_owner *o = request->state;
    size_t ranks = (size_t)request->net->ranks;
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
    return sar_owner_prepare(request, 0);
}

/* Whom this rank sends its sums it has heard from. */
static bool has_listeners(const struct sar_request *request)
{
    return sar_owner_contributor(request, 1) >= 0;
}

enum sar_status sar_owner_reduce(struct sar_request *request)
{
    struct sar_owner *o = request->state;
    sar_request_next_scratch(request);
    sar_owner_put_aside(request);
    if (o->step == 0)
        return SAR_OK;
    uint32_t segment = o->step - 1;
    struct sar_run *sums = &o->sums[segment % 2];
    struct sar_message *message = has_listeners(request) ? &o->pulled[segment % 2] : NULL;
    SAR_TRY(sar_owner_sum(request, sums));
    return sar_request_encode(request, true, sar_owner_layout(request, request->net->rank, segment), sums,
                              message);
}

void sar_owner_obey(struct sar_request *request, enum sar_owner_verdict verdict)
{
    struct sar_owner *o = request->state;
    struct sar_exchange *x = &request->exchange;
    struct sar_envelope envelope = { .fingerprint = request->fingerprint, .epoch = request->epoch };
    o->verdict = verdict;
    if (verdict == SAR_OWNER_UNSHARED)
        x->status = SAR_UNSHARED;
    else if (verdict == SAR_OWNER_FAILED && (x->status == SAR_OK || x->status == SAR_UNSHARED))
        x->status = SAR_PEER_FAILED;
    envelope.note = (uint64_t)verdict;
    if (o->step == 0)
        sar_message_failed(&envelope, &x->failure);
}

/* What those who have pushed to this rank say. */
static void hear(struct sar_request *request)
{
    const struct sar_owner *o = request->state;
    uint64_t worst = (uint64_t)o->verdict;
    struct sar_header header;
    for (int r, i = 0; (r = sar_owner_contributor(request, i)) >= 0; i++) {
        int port = sar_owner_port(request, SAR_OWNER_PUSH, r);
        const struct sar_message *came = &request->exchange.arrived[port];
        if (came->buffer != NULL && came->bytes >= SAR_HEADER_BYTES &&
            sar_message_header(came->buffer, &header) && header.wire == SAR_NO_WIRE && header.note > worst)
            worst = header.note;
    }
    sar_owner_obey(request, worst < SAR_OWNER_FAILED ? (enum sar_owner_verdict)worst : SAR_OWNER_FAILED);
}

void sar_owner_post(struct sar_request *request)
{
    struct sar_owner *o = request->state;
    if (o->step == 1 && request->exchange.status != SAR_OK)
        hear(request);
    if (o->step < o->segments)
        sar_owner_push(request);
    if (o->step > 0)
        sar_owner_pull(request, &o->pulled[(o->step - 1) % 2]);
    request->again = o->step < o->segments;
    o->step++;
}

/* post has counted the step already. */
enum sar_status sar_owner_meanwhile(struct sar_request *request)
{
    struct sar_owner *o = request->state;
    uint32_t step = o->step - 1;
    if (step + 1 < o->segments)
        SAR_TRY(sar_owner_prepare(request, step + 1));
    return step < 2 ? SAR_OK : sar_owner_deliver(request, step - 2);
}

/* Of the parts that this rank speaks of; the others' numbers are 0. */
static double imbalance(const struct sar_request *request, const size_t *parts)
{
    const struct sar_owner *o = request->state;
    size_t largest = 0, sum = 0;
    for (int r = 0; r < request->net->ranks; r++) {
        largest = parts[r] > largest ? parts[r] : largest;
        sum += parts[r];
    }
    return sum == 0 ? 1 : (double)largest * o->reached / (double)sum;
}

enum sar_status sar_owner_finish(struct sar_request *request)
{
    struct sar_owner *o = request->state;
    sar_owner_put_aside(request);
    SAR_TRY(sar_owner_deliver(request, o->segments - 1));
    request->notes.push_imbalance = imbalance(request, o->pushed);
    request->notes.pull_imbalance = imbalance(request, o->kept);
    return SAR_OK;
}
