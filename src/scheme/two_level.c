/* SPDX-License-Identifier: BSD-3-Clause */
/* Two levels: what the ranks of a node have in common crosses the network once. A partition map gives each of
 * the p ranks a part of the vector, as in Balanced Parallelism (Zen).
 *
 *  1. Node. Each rank puts its elements, by part, on a shelf. Of every part that a rank of another node owns,
 *     one rank of this node reduces what the node has of it: each rank for as many parts as its neighbours.
 *  2. Push, between nodes. It sends that to the owner, who adds the nodes' sums.
 *  3. Pull, between nodes. The owner sends the outcome to the rank of each other node that it heard from.
 *  4. Node. Each rank has its share of the outcome now; `shared` makes one of them all, in memory that the
 *     ranks of a node have in common.
 *
 * Push and pull go in segments that follow each other (scheme/owner.h): while one is on its way, the node's
 * sums of the next are made, and earlier ones are put in their places.
 *
 * A rank that cannot share what it brings, or could not share something in the call before, says so when it
 * meets its neighbours, whose pushes tell the other nodes: then all give way. Later it fails the call.
 *
 * Where nodes have equally many ranks, each speaks only with those in its place on other nodes. An element is
 * added up in the order of ranks on each node, and the nodes' sums in the order of nodes, which is that of
 * their lowest ranks: the same on all ranks, and in every run.
 *
 *     time = t + (s+4) z mu + P(k-1 peers, m(U/p), m(Z/p), 2 z + U/q + Z/q) + shared's for q ranks with Z/q
 *            elements each
 *
 * k nodes of q ranks; z elements of a rank, U of a node and Z of the outcome; t a meeting, s bytes of an
 * element, mu seconds for a byte in memory, m bytes of message for so many elements, and P as for
 * sar_owner_seconds. So a rank sends a share of one in q of its node's elements, where `balanced` sends all
 * its own. */

#include <stddef.h>

#include "net/window.h"
#include "scheme/owner.h"
#include "scheme/shared.h"

enum { SHELF_PARTS = SAR_SHELVES - 1, SLOT_BYTES = 4 };

static const double MEETING = 0.5; /* of a message within the node */

/* What a rank tells its neighbours. */
struct card {
    int64_t status;
    struct sar_segment_name shelf;
    uint64_t minus_zero;
};

/* A rank's elements on its shelf, in cells: one for each part of each segment. */
struct pile {
    uint64_t *begin; /* of each cell, and the end */
    unsigned char *slots, *values;
};

struct state {
    struct sar_owner owner; /* first; between nodes */
    struct card card;
    struct pile *piles;           /* of the ranks of this node */
    struct sar_run *runs;         /* one for each of them */
    struct sar_shared_sink share; /* what this rank has of the outcome in the end */
    struct sar_sink *sink;        /* the caller's */
    struct sar_net node;          /* this rank among those of its node */
    struct sar_agreed agreed;     /* what they share of the outcome */
    struct sar_request inner;     /* `shared` at work on it */
    _Alignas(max_align_t) unsigned char inner_state[SAR_SHARED_STATE];
};

static const char *obstacle(const struct sar_agreed *a)
{
    const char *first = sar_sparse_obstacle(a);
    if (first != NULL)
        return first;
    if (!a->share_memory)
        return a->nodes == a->machine.ranks ? "every rank is a node" : "ranks do not share memory";
    return sar_agreed_map(a).span > UINT32_MAX ? "parts of more than 2^32 slots" : NULL;
}

static const char *redundant(const struct sar_agreed *a)
{
    return a->nodes == 1 ? "one node: shared does it in one step" : NULL;
}

