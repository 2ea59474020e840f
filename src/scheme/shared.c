/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared: ranks of one node read each other's memory. Each puts its elements on a shelf, finds in
 * everybody's where its part of the index space begins and ends so that all parts hold equally many
 * elements, and reduces them, in rank order. Coordinates then go to their place in storage that all ranks
 * have in common, one copy a node; dense buffers take the parts from the shelves on which they lie.
 *
 * No messages: ranks meet three times, and twice for dense buffers. Where there is so little that reducing
 * all of it costs less than to meet again, each rank does that, and they meet once.
 *
 *     time = 3 t + z gamma + 2 (s+i) (z + z f/p) mu
 *
 * t a meeting, p ranks, z elements of a rank and z f of the union, s and i bytes of an element and an
 * index, mu seconds for a byte in memory. The cuts are those of parallel merge sorts. */

#include <string.h>

#include "net/window.h"
#include "scheme/scheme.h"
#include "tensor/cut.h"
#include "tensor/stretch.h"

enum {
    FEW = 1024,      /* elements of a rank that each of a few ranks had better reduce itself */
    SHELF_PIECE = 2, /* the other two take the inputs of calls in turn */
    BALANCE = 64     /* parts may differ by one in so many */
};

static const double MEETING = 0.5; /* of alpha */

/* What a rank tells the others when they meet. */
struct card {
    int64_t status;
    uint64_t nnz;                    /* of its input, then of its part */
    uint64_t room;                   /* elements that there is room for where these lie */
    struct sar_segment_name shelf;   /* that these lie on */
    struct sar_segment_name storage; /* handed back; then, from rank 0, the one to use */
    uint32_t index_size;             /* in storage, 0 for none */
    uint16_t minus_zero;
    uint16_t fresh; /* a shelf that nobody has looked at before */
};

_Static_assert(sizeof(struct card) <= SAR_CARD, "cards are handed over at meetings");

struct state {
    struct card card;
    struct sar_run *inputs; /* of all ranks, where they lie */
    struct sar_run piece;   /* this rank's part */
    bool in_common;         /* the outcome goes into storage */
    struct sar_storage *storage;
};

static const char *obstacle(const struct sar_agreed *agreed)
{
    const char *why = sar_sparse_obstacle(agreed);
    return why == NULL && !agreed->share_memory ? "ranks do not share memory" : why;
}

/* A decision of all ranks alike. */
static bool is_small(const struct sar_agreed *a)
{
    return a->machine.ranks == 1 || a->nnz_mean * (double)a->shape.row * (a->machine.ranks - 1) <= FEW;
}

static double seconds(const struct sar_agreed *a)
{
    double meeting = MEETING * a->machine.alpha, ranks = a->machine.ranks;
    if (is_small(a))
        return meeting + ranks * a->nnz_mean * a->machine.gamma;
    double element = (double)(a->shape.element_size + a->shape.index_size);
    double moved = a->nnz_mean + sar_agreed_union(a, ranks) / ranks;
    return 3 * meeting + a->nnz_mean * a->machine.gamma + 2 * element * moved * a->machine.memory;
}

static struct sar_window *window_of(const struct sar_request *request)
{
    return request->net->window;
}

static const struct card *card_of(const struct sar_request *request, int rank)
{
    return sar_window_card(window_of(request), rank);
}

static struct sar_shelf *input_shelf(const struct sar_request *request)
{
    return &window_of(request)->shelves[request->epoch % SHELF_PIECE];
}

static struct sar_shelf *piece_shelf(const struct sar_request *request)
{
    return &window_of(request)->shelves[SHELF_PIECE];
}

static uint64_t up(uint64_t bytes)
{
    return bytes > UINT64_MAX - SAR_ALIGNMENT ? bytes
                                              : (bytes + SAR_ALIGNMENT - 1) / SAR_ALIGNMENT * SAR_ALIGNMENT;
}

