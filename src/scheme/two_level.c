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
 * Where nodes have equally many ranks, each speaks only with those in its place on other nodes. An element is
 * added up in the order of ranks on each node, and the nodes' sums in the order of nodes, which is that of
 * their lowest ranks: the same on all ranks, and in every run.
 *
 *     time = t + 2 (s+4) z mu + (2 z + U/q + Z/q) gamma + e(k-1, (k-1) m(U/p)) + e(k-1, (k-1) m(Z/p))
 *            + shared's for q ranks with Z/q elements each
 *
 * k nodes of q ranks; z elements of a rank, U of a node and Z of the outcome; t a meeting, s bytes of an
 * element, mu seconds for a byte in memory, m bytes of message for so many elements, and e as for
 * sar_agreed_exchange. So a rank sends a share of one in q of its node's elements, where `balanced` sends all
 * its own. */

#include <stddef.h>

#include "net/window.h"
#include "scheme/scheme.h"
#include "scheme/shared.h"

enum { LANE_PUSH, LANE_PULL };
enum { SHELF_PARTS = SAR_SHELVES - 1, SLOT_BYTES = 4 };

static const double MEETING = 0.5; /* of a message within the node */

/* What a rank tells its neighbours. */
struct card {
    int64_t status;
    struct sar_segment_name shelf;
    uint64_t minus_zero;
};

/* A rank's elements on its shelf. */
struct pile {
    uint64_t *begin; /* of each part, and the end */
    unsigned char *slots, *values;
};

struct state {
    struct sar_map map;
    struct card card;
    struct sar_run *parts;        /* this rank's elements of each part */
    struct pile *piles;           /* of the ranks of this node */
    struct sar_run *runs;         /* for the reduction at hand */
    struct sar_message *outgoing; /* to the owner of each part that this rank speaks for */
    struct sar_run sums;          /* of the part that this rank owns: its node's, then all nodes' */
    struct sar_message pulled;    /* the latter as a message */
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
    inner.machine.beta = a->machine.near_beta;
    inner.nodes = 1;
    inner.node_ranks = ranks;
    inner.shape.absent_is_zero = false; /* shares have no element in common */
    inner.nnz_mean = inner.nnz_max = outcome / ranks;
    inner.gamma = (struct sar_gamma){ ranks > 1 ? 2 : 1, { 1, ranks }, { 1, ranks } };
    return inner;
}