/* A node's ranks, each with an equal share of the outcome: what `shared` is told. */
static struct sar_agreed inner_agreed(const struct sar_agreed *a, int ranks)
{
    struct sar_agreed inner = *a;
    double outcome = sar_agreed_union(a, a->machine.ranks);
    inner.machine.ranks = ranks;
    inner.machine.alpha = a->machine.near_alpha;
    inner.machine.overhead = a->machine.near_overhead;
    inner.machine.beta = a->machine.near_beta;
    inner.nodes = 1;
    inner.node_ranks = ranks;
    inner.shape.absent_is_zero = false;
    inner.disjoint = true;
    inner.nnz_mean = inner.nnz_max = outcome / ranks;
    inner.gamma = (struct sar_gamma){ ranks > 1 ? 2 : 1, { 1, ranks }, { 1, ranks } };
    return inner;
}

static struct sar_owner_terms terms_of(const struct sar_agreed *a, const struct sar_map *map)
{
    struct sar_owner_terms terms = sar_owner_terms(a, map);
    terms.together = a->node_ranks;
    return terms;
}

static double seconds(const struct sar_agreed *a)
{
    struct sar_map map = sar_agreed_map(a);
    struct sar_owner_terms terms = terms_of(a, &map);
    double shown = a->nnz_mean * (double)(a->shape.element_size + SLOT_BYTES);
    struct sar_agreed inner = inner_agreed(a, a->node_ranks);
    return MEETING * a->machine.near_alpha + shown * a->machine.memory + sar_owner_seconds(a, &terms) +
           sar_scheme_shared.seconds(&inner);
}

static const struct sar_nodes *nodes_of(const struct sar_request *request)
{
    return &request->net->nodes;
}

static int node_of(const struct sar_request *request)
{
    return nodes_of(request)->node[request->net->rank];
}

static int neighbours(const struct sar_request *request)
{
    return sar_nodes_size(nodes_of(request), node_of(request));
}

/* This rank speaks with itself, and with owners on other nodes. */
static bool reaches(const struct sar_request *request, int owner)
{
    const struct sar_nodes *nodes = nodes_of(request);
    int node = node_of(request);
    if (nodes->node[owner] == node)
        return owner == request->net->rank;
    return sar_nodes_partner(nodes, node, owner) == request->net->rank;
}

/* One of each node, in the order of nodes. */
static int contributor(const struct sar_request *request, int i)
{
    const struct sar_nodes *nodes = nodes_of(request);
    if (i >= nodes->n)
        return -1;
    return i == node_of(request) ? request->net->rank : sar_nodes_partner(nodes, i, request->net->rank);
}

static int cell_of(const struct sar_request *request, uint32_t segment, int part)
{
    return (int)segment * request->net->ranks + part;
}

static size_t cells_of(const struct sar_request *request)
{
    const struct state *state = request->state;
    return (size_t)state->owner.segments * (size_t)request->net->ranks;
}

/* The bounds of cells, slots, and values; the last bound says how many. */
static struct pile pile_in(void *memory, size_t cells, size_t nnz)
{
    unsigned char *slots = (unsigned char *)memory + sar_align((cells + 1) * sizeof(uint64_t));
    return (struct pile){ memory, slots, slots + sar_align(nnz * SLOT_BYTES) };
}

static struct sar_run cell_in(const struct pile *pile, const struct sar_shape *shape, int cell)
{
    uint64_t begin = pile->begin[cell];
    return (struct sar_run){ pile->slots + begin * SLOT_BYTES, pile->values + begin * shape->element_size,
                             (size_t)(pile->begin[cell + 1] - begin) };
}

static enum sar_status open_pile(struct sar_request *request, struct pile *pile)
{
    struct state *state = request->state;
    struct sar_shelf *shelf = &request->net->window->shelves[SHELF_PARTS];
    size_t cells = cells_of(request), nnz = request->input.nnz;
    uint64_t bytes = sar_plus(sar_times(nnz, request->agreed->shape.element_size + SLOT_BYTES),
                              sar_times(cells + 1, sizeof(uint64_t)) + 3 * SAR_ALIGNMENT);
    SAR_TRY(sar_shelf_room(shelf, bytes));
    sar_shelf_tell(request->net->window, shelf);
    state->card.shelf = shelf->name;
    *pile = pile_in(shelf->own.memory, cells, nnz);
    pile->begin[0] = 0;
    return SAR_OK;
}

