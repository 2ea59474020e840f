/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared: ranks of one node read each other's memory. Each puts its elements on a shelf, dense buffers being
 * compacted onto it, and finds in everybody's where its part of the index space begins and ends so that all
 * parts hold equally many elements. These it reduces, in rank order.
 *
 * Outcomes of coordinates lie in storage that all ranks have in common, one copy a node. A part's place there
 * is known once all parts have been counted, which is the first half of a reduction (tensor/reduce.h): so
 * ranks count, meet, and write each sum once, where it stays. Dense buffers take parts from further shelves.
 *
 * No messages: ranks meet three times, and twice for dense buffers. Where there is so little that reducing
 * all of it costs less than to meet again, each rank does that, and they meet once; so do few ranks with
 * dense buffers, of which each folds all elements into its own (shared_alone.c). One rank copies.
 *
 *     time = 3 t + z gamma + (s+i) (2 z + z f/p) mu        coordinates
 *     time = 2 t + z gamma + (s+i) (z + z f/p + z f) mu    dense buffers, once these are read and written
 *     time = t + p z gamma                                 so little that each rank reduces all of it
 *     time = t + 0.55 p z gamma                            folded into dense buffers
 *
 * t a meeting, p ranks, z elements of a rank and z f of the union, s and i bytes of an element and an
 * index, mu seconds for a byte in memory. The cuts are those of parallel merge sorts. */

#include "scheme/shared_parts.h"
#include "tensor/cut.h"
#include "tensor/stretch.h"

enum {
    SHELF_PIECE = 2,     /* the other two are for inputs */
    BALANCE = 64,        /* parts may differ by one in so many */
    MOST_APART = 1 << 20 /* bytes of a part that is put elsewhere first */
};

struct state {
    struct sar_card card;
    struct sar_shelf *shelf; /* for inputs */
    struct sar_run *inputs;  /* of all ranks, where they lie */
    struct sar_shape shape;  /* of the reduction */
    bool would_reduce_all;   /* each rank, by what is agreed */
    bool reduces_all;        /* each rank does, as found at the first meeting */
    bool alone;              /* reads_alone, likewise */
    bool in_common;          /* the outcome goes into storage */
    struct sar_storage *storage;
    struct sar_reduction part; /* this rank's, if in common */
    struct sar_run piece;      /* or where it lies */
};

_Static_assert(sizeof(struct state) <= SAR_SHARED_STATE, "two_level has room for it");

static const char *obstacle(const struct sar_agreed *agreed)
{
    const char *why = sar_sparse_obstacle(agreed);
    bool common = agreed->nodes == 1 && agreed->share_memory;
    return why == NULL && !common ? "ranks do not share memory" : why;
}

static struct sar_window *window_of(const struct sar_request *request)
{
    return request->net->window;
}

static struct sar_shelf *piece_shelf(const struct sar_request *request)
{
    return &window_of(request)->shelves[SHELF_PIECE];
}

static void meet(struct sar_request *request)
{
    struct state *state = request->state;
    sar_card_show(request, &state->card);
}

void sar_shared_take(struct sar_request *request, const struct sar_shared_sink *from)
{
    ((struct state *)request->state)->card = from->card;
}

static enum sar_status excuse(struct sar_request *request, enum sar_status status)
{
    struct state *state = request->state;
    return sar_card_excuse(request, &state->card, status);
}

/* Where others see it, so that what is compacted early, for a profile, need not be copied. For that it does
 * elsewhere, too. */
static enum sar_status compact(struct sar_request *request)
{
    struct state *state = request->state;
    const struct sar_agreed *agreed = request->agreed;
    const void *buf = agreed->in_place ? request->buffers.recvbuf : request->buffers.sendbuf;
    SAR_TRY(excuse(request, sar_shared_compact(request, &state->card)));
    if (state->card.status == SAR_OK)
        return SAR_OK;
    return request->device->compact(&agreed->shape, buf, (size_t)agreed->nnz_max, request->arena,
                                    &request->input);
}

static enum sar_status bring(struct sar_request *request)
{
    struct state *state = request->state;
    const struct sar_run *input = &request->input;
    state->shelf = sar_shared_shelf(request);
    enum sar_status status = sar_shared_shelve(request, &state->card);
    if (status != SAR_OK)
        return excuse(request, status);
    request->output_covers = true;
    state->card.nnz = input->nnz;
    state->card.minus_zero = request->minus_zero;
    state->card.index_size = request->sink->adopt != NULL ? request->sink->index_size : 0;
    if (request->sink->back != NULL)
        state->card.storage = sar_storage_name(request->sink->back);
    return SAR_OK;
}

/* By what has been brought: what is agreed may be estimated, or of earlier calls. */
static bool can_reduce_all(const struct sar_request *request)
{
    double nnz = 0;
    struct sar_shape shape = sar_request_shape(request);
    for (int r = 0; r < request->net->ranks; r++)
        nnz += (double)sar_card_of(request, r)->nnz;
    return sar_shared_reduces_all(request->agreed, &shape, nnz / request->net->ranks);
}

