/* SPDX-License-Identifier: BSD-3-Clause */
/* Allgather (AGsparse, PyTorch's and Horovod's way): every rank sends its elements to every other rank and
 * reduces what it receives, in rank order, in one pass.
 *
 * One step only, hence good for few ranks and for very sparse vectors. What a rank receives grows with the
 * number of ranks, since equal indices meet only at the end.
 *
 *     time = e(p-1, (p-1) m) + p z gamma
 *
 * p ranks, z elements and m bytes of message for the fullest rank, e as for sar_agreed_exchange. */

#include "scheme/scheme.h"

struct state {
    struct sar_run mine; /* as the others read it */
    struct sar_message message;
};

static struct sar_layout layout_of(const struct sar_agreed *agreed)
{
    return sar_agreed_layout(agreed, agreed->shape.count, agreed->shape.index_size);
}

static double seconds(const struct sar_agreed *a)
{
    struct sar_layout layout = layout_of(a);
    struct sar_cost message = sar_agreed_cost(a, false, &layout, a->nnz_max);
    double peers = a->machine.ranks - 1;
    double coding = a->machine.ranks / 2.0 * message.work; /* written once */
    double work = a->machine.ranks * a->nnz_mean + coding;
    return sar_agreed_exchange(a, peers, peers * message.bytes) + work * a->machine.gamma;
}

static enum sar_status encode(struct sar_request *request)
{
    struct state *state = request->state;
    struct sar_message *message = request->net->ranks > 1 ? &state->message : NULL;
    state->mine = request->input;
    return sar_request_encode(request, false, layout_of(request->agreed), &state->mine, message);
}

/* Begin with the next rank, so that not all send to the same one at once. */
static void exchange(struct sar_request *request)
{
    struct state *state = request->state;
    int ranks = request->net->ranks;
    for (int i = 1; i < ranks; i++)
        sar_exchange_expect(&request->exchange, (request->net->rank + i) % ranks);
    for (int i = 1; i < ranks; i++)
        sar_exchange_send(&request->exchange, (request->net->rank + i) % ranks, &state->message);
}

static enum sar_status reduce(struct sar_request *request)
{
    const struct state *state = request->state;
    struct sar_run *runs;
    int ranks = request->net->ranks;
    SAR_TRY(sar_request_take(request, (size_t)ranks, sizeof *runs, &runs));
    for (int r = 0; r < ranks; r++)
        if (r != request->net->rank)
            SAR_TRY(sar_request_decode(request, layout_of(request->agreed), r, &runs[r]));
    runs[request->net->rank] = state->mine;
    struct sar_shape shape = sar_request_shape(request);
    return sar_request_deliver(request, &shape, runs, (size_t)ranks);
}

static const struct sar_stage stages[] = { { .compute = encode, .post = exchange },
                                           { .compute = reduce },
                                           { .compute = NULL } };

const struct sar_scheme sar_scheme_allgather = {
    .name = "allgather",
    .summary = "every rank sends its elements to every other rank, which reduces them all",
    .obstacle = sar_sparse_obstacle,
    .seconds = seconds,
    .state_size = sizeof(struct state),
    .stages = stages,
};