/* What is left of the pile, for a segment's cells and those behind them. */
static struct sar_run rest_of(const struct pile *pile, const struct sar_shape *shape, int cell)
{
    uint64_t begin = pile->begin[cell];
    return (struct sar_run){ pile->slots + begin * SLOT_BYTES, pile->values + begin * shape->element_size,
                             0 };
}

static enum sar_status put_on_shelf(struct sar_request *request)
{
    const struct state *state = request->state;
    const struct sar_shape *shape = &request->agreed->shape;
    struct sar_run *parts;
    struct pile pile;
    int ranks = request->net->ranks;
    SAR_TRY(sar_request_take(request, (size_t)ranks, sizeof *parts, &parts));
    SAR_TRY(open_pile(request, &pile));
    for (uint32_t segment = 0; segment < state->owner.segments; segment++) {
        int cell = cell_of(request, segment, 0);
        struct sar_run rest = rest_of(&pile, shape, cell);
        sar_request_next_scratch(request);
        SAR_TRY(sar_owner_split(request, segment, &rest, parts));
        for (int p = 0; p < ranks; p++, cell++)
            pile.begin[cell + 1] = pile.begin[cell] + parts[p].nnz;
    }
    return SAR_OK;
}

static enum sar_status bring(struct sar_request *request)
{
    struct state *state = request->state;
    size_t n = (size_t)neighbours(request);
    state->card.minus_zero = request->minus_zero;
    if (request->net->window->lacking)
        return SAR_UNSHARED;
    SAR_TRY(sar_request_take(request, n, sizeof *state->piles, &state->piles));
    SAR_TRY(sar_request_take(request, n, sizeof *state->runs, &state->runs));
    enum sar_status status = n > 1 ? put_on_shelf(request) : SAR_OK;
    if (sar_segment_lacks(status))
        request->net->window->lack = status;
    return sar_segment_lacks(status) ? SAR_UNSHARED : status;
}

static void meet_brought(struct sar_request *request)
{
    struct state *state = request->state;
    state->card.status = (int64_t)request->exchange.status;
    if (neighbours(request) > 1)
        sar_window_arrive(request->net->window, "first step of scheme two_level", &state->card,
                          sizeof state->card);
}

/* What the others on this node have brought. */
static enum sar_status look_around(struct sar_request *request)
{
    struct state *state = request->state;
    struct sar_window *window = request->net->window;
    size_t cells = cells_of(request);
    void *memory;
    for (int i = 0; i < neighbours(request) && neighbours(request) > 1; i++) {
        const struct card *card = sar_window_card(window, i);
        if (card->status != SAR_OK)
            return SAR_PEER_FAILED;
        SAR_TRY(sar_shelf_view(&window->shelves[SHELF_PARTS], i, &card->shelf, &memory));
        state->piles[i] = pile_in(memory, cells, (size_t)((const uint64_t *)memory)[cells]);
        request->minus_zero |= card->minus_zero != 0;
    }
    return SAR_OK;
}

/* Neighbours have put on shelves what they have of all segments. */
static enum sar_status split(struct sar_request *request, uint32_t segment, struct sar_run *parts)
{
    return neighbours(request) > 1 ? SAR_OK : sar_owner_split(request, segment, NULL, parts);
}

/* What this node has of a part, added up. */
static enum sar_status gather(struct sar_request *request, uint32_t segment, int owner, struct sar_run *part)
{
    struct state *state = request->state;
    struct sar_shape shape = sar_owner_shape(request, owner, segment);
    int n = neighbours(request);
    if (n == 1)
        return SAR_OK;
    for (int i = 0; i < n; i++)
        state->runs[i] = cell_in(&state->piles[i], &shape, cell_of(request, segment, owner));
    return sar_request_reduce(request, &shape, state->runs, (size_t)n, part);
}