/* Whatever fails after that, all ranks know how often they meet. */
static enum sar_status hear_all(struct sar_request *request)
{
    struct state *state = request->state;
    int ranks = request->net->ranks;
    if (ranks == 1) {
        state->reduces_all = true;
        return state->card.status == SAR_OK ? SAR_OK : SAR_UNSHARED;
    }
    SAR_TRY(sar_cards_hear(request));
    for (int r = 0; r < ranks; r++)
        request->minus_zero |= sar_card_of(request, r)->minus_zero != 0;
    state->reduces_all = state->would_reduce_all && can_reduce_all(request);
    return SAR_OK;
}

/* What all ranks have brought. */
static enum sar_status look_around(struct sar_request *request)
{
    struct state *state = request->state;
    int ranks = request->net->ranks;
    SAR_TRY(hear_all(request));
    SAR_TRY(sar_request_take(request, (size_t)ranks, sizeof *state->inputs, &state->inputs));
    for (int r = 0; r < ranks && ranks > 1; r++)
        SAR_TRY(sar_card_look(request, state->shelf, r, &state->inputs[r]));
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
        sar_runs_cut(shape, state->inputs, n, (struct sar_cut_aim){ rank * share, slack }, from, spare);
    if (rank + 1 < n)
        sar_runs_cut(shape, state->inputs, n, (struct sar_cut_aim){ (rank + 1) * share, slack }, to, spare);
    for (size_t r = 0; r < n; r++)
        slices[r] =
            sar_run_slice(shape, &state->inputs[r], from[r], rank + 1 < n ? to[r] : state->inputs[r].nnz);
    return SAR_OK;
}

/* A part has its share of the slots. */
static void end_part(const struct sar_request *request, struct sar_span *span, const char *kind,
                     const struct sar_run *slices)
{
    size_t n = (size_t)request->net->ranks;
    if (span->from != 0)
        span->work = sar_work_on_runs(kind, &request->agreed->shape, slices, n);
    span->work.slots /= n;
    sar_request_span_end(request, span);
}

/* Where it begins in storage is known once all have counted theirs. */
static enum sar_status count_part(struct sar_request *request, const struct sar_run *slices)
{
    struct state *state = request->state;
    size_t n = (size_t)request->net->ranks, bound = sar_reduce_bound(&state->shape, state->inputs, n);
    if (request->net->rank == 0)
        SAR_TRY(sar_card_choose_storage(request, &state->card, bound, &state->storage));
    struct sar_span span = sar_request_span(request, "reduce");
    SAR_TRY(
        sar_reduce_count(&state->shape, slices, n, request->sink->index_size, request->arena, &state->part));
    end_part(request, &span, "count", slices);
    state->card.nnz = state->part.nnz;
    return SAR_OK;
}

static enum sar_status reduce_onto_shelf(struct sar_request *request, const struct sar_run *slices)
{
    struct state *state = request->state;
    size_t n = (size_t)request->net->ranks, bound = sar_reduce_bound(&state->shape, slices, n);
    SAR_TRY(sar_card_room(request, &state->card, piece_shelf(request), bound, &state->piece));
    struct sar_span span = sar_request_span(request, "reduce");
    SAR_TRY(request->device->reduce(&state->shape, slices, n, request->arena, &state->piece));
    end_part(request, &span, "reduce", slices);
    state->card.nnz = state->piece.nnz;
    return SAR_OK;
}

static enum sar_status reduce_part(struct sar_request *request)
{
    struct state *state = request->state;
    struct sar_run *slices;
    SAR_TRY(sar_request_take(request, (size_t)request->net->ranks, sizeof *slices, &slices));
    SAR_TRY(cut_out(request, slices));
    state->shape = sar_request_shape(request);
    state->in_common = sar_cards_adopt(request);
    state->card.fresh = 0;
    return state->in_common ? count_part(request, slices) : reduce_onto_shelf(request, slices);
}

/* Whether nobody waits until others have read, since all is mapped that they read. */
static bool reads_alone(const struct sar_request *request)
{
    const struct state *state = request->state;
    return request->net->ranks == 1 || (state->reduces_all && !sar_cards_fresh(request));
}

/* Who reads alone maps nothing. */
static enum sar_status reduce(struct sar_request *request)
{
    const struct state *state = request->state;
    enum sar_status status = look_around(request);
    if (status == SAR_OK)
        status = state->reduces_all ? sar_shared_reduce_all(request, state->inputs) : reduce_part(request);
    return status == SAR_OK || reads_alone(request) ? status : excuse(request, status);
}

