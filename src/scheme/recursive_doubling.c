/* SPDX-License-Identifier: BSD-3-Clause */
/* Recursive doubling (SparCML's SSAR_Recursive_double; the paper's Hierarchical Centralization): in stage i
 * each rank exchanges all it has with the rank 2^i away and reduces both.
 *
 * Few messages, and equal indices meet early: for few ranks, small messages and vectors that overlap
 * much. When p is not a power of two, the first 2 (p - 2^L) ranks pair up: the even ones hand their
 * elements to the odd ones before the first stage and get the outcome after the last.
 *
 *     time = sum over i < L of (alpha + m(z gamma^(2^i)) beta + 2 z gamma^(2^i) gamma)
 *
 * L = floor(log2 p), and two more messages, of z and of the outcome, when p is not a power of two; z elements
 * of a rank, m bytes of message for so many, of the cheapest format: dense when sparse would be larger. With
 * m(z) = 2 z s and without alpha and gamma this is the paper's Equation 2. */

#include "scheme/scheme.h"

struct state {
    struct sar_run mine; /* what this rank's group has so far */
    struct sar_message outgoing;
    int distance; /* in ranks of the power-of-two group, of the exchange that comes next */
};

/* Where a rank stands among the largest power of two of ranks. */
struct place {
    int power;  /* that power of two */
    int folded; /* ranks below this one pair up beforehand; even */
    int rank;   /* within the group, or -1 for a rank that handed its elements over */
};

static struct place place_of(const struct sar_net *net)
{
    struct place p = { .power = 1 };
    while (p.power * 2 <= net->ranks)
        p.power *= 2;
    p.folded = 2 * (net->ranks - p.power);
    if (net->rank >= p.folded)
        p.rank = net->rank - p.folded / 2;
    else
        p.rank = net->rank % 2 == 1 ? net->rank / 2 : -1;
    return p;
}

static int peer_at(const struct place *p, int distance)
{
    int rank = p->rank ^ distance;
    return rank < p->folded / 2 ? 2 * rank + 1 : rank + p->folded / 2;
}

static struct sar_layout layout_of(const struct sar_agreed *agreed)
{
    return sar_agreed_layout(agreed, agreed->shape.count, agreed->shape.index_size);
}

static double stage_seconds(const struct sar_agreed *a, double elements, double reduced)
{
    struct sar_layout layout = layout_of(a);
    struct sar_cost message = sar_agreed_cost(a, false, &layout, elements);
    return a->machine.alpha + message.bytes * a->machine.beta + (reduced + message.work) * a->machine.gamma;
}

static double seconds(const struct sar_agreed *a)
{
    double time = 0, fullest = a->nnz_mean > 0 ? a->nnz_max / a->nnz_mean : 1;
    int power = 1;
    for (; power * 2 <= a->machine.ranks; power *= 2) {
        double elements = sar_agreed_union(a, power) * (power == 1 ? fullest : 1);
        time += stage_seconds(a, elements, 2 * elements);
    }
    if (power != a->machine.ranks)
        time +=
            stage_seconds(a, a->nnz_max, 2 * a->nnz_mean) +
            stage_seconds(a, sar_agreed_union(a, a->machine.ranks), sar_agreed_union(a, a->machine.ranks));
    return time;
}

/* Equation 2: sum over i = 1 … log2 n of gamma^(2^(i-1)) 2 M d. */
static double paper_bytes(const struct sar_agreed *a)
{
    double bytes = 0, values = a->nnz_mean * (double)a->shape.element_size;
    for (int power = 1; power < a->machine.ranks; power *= 2)
        bytes += sar_gamma_at(&a->gamma, power) * 2 * values;
    return bytes;
}

static bool hands_over(const struct sar_net *net, const struct place *p)
{
    return net->rank < p->folded && p->rank < 0;
}

static bool takes_over(const struct sar_net *net, const struct place *p)
{
    return net->rank < p->folded && p->rank >= 0;
}

static enum sar_status encode(struct sar_request *request, const struct sar_run *run)
{
    struct state *state = request->state;
    return sar_request_encode(request, false, layout_of(request->agreed), run, &state->outgoing);
}

static enum sar_status encode_input(struct sar_request *request)
{
    struct place p = place_of(request->net);
    struct state *state = request->state;
    state->mine = request->input;
    return hands_over(request->net, &p) ? encode(request, &request->input) : SAR_OK;
}