/* A run in memory: indices, and aligned behind them the values. */
static uint64_t bytes_of(const struct sar_shape *shape, unsigned index_size, uint64_t nnz)
{
    return sar_plus(up(sar_times(nnz, index_size)), sar_times(nnz, shape->element_size));
}

static struct sar_run lay_out(void *memory, unsigned index_size, uint64_t nnz)
{
    return (struct sar_run){ memory, (unsigned char *)memory + up(nnz * index_size), (size_t)nnz };
}

static enum sar_status take_shelf(struct sar_request *request, struct sar_shelf *shelf, size_t nnz,
                                  struct sar_run *run)
{
    const struct sar_shape *shape = &request->agreed->shape;
    struct state *state = request->state;
    struct sar_segment_name before = shelf->name;
    SAR_TRY(sar_shelf_room(shelf, sar_plus(bytes_of(shape, shape->index_size, nnz), 1)));
    state->card.shelf = shelf->name;
    state->card.room = nnz;
    state->card.fresh = !sar_segment_same(&before, &shelf->name);
    *run = lay_out(shelf->own.memory, shape->index_size, nnz);
    return SAR_OK;
}

/* What a rank has put on its shelf, as its card says. */
static enum sar_status look_at(struct sar_request *request, struct sar_shelf *shelf, int rank,
                               struct sar_run *run)
{
    const struct card *card = card_of(request, rank);
    void *memory;
    *run = (struct sar_run){ NULL, NULL, 0 };
    if (card->nnz == 0)
        return SAR_OK;
    SAR_TRY(sar_shelf_view(shelf, rank, &card->shelf, &memory));
    *run = lay_out(memory, request->agreed->shape.index_size, card->room);
    run->nnz = card->nnz;
    return SAR_OK;
}

static void meet(struct sar_request *request)
{
    struct state *state = request->state;
    state->card.status = (int64_t)request->exchange.status;
    sar_window_arrive(window_of(request), "scheme shared", &state->card, sizeof state->card);
}

static enum sar_status hear(const struct sar_request *request)
{
    for (int r = 0; r < request->net->ranks; r++)
        if (card_of(request, r)->status != SAR_OK)
            return SAR_PEER_FAILED;
    return SAR_OK;
}

static enum sar_status bring(struct sar_request *request)
{
    struct state *state = request->state;
    const struct sar_run *input = &request->input;
    struct sar_run copy;
    if (request->net->ranks > 1) {
        SAR_TRY(take_shelf(request, input_shelf(request), input->nnz, &copy));
        sar_run_copy(&request->agreed->shape, input, &copy);
    }
    request->output_covers = true;
    state->card.nnz = input->nnz;
    state->card.minus_zero = request->minus_zero;
    state->card.index_size = request->sink->adopt != NULL ? request->sink->index_size : 0;
    if (request->sink->back != NULL)
        state->card.storage = sar_storage_name(request->sink->back);
    return SAR_OK;
}

/* What all ranks have brought; one's own lies where the caller has it. */
static enum sar_status look_around(struct sar_request *request)
{
    struct state *state = request->state;
    int ranks = request->net->ranks;
    SAR_TRY(sar_request_take(request, (size_t)ranks, sizeof *state->inputs, &state->inputs));
    if (ranks > 1)
        SAR_TRY(hear(request));
    for (int r = 0; r < ranks && ranks > 1; r++) {
        if (r == request->net->rank)
            state->inputs[r] = request->input;
        else
            SAR_TRY(look_at(request, input_shelf(request), r, &state->inputs[r]));
        request->minus_zero |= card_of(request, r)->minus_zero != 0;
    }
    return SAR_OK;
}