/* Where others are far, in a place of its own first, if a cache has room for that. */
static enum sar_status write_part(struct sar_request *request, const struct sar_shape *shape,
                                  struct sar_run *out)
{
    struct state *state = request->state;
    bool apart = window_of(request)->far && sar_run_bytes(shape, shape->index_size, out->nnz) <= MOST_APART;
    struct sar_run made = *out;
    if (apart)
        SAR_TRY(sar_run_take(shape, out->nnz, request->arena, &made));
    struct sar_span span = sar_request_span(request, "deliver");
    sar_reduce_write(&state->part, &made);
    span.work = sar_work_on(state->part.summed ? "copy" : "fill", out->nnz, shape->element_size,
                            shape->count / (uint64_t)request->net->ranks);
    sar_request_span_end(request, &span);
    if (apart)
        sar_shared_put(request, shape, &made, out);
    return SAR_OK;
}

/* Every rank its own part. */
static enum sar_status fill_storage(struct sar_request *request)
{
    struct state *state = request->state;
    struct sar_shape shape = request->agreed->shape;
    size_t before = 0, total = 0;
    for (int r = 0; r < request->net->ranks; r++) {
        before += r < request->net->rank ? sar_card_of(request, r)->nnz : 0;
        total += sar_card_of(request, r)->nnz;
    }
    SAR_TRY(sar_card_adopt_storage(request, total, &state->storage));
    shape.index_size = request->sink->index_size;
    struct sar_run mine = sar_run_slice(&shape, &request->output, before, before + state->part.nnz);
    return write_part(request, &shape, &mine);
}

/* Each rank all parts, where their callers want indices of different sizes. */
static enum sar_status copy_out(struct sar_request *request, const struct sar_run *pieces, size_t total)
{
    const struct sar_shape *shape = &request->agreed->shape;
    struct sar_run out = { NULL, NULL, 0 };
    SAR_TRY(request->sink->room(request->sink, request, total, &out));
    for (int r = 0; r < request->net->ranks; r++) {
        struct sar_run at = sar_run_slice(shape, &out, out.nnz, out.nnz);
        sar_request_copy(request, shape, &pieces[r], &at, false);
        out.nnz += pieces[r].nnz;
    }
    request->output = out;
    return SAR_OK;
}

static enum sar_status gather(struct sar_request *request)
{
    struct sar_run *pieces;
    size_t total = 0, n = (size_t)request->net->ranks;
    SAR_TRY(sar_request_take(request, n, sizeof *pieces, &pieces));
    for (int r = 0; r < request->net->ranks; r++) {
        SAR_TRY(sar_card_look(request, piece_shelf(request), r, &pieces[r]));
        total += pieces[r].nnz;
    }
    if (!request->agreed->dense_face)
        return copy_out(request, pieces, total);
    request->pieces = pieces;
    request->pieces_n = n;
    request->output.nnz = total;
    return SAR_OK;
}

static bool has_storage(const struct sar_request *request)
{
    const struct state *state = request->state;
    return !request->agreed->dense_face && !state->reduces_all;
}

/* Whether ranks map something in order to place what they have reduced, and meet again. */
static bool maps_last(const struct sar_request *request)
{
    const struct state *state = request->state;
    return !state->reduces_all && (has_storage(request) || sar_cards_fresh(request));
}

static enum sar_status place(struct sar_request *request)
{
    const struct state *state = request->state;
    if (state->reduces_all)
        return state->alone ? SAR_OK : sar_cards_hear(request);
    SAR_TRY(sar_cards_hear(request));
    enum sar_status status = state->in_common ? fill_storage(request) : gather(request);
    return status == SAR_OK || !maps_last(request) ? status : excuse(request, status);
}

static enum sar_status finish(struct sar_request *request)
{
    return maps_last(request) ? sar_cards_hear(request) : SAR_OK;
}

/* Also after a failure: nobody will map it any more. */
static void close_storage(struct sar_request *request)
{
    const struct state *state = request->state;
    if (state->storage != NULL)
        sar_storage_seal(state->storage);
}

/* After a call with one meeting ranks may still read what the next one must not overwrite. */
static void meet_brought(struct sar_request *request)
{
    struct state *state = request->state;
    const struct sar_agreed *agreed = request->agreed;
    if (request->net->ranks == 1)
        return;
    state->would_reduce_all = sar_shared_reduces_all(agreed, &agreed->shape, agreed->nnz_mean);
    if (state->would_reduce_all)
        window_of(request)->turn = 1 - window_of(request)->turn;
    meet(request);
}

static void meet_reduced(struct sar_request *request)
{
    struct state *state = request->state;
    state->alone = reads_alone(request);
    if (!state->alone)
        meet(request);
}

static void meet_placed(struct sar_request *request)
{
    if (maps_last(request))
        meet(request);
}

static const struct sar_stage stages[] = {
    { .compute = bring, .post = meet_brought },
    { .compute = reduce, .post = meet_reduced },
    { .compute = place, .post = meet_placed },
    { .compute = finish, .post = close_storage },
    { .compute = NULL },
};

const struct sar_scheme sar_scheme_shared = {
    .name = "shared",
    .summary = "ranks of one node reduce parts of each other's elements in shared memory",
    .obstacle = obstacle,
    .seconds = sar_shared_seconds,
    .compact = compact,
    .state_size = sizeof(struct state),
    .stages = stages,
};