/* By the cards alone, which neighbours read alike. */
static void judge(struct sar_request *request)
{
    const struct state *state = request->state;
    int64_t worst = state->card.status;
    for (int i = 0; i < neighbours(request) && neighbours(request) > 1; i++) {
        const struct card *card = sar_window_card(request->net->window, i);
        worst = card->status > worst ? card->status : worst;
    }
    if (worst != SAR_OK)
        sar_owner_obey(request, worst == SAR_UNSHARED ? SAR_OWNER_UNSHARED : SAR_OWNER_FAILED);
}

static enum sar_status begin(struct sar_request *request)
{
    SAR_TRY(look_around(request));
    return sar_owner_begin(request);
}

/* What is delivered is this rank's share, which goes on to `shared`. */
static void open(struct sar_request *request)
{
    static const struct sar_owner_peers peers = { reaches, contributor, split, gather };
    struct state *state = request->state;
    struct sar_map map = sar_agreed_map(request->agreed);
    struct sar_owner_terms terms = terms_of(request->agreed, &map);
    sar_owner_open_among(request, &terms, &peers);
    state->share = sar_shared_sink();
    state->sink = request->sink;
    request->sink = &state->share.sink;
}

/* Takes no memory, so that all ranks of a node go to the meetings of `shared` whatever has happened. */
static void open_shared(struct sar_request *request)
{
    struct state *state = request->state;
    state->node = *request->net;
    state->node.rank = nodes_of(request)->place[request->net->rank];
    state->node.ranks = neighbours(request);
    state->agreed = inner_agreed(request->agreed, state->node.ranks);
    request->sink = state->sink;
    state->inner = *request;
    state->inner.stage = sar_scheme_shared.stages;
    state->inner.net = &state->node;
    state->inner.agreed = &state->agreed;
    state->inner.input = request->output;
    state->inner.before_input = (struct sar_arena_mark){ 0 };
    state->inner.output = (struct sar_run){ NULL, NULL, 0 };
    state->inner.minus_zero = false;
    state->inner.gives_way = false; /* other nodes do not hear of it */
    state->inner.state = state->inner_state;
    sar_shared_take(&state->inner, &state->share);
}

static enum sar_status compute_shared(struct sar_request *request)
{
    struct sar_request *inner = &((struct state *)request->state)->inner;
    return inner->stage->compute == NULL ? SAR_OK : inner->stage->compute(inner);
}

static void post_shared(struct sar_request *request)
{
    struct sar_request *inner = &((struct state *)request->state)->inner;
    inner->exchange.status = request->exchange.status;
    if (inner->stage->post != NULL)
        inner->stage->post(inner);
    inner->stage++;
    request->again = inner->stage->compute != NULL || inner->stage->post != NULL;
}

static enum sar_status take_over(struct sar_request *request)
{
    const struct sar_request *inner = &((struct state *)request->state)->inner;
    request->output = inner->output;
    request->pieces = inner->pieces;
    request->pieces_n = inner->pieces_n;
    return SAR_OK;
}

static const struct sar_stage stages[] = {
    { .post = open },
    { .compute = bring, .post = meet_brought },
    { .compute = begin, .post = judge },
    SAR_OWNER_STEPS,
    { .compute = sar_owner_finish, .post = open_shared },
    { .compute = compute_shared, .post = post_shared },
    { .compute = take_over },
    { .compute = NULL },
};

const struct sar_scheme sar_scheme_two_level = {
    .name = "two_level",
    .summary = "ranks of a node reduce in shared memory, each speaks for a share of it between nodes",
    .obstacle = obstacle,
    .redundant = redundant,
    .seconds = seconds,
    .partitions = (1u << SAR_PARTITIONS) - 1,
    .state_size = sizeof(struct state),
    .stages = stages,
};