/* This rank's stretch of each input. */
static enum sar_status cut_out(struct sar_request *request, struct sar_run *slices)
{
    struct state *state = request->state;
    const struct sar_shape *shape = &request->agreed->shape;
    size_t n = (size_t)request->net->ranks, rank = (size_t)request->net->rank, total = 0, *from;
    for (size_t r = 0; r < n; r++)
        total += state->inputs[r].nnz;
    SAR_TRY(sar_request_take(request, 4 * n, sizeof *from, &from));
    size_t *to = from + n, *spare = to + n, share = total / n, slack = share / BALANCE;
    if (rank > 0)
        sar_runs_cut(shape, state->inputs, n, rank * share, slack, from, spare);
    if (rank + 1 < n)
        sar_runs_cut(shape, state->inputs, n, (rank + 1) * share, slack, to, spare);
    for (size_t r = 0; r < n; r++)
        slices[r] =
            sar_run_slice(shape, &state->inputs[r], from[r], rank + 1 < n ? to[r] : state->inputs[r].nnz);
    return SAR_OK;
}

/* Whether all ranks can use storage, and whether they hand back the same. */
static bool all_adopt(const struct sar_request *request)
{
    const struct card *mine = card_of(request, request->net->rank);
    for (int r = 0; r < request->net->ranks; r++)
        if (card_of(request, r)->index_size != mine->index_size)
            return false;
    return mine->index_size != 0;
}

static bool all_hand_back(const struct sar_request *request)
{
    const struct card *mine = card_of(request, request->net->rank);
    for (int r = 0; r < request->net->ranks; r++)
        if (!sar_segment_same(&card_of(request, r)->storage, &mine->storage))
            return false;
    return request->sink->back != NULL;
}

/* On rank 0: storage for as many elements as the union can have. Only pages that are used cost memory. */
static enum sar_status choose_storage(struct sar_request *request)
{
    struct state *state = request->state;
    const struct sar_shape *shape = &request->agreed->shape;
    size_t bound = sar_reduce_bound(shape, state->inputs, (size_t)request->net->ranks);
    struct sar_storage *back = all_hand_back(request) ? request->sink->back : NULL;
    SAR_TRY(sar_storage_choose(window_of(request), back, bytes_of(shape, request->sink->index_size, bound),
                               &state->storage));
    state->card.storage = sar_storage_name(state->storage);
    return SAR_OK;
}

/* With one rank a copy. */
static enum sar_status reduce_all(struct sar_request *request)
{
    struct state *state = request->state;
    struct sar_shape shape = sar_request_shape(request);
    struct sar_run out = { NULL, NULL, 0 };
    if (request->net->ranks > 1)
        return sar_request_deliver(request, &shape, state->inputs, (size_t)request->net->ranks);
    SAR_TRY(request->sink->room(request->sink, request, request->input.nnz, &out));
    sar_run_copy(&shape, &request->input, &out);
    out.nnz = request->input.nnz;
    request->output = out;
    return SAR_OK;
}

static enum sar_status reduce_part(struct sar_request *request)
{
    struct state *state = request->state;
    struct sar_shape shape = sar_request_shape(request);
    struct sar_run *slices;
    size_t n = (size_t)request->net->ranks;
    SAR_TRY(sar_request_take(request, n, sizeof *slices, &slices));
    SAR_TRY(cut_out(request, slices));
    state->in_common = all_adopt(request);
    if (state->in_common && request->net->rank == 0)
        SAR_TRY(choose_storage(request));
    SAR_TRY(take_shelf(request, piece_shelf(request), sar_reduce_bound(&shape, slices, n), &state->piece));
    SAR_TRY(request->device->reduce(&shape, slices, n, request->arena, &state->piece));
    state->card.nnz = state->piece.nnz;
    return SAR_OK;
}

static enum sar_status reduce(struct sar_request *request)
{
    SAR_TRY(look_around(request));
    return is_small(request->agreed) ? reduce_all(request) : reduce_part(request);
}

/* Copy a part to its place among all, where indices may be wider. */
static void put(const struct sar_shape *shape, const struct sar_run *part, unsigned index_size, size_t before,
                const struct sar_run *out)
{
    struct sar_shape wide = *shape;
    wide.index_size = index_size;
    struct sar_run at = sar_run_slice(&wide, out, before, before);
    if (index_size == shape->index_size)
        sar_run_copy(shape, part, &at);
    else
        sar_run_append(&wide, part, shape->index_size, 0, &at);
}

