/* SPDX-License-Identifier: BSD-3-Clause */
/* The pull: from the sums of all parts to the outcome. */

#include <math.h>
#include <string.h>

#include "scheme/outsource.h"
#include "scheme/owner_parts.h"

static const double SPARE_ROOM = 1.05; /* of the expected outcome */

void sar_owner_put_aside(struct sar_request *request)
{
    struct sar_owner *o = request->state;
    const struct sar_message *first = &request->exchange.arrived[sar_owner_port(request, SAR_OWNER_PULL, 0)];
    memcpy(o->waiting, first, (size_t)request->net->ranks * sizeof *o->waiting);
}

/* One message to all whose elements are in it, to the next one first as in the push. */
void sar_owner_pull(struct sar_request *request, const struct sar_message *sums)
{
    int ranks = request->net->ranks, rank = request->net->rank, n = 0, self = 0;
    for (int r = 0; r < ranks; r++)
        if (r != rank && sar_owner_reaches(request, r))
            sar_exchange_expect(&request->exchange, sar_owner_port(request, SAR_OWNER_PULL, r));
    for (int r; (r = sar_owner_contributor(request, n)) >= 0; n++)
        self = r == rank ? n : self;
    for (int i = 1; i < n; i++) {
        int r = sar_owner_contributor(request, (self + i) % n);
        sar_exchange_send(&request->exchange, sar_owner_port(request, SAR_OWNER_PULL, r), sums);
    }
}

/* Room for the outcome so far and n elements more. The first time room for the whole outcome is asked for, as
 * far as it can be foreseen. */
static enum sar_status room_for(struct sar_request *request, size_t n)
{
    struct sar_run *out = &request->output;
    size_t wanted = out->nnz + n;
    const struct sar_owner *o = request->state;
    if (o->segments > 1 && out->index == NULL) {
        double share = (double)o->reached / request->net->ranks;
        double expected = sar_agreed_union(request->agreed, request->net->ranks) * share * SPARE_ROOM;
        expected = fmin(expected, (double)request->agreed->shape.count);
        wanted = expected > (double)wanted ? (size_t)expected : wanted;
    }
    return request->sink->room(request->sink, request, wanted, out);
}

/* Blocks are gone through, or slots. */
static struct sar_work assembling(const struct sar_owner *o, const struct sar_map *map, size_t nnz,
                                  size_t element_size)
{
    uint64_t rest = map->span - map->base, slots = (rest < o->width ? rest : o->width) * map->parts;
    bool blocks = sar_assembles_blocks(map, slots / map->parts >> map->grain_shift, nnz);
    struct sar_work work =
        sar_work_on("assemble", nnz, element_size, blocks ? slots >> map->grain_shift : slots);
    work.format = blocks ? "blocks" : "runs";
    return work;
}

/* Put the parts of a segment together behind what is there. */
static enum sar_status append(struct sar_request *request, const struct sar_map *map)
{
    struct sar_owner *o = request->state;
    const struct sar_shape *shape = &request->agreed->shape;
    struct sar_span span = sar_request_span(request, "deliver");
    SAR_TRY(room_for(request, sar_reduce_bound(shape, o->runs, map->parts)));
    struct sar_run *out = &request->output;
    struct sar_run end = { (unsigned char *)out->index + out->nnz * shape->index_size,
                           (unsigned char *)out->value + out->nnz * shape->element_size, 0 };
    SAR_TRY(request->device->assemble(map, shape, o->runs, request->passing, &end));
    out->nnz += end.nnz;
    span.work = assembling(o, map, end.nnz, shape->element_size);
    sar_request_span_end(request, &span);
    return SAR_OK;
}

/* Parts that this rank does not speak of are empty. */
enum sar_status sar_owner_deliver(struct sar_request *request, uint32_t segment)
{
    struct sar_owner *o = request->state;
    struct sar_map map = sar_owner_segment_map(o, segment);
    for (int r = 0; r < request->net->ranks; r++) {
        o->runs[r] = (struct sar_run){ NULL, NULL, 0 };
        if (!sar_owner_reaches(request, r))
            continue;
        sar_request_glance(request);
        if (r == request->net->rank)
            o->runs[r] = o->sums[segment % 2];
        else
            SAR_TRY(sar_request_read(request, sar_owner_layout(request, r, segment), &o->waiting[r],
                                     &o->runs[r]));
        o->kept[r] += o->runs[r].nnz;
    }
    if (request->worker != NULL)
        return sar_outsource_deliver(request, o->segments, &map, o->runs);
    return o->contiguous ? sar_contiguous_deliver(request, o->bounds, o->runs) : append(request, &map);
}
