/* SPDX-License-Identifier: BSD-3-Clause */
/* The pull: from the sums of all parts to the outcome. */

#include <math.h>
#include <string.h>

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

enum sar_status sar_owner_deliver(struct sar_request *request, uint32_t segment)
{
    struct sar_owner *o = request->state;
    struct sar_map map = sar_owner_segment_map(o, segment);
    struct sar_run *run = o->runs;
    for (int r = 0; r < request->net->ranks; r++) {
        if (!sar_owner_reaches(request, r))
            continue;
        *run = o->sums[segment % 2];
        sar_request_glance(request);
        if (r != request->net->rank)
            SAR_TRY(sar_request_read(request, sar_owner_layout(request, r, segment), &o->waiting[r], run));
        o->kept[r] += run->nnz;
        if (!o->contiguous)
            SAR_TRY(request->device->unpartition(&map, &request->agreed->shape, (uint32_t)r, request->passing,
                                                 run));
        run++;
    }
    return o->contiguous ? sar_contiguous_deliver(request, o->bounds, o->runs)
                         : append(request, (size_t)(run - o->runs));
}