static void fold_in(struct sar_request *request)
{
    struct place p = place_of(request->net);
    struct state *state = request->state;
    state->distance = 1;
    if (hands_over(request->net, &p))
        sar_exchange_send(&request->exchange, request->net->rank + 1, &state->outgoing);
    if (takes_over(request->net, &p))
        sar_exchange_expect(&request->exchange, request->net->rank - 1);
}

/* Reduce what came from a peer with what is here; the lower ranks' elements come first, so that both ends get
 * the same bits. The last reduction goes straight into the outcome, but not where it must be sent on: the
 * outcome is written when nothing can fail any more. */
static enum sar_status merge(struct sar_request *request, int peer, bool last)
{
    struct state *state = request->state;
    struct sar_run theirs, both[2];
    SAR_TRY(sar_request_decode(request, layout_of(request->agreed), peer, &theirs));
    struct sar_shape shape = sar_request_shape(request);
    both[peer > request->net->rank] = theirs;
    both[peer < request->net->rank] = state->mine;
    if (last)
        return sar_request_deliver(request, &shape, both, 2);
    SAR_TRY(sar_run_take(&shape, sar_reduce_bound(&shape, both, 2), request->arena, &state->mine));
    return request->device->reduce(&shape, both, 2, request->arena, &state->mine);
}

/* Reduce what the exchange before brought: from the rank that handed over, or from the last peer. */
static enum sar_status absorb(struct sar_request *request, const struct place *p)
{
    struct state *state = request->state;
    bool last = state->distance == p->power && !takes_over(request->net, p);
    if (p->rank < 0)
        return SAR_OK;
    if (state->distance > 1)
        return merge(request, peer_at(p, state->distance / 2), last);
    return takes_over(request->net, p) ? merge(request, request->net->rank - 1, last) : SAR_OK;
}

static enum sar_status prepare_exchange(struct sar_request *request)
{
    struct place p = place_of(request->net);
    struct state *state = request->state;
    if (p.power == 1)
        return SAR_OK;
    SAR_TRY(absorb(request, &p));
    return p.rank < 0 ? SAR_OK : encode(request, &state->mine);
}

static void exchange(struct sar_request *request)
{
    struct place p = place_of(request->net);
    struct state *state = request->state;
    if (p.power == 1)
        return;
    if (p.rank >= 0) {
        sar_exchange_expect(&request->exchange, peer_at(&p, state->distance));
        sar_exchange_send(&request->exchange, peer_at(&p, state->distance), &state->outgoing);
    }
    state->distance *= 2;
    request->again = state->distance < p.power;
}

static enum sar_status finish_exchanges(struct sar_request *request)
{
    struct place p = place_of(request->net);
    struct state *state = request->state;
    if (request->net->ranks == 1)
        return sar_request_deliver(request, &request->agreed->shape, &state->mine, 1);
    SAR_TRY(absorb(request, &p));
    return takes_over(request->net, &p) ? encode(request, &state->mine) : SAR_OK;
}

static void fold_out(struct sar_request *request)
{
    struct place p = place_of(request->net);
    struct state *state = request->state;
    if (takes_over(request->net, &p))
        sar_exchange_send(&request->exchange, request->net->rank - 1, &state->outgoing);
    if (hands_over(request->net, &p))
        sar_exchange_expect(&request->exchange, request->net->rank + 1);
}

static enum sar_status take_back(struct sar_request *request)
{
    struct place p = place_of(request->net);
    struct state *state = request->state;
    struct sar_shape shape = request->agreed->shape;
    struct sar_run outcome = state->mine;
    shape.absent_is_zero = false;
    if (request->net->rank >= p.folded)
        return SAR_OK;
    if (hands_over(request->net, &p))
        SAR_TRY(sar_request_decode(request, layout_of(request->agreed), request->net->rank + 1, &outcome));
    return sar_request_deliver(request, &shape, &outcome, 1);
}

static const struct sar_stage stages[] = {
    { encode_input, fold_in, NULL },
    { prepare_exchange, exchange, NULL },
    { finish_exchanges, fold_out, NULL },
    { take_back, NULL, NULL },
    { NULL, NULL, NULL },
};

const struct sar_scheme sar_scheme_recursive_doubling = {
    .name = "recursive_doubling",
    .summary = "log2 n stages in which pairs exchange and reduce all they have",
    .obstacle = sar_sparse_obstacle,
    .seconds = seconds,
    .paper_bytes = paper_bytes,
    .state_size = sizeof(struct state),
    .stages = stages,
};
