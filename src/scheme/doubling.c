/* SPDX-License-Identifier: BSD-3-Clause */
#include "scheme/doubling.h"

#include <math.h>

#include "tensor/dense.h"

static struct sar_layout layout_of(const struct sar_agreed *agreed)
{
    return sar_agreed_layout(agreed, agreed->shape.count, agreed->shape.index_size);
}

static double stage_seconds(const struct sar_agreed *a, int distance, double elements, double reduced)
{
    struct sar_layout layout = layout_of(a);
    struct sar_link link = sar_agreed_link(a, distance);
    struct sar_cost message = sar_agreed_cost(a, false, &layout, elements);
    return link.alpha + message.bytes * link.beta + (reduced + message.work) * a->machine.gamma;
}

double sar_doubling_seconds(const struct sar_agreed *a, int limit)
{
    double time = a->machine.ranks == 1 ? a->nnz_mean * a->machine.gamma : 0; /* delivered all the same */
    double fullest = a->nnz_mean > 0 ? a->nnz_max / a->nnz_mean : 1;
    double outcome = sar_agreed_union(a, a->machine.ranks);
    int each = sar_power_below(a->machine.ranks) == a->machine.ranks ? 1 : 2; /* the folded are fullest */
    for (int power = 1; power < limit; power *= 2) {
        double elements = sar_agreed_union(a, each * power) * (power == 1 ? fullest : 1);
        elements = fmin(elements, (double)a->shape.count);
        time += stage_seconds(a, power, elements, 2 * elements);
    }
    if (each == 2)
        time += stage_seconds(a, 1, a->nnz_max, 2 * a->nnz_mean) + stage_seconds(a, 1, outcome, outcome);
    return time;
}

static int limit_of(const struct sar_doubling *d, const struct sar_fold *f)
{
    return d->limit == 0 ? f->power : d->limit;
}

/* Zeros that may get lost on the way are lost here too: with a -0.0 or a NaN, a zero that is there and an
 * absent one do not make the same MAX. */
static enum sar_status encode(struct sar_request *request, struct sar_run *run)
{
    struct sar_doubling *d = request->state;
    if (request->agreed->dense_face)
        SAR_TRY(sar_drop_zeros(&request->agreed->shape, request->passing, run));
    return sar_request_encode(request, false, layout_of(request->agreed), run, &d->outgoing);
}

enum sar_status sar_doubling_begin(struct sar_request *request)
{
    struct sar_fold f = sar_fold_of(request->net);
    struct sar_doubling *d = request->state;
    d->mine = request->input;
    return sar_fold_hands_over(&f) ? encode(request, &d->mine) : SAR_OK;
}

void sar_doubling_fold_in(struct sar_request *request)
{
    struct sar_fold f = sar_fold_of(request->net);
    struct sar_doubling *d = request->state;
    d->distance = 1;
    if (sar_fold_hands_over(&f))
        sar_exchange_send(&request->exchange, f.rank + 1, &d->outgoing);
    if (sar_fold_takes_over(&f))
        sar_exchange_expect(&request->exchange, f.rank - 1);
}

/* Reduce what came from a peer with what is here; the lower ranks' elements come first, so that both ends get
 * the same bits. The last reduction goes straight into the outcome, but not where it must be sent on: the
 * outcome is written when nothing can fail any more. */
static enum sar_status merge(struct sar_request *request, int peer, bool last)
{
    struct sar_doubling *d = request->state;
    struct sar_run theirs, both[2];
    SAR_TRY(sar_request_decode(request, layout_of(request->agreed), peer, &theirs));
    struct sar_shape shape = sar_request_shape(request);
    both[peer > request->net->rank] = theirs;
    both[peer < request->net->rank] = d->mine;
    d->delivered = last;
    if (last)
        return sar_request_deliver(request, &shape, both, 2);
    return sar_request_reduce(request, &shape, both, 2, &d->mine);
}

/* What the exchange before brought comes from the rank that handed over, or from the last peer. */
enum sar_status sar_doubling_absorb(struct sar_request *request)
{
    struct sar_fold f = sar_fold_of(request->net);
    struct sar_doubling *d = request->state;
    bool last = d->distance == f.power && !sar_fold_takes_over(&f);
    if (f.place < 0)
        return SAR_OK;
    if (d->distance > 1)
        return merge(request, sar_fold_peer(&f, d->distance / 2), last);
    return sar_fold_takes_over(&f) ? merge(request, f.rank - 1, last) : SAR_OK;
}

enum sar_status sar_doubling_prepare(struct sar_request *request)
{
    struct sar_fold f = sar_fold_of(request->net);
    struct sar_doubling *d = request->state;
    if (f.power == 1)
        return SAR_OK;
    SAR_TRY(sar_doubling_absorb(request));
    return f.place < 0 ? SAR_OK : encode(request, &d->mine);
}

void sar_doubling_exchange(struct sar_request *request)
{
    struct sar_fold f = sar_fold_of(request->net);
    struct sar_doubling *d = request->state;
    if (f.power == 1)
        return;
    if (f.place >= 0) {
        sar_exchange_expect(&request->exchange, sar_fold_peer(&f, d->distance));
        sar_exchange_send(&request->exchange, sar_fold_peer(&f, d->distance), &d->outgoing);
    }
    d->distance *= 2;
    request->again = d->distance < limit_of(d, &f);
}

/* All ranks have met: the outcome is delivered, or still here on a rank that has to send it on. */
enum sar_status sar_doubling_end(struct sar_request *request)
{
    struct sar_fold f = sar_fold_of(request->net);
    struct sar_doubling *d = request->state;
    if (limit_of(d, &f) == f.power)
        SAR_TRY(sar_doubling_absorb(request));
    if (f.folded != 0 && d->delivered)
        sar_request_settle(request);
    return sar_fold_takes_over(&f) ? encode(request, &d->mine) : SAR_OK;
}

void sar_doubling_fold_out(struct sar_request *request)
{
    struct sar_fold f = sar_fold_of(request->net);
    struct sar_doubling *d = request->state;
    if (sar_fold_takes_over(&f))
        sar_exchange_send(&request->exchange, f.rank - 1, &d->outgoing);
    if (sar_fold_hands_over(&f))
        sar_exchange_expect(&request->exchange, f.rank + 1);
}

enum sar_status sar_doubling_take_back(struct sar_request *request)
{
    struct sar_fold f = sar_fold_of(request->net);
    struct sar_doubling *d = request->state;
    struct sar_shape shape = request->agreed->shape;
    struct sar_run outcome = d->mine;
    shape.absent_is_zero = false;
    if (d->delivered)
        return SAR_OK;
    if (sar_fold_hands_over(&f))
        SAR_TRY(sar_request_decode(request, layout_of(request->agreed), f.rank + 1, &outcome));
    return sar_request_deliver(request, &shape, &outcome, 1);
}