/* Every rank its own part. */
static enum sar_status fill_storage(struct sar_request *request, size_t before, size_t total)
{
    struct state *state = request->state;
    unsigned index_size = request->sink->index_size;
    const struct card *first = card_of(request, 0);
    if (request->net->rank != 0)
        SAR_TRY(sar_storage_find(window_of(request), request->sink->back, &first->storage, &state->storage));
    request->output = lay_out(sar_storage_memory(state->storage), index_size, total);
    request->sink->adopt(request->sink, state->storage, &request->output);
    put(&request->agreed->shape, &state->piece, index_size, before, &request->output);
    return SAR_OK;
}

/* Each rank all parts, where their callers want indices of different sizes. */
static enum sar_status copy_out(struct sar_request *request, const struct sar_run *pieces, size_t total)
{
    const struct sar_shape *shape = &request->agreed->shape;
    struct sar_run out = { NULL, NULL, 0 };
    SAR_TRY(request->sink->room(request->sink, request, total, &out));
    for (int r = 0; r < request->net->ranks; r++) {
        put(shape, &pieces[r], shape->index_size, out.nnz, &out);
        out.nnz += pieces[r].nnz;
    }
    request->output = out;
    return SAR_OK;
}

static enum sar_status place(struct sar_request *request)
{
    struct state *state = request->state;
    struct sar_run *pieces;
    size_t before = 0, total = 0, n = (size_t)request->net->ranks;
    if (is_small(request->agreed))
        return SAR_OK;
    SAR_TRY(hear(request));
    SAR_TRY(sar_request_take(request, n, sizeof *pieces, &pieces));
    for (int r = 0; r < request->net->ranks; r++) {
        SAR_TRY(look_at(request, piece_shelf(request), r, &pieces[r]));
        before += r < request->net->rank ? pieces[r].nnz : 0;
        total += pieces[r].nnz;
    }
    if (state->in_common)
        return fill_storage(request, before, total);
    if (!request->agreed->dense_face)
        return copy_out(request, pieces, total);
    request->pieces = pieces;
    request->pieces_n = n;
    request->output.nnz = total;
    return SAR_OK;
}

static bool has_storage(const struct sar_request *request)
{
    return !request->agreed->dense_face && !is_small(request->agreed);
}

static enum sar_status finish(struct sar_request *request)
{
    const struct state *state = request->state;
    if (!has_storage(request))
        return SAR_OK;
    if (state->in_common)
        sar_storage_seal(state->storage);
    return hear(request);
}

/* Nobody may go on to close a shelf that others still have to map. */
static bool any_fresh(const struct sar_request *request)
{
    for (int r = 0; r < request->net->ranks; r++)
        if (card_of(request, r)->fresh)
            return true;
    return false;
}

static void meet_brought(struct sar_request *request)
{
    if (request->net->ranks > 1)
        meet(request);
}

static void meet_reduced(struct sar_request *request)
{
    if (request->net->ranks > 1 && (!is_small(request->agreed) || any_fresh(request)))
        meet(request);
}

static void meet_placed(struct sar_request *request)
{
    if (!is_small(request->agreed) && (has_storage(request) || any_fresh(request)))
        meet(request);
}

static const struct sar_stage stages[] = {
    { bring, meet_brought, NULL }, { reduce, meet_reduced, NULL }, { place, meet_placed, NULL },
    { finish, NULL, NULL },        { NULL, NULL, NULL },
};

const struct sar_scheme sar_scheme_shared = {
    .name = "shared",
    .summary = "ranks of one node reduce parts of each other's elements in shared memory",
    .obstacle = obstacle,
    .seconds = seconds,
    .state_size = sizeof(struct state),
    .stages = stages,
};