static double seconds(const struct sar_agreed *a)
{
    double ranks = a->machine.ranks, each = a->node_ranks, peers = (ranks - each) / each;
    double node = sar_agreed_union(a, each), outcome = sar_agreed_union(a, ranks);
    struct sar_map map = sar_agreed_map(a);
    double share = (map.kind == SAR_PARTITION_RANGE ? a->skewness : 1) / ranks;
    struct sar_layout layout = sar_agreed_layout(a, map.span, SLOT_BYTES);
    struct sar_cost push = sar_agreed_cost(a, false, &layout, node * share);
    struct sar_cost pull = sar_agreed_cost(a, true, &layout, outcome * share);
    double parts = peers + 1, coding = peers * push.work + parts / 2 * pull.work;
    double work = a->nnz_max + a->nnz_mean * ranks * share + parts * (node + outcome) * share + coding;
    double copied = 2 * a->nnz_mean * (double)(a->shape.element_size + SLOT_BYTES);
    struct sar_agreed inner = inner_agreed(a, a->node_ranks);
    return MEETING * a->machine.near_alpha + work * a->machine.gamma + copied * a->machine.memory +
           sar_agreed_far_exchange(a, peers, peers * push.bytes) +
           sar_agreed_far_exchange(a, peers, peers * pull.bytes) + sar_scheme_shared.seconds(&inner);
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

/* Whether this rank speaks with the owner of a part on another node. */
static bool speaks_with(const struct sar_request *request, int owner)
{
    const struct sar_nodes *nodes = nodes_of(request);
    int node = node_of(request);
    return nodes->node[owner] != node && sar_nodes_partner(nodes, node, owner) == request->net->rank;
}

static int port(const struct sar_request *request, int lane, int rank)
{
    return lane * request->net->ranks + rank;
}

/* The rank of a node that speaks with this one. */
static int speaker(const struct sar_request *request, int node)
{
    return sar_nodes_partner(nodes_of(request), node, request->net->rank);
}

static struct sar_layout layout_of(const struct sar_request *request, int part)
{
    const struct state *state = request->state;
    return sar_agreed_layout(request->agreed, sar_map_slots(&state->map, (uint32_t)part), SLOT_BYTES);
}

static struct sar_shape part_shape(const struct sar_request *request, int part)
{
    struct sar_shape shape = sar_request_shape(request);
    shape.count = layout_of(request, part).span;
    shape.index_size = SLOT_BYTES;
    return shape;
}

/* The bounds of parts, slots, and values; `begin` says how many. */
static struct pile pile_in(void *memory, size_t parts, size_t nnz)
{
    unsigned char *slots = (unsigned char *)memory + sar_align((parts + 1) * sizeof(uint64_t));
    return (struct pile){ memory, slots, slots + sar_align(nnz * SLOT_BYTES) };
}

static struct sar_run part_in(const struct pile *pile, const struct sar_shape *shape, int part)
{
    uint64_t begin = pile->begin[part];
    return (struct sar_run){ pile->slots + begin * SLOT_BYTES, pile->values + begin * shape->element_size,
                             (size_t)(pile->begin[part + 1] - begin) };
}

static enum sar_status put_on_shelf(struct sar_request *request)
{
    struct state *state = request->state;
    struct sar_shelf *shelf = &request->net->window->shelves[SHELF_PARTS];
    size_t parts = state->map.parts, nnz = request->input.nnz;
    struct sar_shape shape = request->agreed->shape;
    uint64_t bytes = sar_plus(sar_times(nnz, shape.element_size + SLOT_BYTES),
                              sar_times(parts + 1, sizeof(uint64_t)) + 3 * SAR_ALIGNMENT);
    SAR_TRY(sar_shelf_room(shelf, bytes));
    struct pile pile = pile_in(shelf->own.memory, parts, nnz);
    shape.index_size = SLOT_BYTES;
    pile.begin[0] = 0;
    for (size_t p = 0; p < parts; p++) {
        pile.begin[p + 1] = pile.begin[p] + state->parts[p].nnz;
        struct sar_run to = part_in(&pile, &shape, (int)p);
        sar_run_copy(&shape, &state->parts[p], &to);
    }
    state->card.shelf = shelf->name;
    return SAR_OK;
}

static enum sar_status bring(struct sar_request *request)
{
    struct state *state = request->state;
    const struct sar_shape *shape = &request->agreed->shape;
    size_t ranks = (size_t)request->net->ranks;
    state->map = sar_agreed_map(request->agreed);
    request->notes.partition = sar_partition_names[state->map.kind];
    request->notes.grain = state->map.kind == SAR_PARTITION_RANGE ? 0 : 1 << state->map.grain_shift;
    state->card.minus_zero = request->minus_zero;
    SAR_TRY(sar_request_take(request, ranks, sizeof *state->parts, &state->parts));
    SAR_TRY(sar_request_take(request, ranks, sizeof *state->piles, &state->piles));
    SAR_TRY(sar_request_take(request, ranks, sizeof *state->runs, &state->runs));
    SAR_TRY(sar_request_take(request, ranks, sizeof *state->outgoing, &state->outgoing));
    SAR_TRY(request->device->partition(&state->map, shape, &request->input, request->passing, state->parts));
    return neighbours(request) > 1 ? put_on_shelf(request) : SAR_OK;
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
    size_t parts = state->map.parts;
    void *memory;
    for (int i = 0; i < neighbours(request) && neighbours(request) > 1; i++) {
        const struct card *card = sar_window_card(window, i);
        if (card->status != SAR_OK)
            return SAR_PEER_FAILED;
        SAR_TRY(sar_shelf_view(&window->shelves[SHELF_PARTS], i, &card->shelf, &memory));
        state->piles[i] = pile_in(memory, parts, (size_t)((const uint64_t *)memory)[parts]);
        request->minus_zero |= card->minus_zero != 0;
    }
    return SAR_OK;
}

/* The sum of what this node has of a part. */
static enum sar_status reduce_part(struct sar_request *request, int part, struct sar_run *sums)
{
    struct state *state = request->state;
    struct sar_shape shape = part_shape(request, part);
    int n = neighbours(request);
    if (n == 1) {
        *sums = state->parts[part];
        return SAR_OK;
    }
    for (int i = 0; i < n; i++)
        state->runs[i] = part_in(&state->piles[i], &shape, part);
    return sar_request_reduce(request, &shape, state->runs, (size_t)n, sums);
}

static enum sar_status reduce_on_node(struct sar_request *request)
{
    struct state *state = request->state;
    struct sar_run sums;
    SAR_TRY(look_around(request));
    for (int p = 0; p < request->net->ranks; p++) {
        if (!speaks_with(request, p))
            continue;
        SAR_TRY(reduce_part(request, p, &sums));
        SAR_TRY(sar_request_encode(request, false, layout_of(request, p), &sums, &state->outgoing[p]));
    }
    return reduce_part(request, request->net->rank, &state->sums);
}

static void post_push(struct sar_request *request)
{
    struct state *state = request->state;
    for (int j = 0; j < nodes_of(request)->n; j++)
        if (j != node_of(request))
            sar_exchange_expect(&request->exchange, port(request, LANE_PUSH, speaker(request, j)));
    for (int p = 0; p < request->net->ranks; p++)
        if (speaks_with(request, p))
            sar_exchange_send(&request->exchange, port(request, LANE_PUSH, p),
                              state->outgoing == NULL ? NULL : &state->outgoing[p]);
}

/* The sums of all nodes, in their order. */
static enum sar_status reduce_nodes(struct sar_request *request)
{
    struct state *state = request->state;
    int rank = request->net->rank, nodes = nodes_of(request)->n;
    struct sar_layout layout = layout_of(request, rank);
    if (nodes == 1)
        return SAR_OK;
    for (int j = 0; j < nodes; j++) {
        state->runs[j] = state->sums;
        if (j != node_of(request))
            SAR_TRY(sar_request_decode(request, layout, port(request, LANE_PUSH, speaker(request, j)),
                                       &state->runs[j]));
    }
    struct sar_shape shape = part_shape(request, rank);
    SAR_TRY(sar_request_reduce(request, &shape, state->runs, (size_t)nodes, &state->sums));
    return sar_request_encode(request, true, layout, &state->sums, &state->pulled);
}

static void post_pull(struct sar_request *request)
{
    struct state *state = request->state;
    for (int p = 0; p < request->net->ranks; p++)
        if (speaks_with(request, p))
            sar_exchange_expect(&request->exchange, port(request, LANE_PULL, p));
    for (int j = 0; j < nodes_of(request)->n; j++)
        if (j != node_of(request))
            sar_exchange_send(&request->exchange, port(request, LANE_PULL, speaker(request, j)),
                              &state->pulled);
}

/* Put the parts of the outcome that have come to this rank in the order of the vector. */
static enum sar_status collect(struct sar_request *request)
{
    struct state *state = request->state;
    struct sar_shape shape = request->agreed->shape;
    size_t n = 0;
    shape.absent_is_zero = false;
    for (int p = 0; p < request->net->ranks; p++) {
        struct sar_run *run = &state->runs[n];
        if (p == request->net->rank)
            *run = state->sums;
        else if (speaks_with(request, p))
            SAR_TRY(sar_request_decode(request, layout_of(request, p), port(request, LANE_PULL, p), run));
        else
            continue;
        SAR_TRY(request->device->unpartition(&state->map, &shape, (uint32_t)p, request->passing, run));
        n++;
    }
    return sar_request_reduce(request, &shape, state->runs, n, &state->inner.input);
}

/* Takes no memory, so that all ranks of a node go to the meetings of `shared` whatever has happened. */
static void open_shared(struct sar_request *request)
{
    struct state *state = request->state;
    struct sar_run input = state->inner.input;
    state->node = *request->net;
    state->node.rank = nodes_of(request)->place[request->net->rank];
    state->node.ranks = neighbours(request);
    state->agreed = inner_agreed(request->agreed, state->node.ranks);
    state->inner = *request;
    state->inner.stage = sar_scheme_shared.stages;
    state->inner.net = &state->node;
    state->inner.agreed = &state->agreed;
    state->inner.input = input;
    state->inner.minus_zero = false;
    state->inner.state = state->inner_state;
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
    { .compute = bring, .post = meet_brought },
    { .compute = reduce_on_node, .post = post_push },
    { .compute = reduce_nodes, .post = post_pull },
    { .compute = collect, .post = open_shared },
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
