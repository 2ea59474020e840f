/* SPDX-License-Identifier: BSD-3-Clause */
/* Balanced Parallelism (Zen): a hash assigns every element to a rank. Push: each rank sends each other rank
 * the elements that are its own. The owner reduces them, in rank order. Pull: it sends the sums to all.
 *
 * No rank receives an element twice in the push, nor more than its share; with p ranks
 *
 *     time = 2 (p-1) alpha + (p-1)/p (m(z) + m(z gamma^p)) beta + (z + z + z gamma^p) gamma
 *
 * z elements of the fullest rank, m bytes of message for so many elements, gamma^p densification over all
 * ranks. With m(z) = 2 z s and without alpha and gamma this is the paper's Equation 1. */

#include "scheme/scheme.h"

struct state {
    struct sar_map map;
    struct sar_run *parts;        /* of this rank's elements; then the sums of every part */
    struct sar_message *outgoing; /* of the push */
    struct sar_message sums;      /* of the pull */
    struct sar_run own;           /* this rank's part, reduced */
};

static struct sar_layout layout_of(const struct sar_agreed *agreed, const struct sar_map *map, int part)
{
    return sar_agreed_layout(agreed, sar_map_slots(map, (uint32_t)part), 4);
}

static const char *obstacle(const struct sar_agreed *agreed)
{
    const char *first = sar_sparse_obstacle(agreed);
    if (first != NULL)
        return first;
    return sar_agreed_map(agreed).span > UINT32_MAX ? "parts of more than 2^32 slots" : NULL;
}

static double seconds(const struct sar_agreed *a)
{
    double ranks = a->machine.ranks, sums = sar_agreed_union(a, ranks);
    struct sar_map map = sar_agreed_map(a);
    struct sar_layout layout = layout_of(a, &map, 0);
    struct sar_cost push = sar_agreed_cost(a, false, &layout, a->nnz_max / ranks);
    struct sar_cost pull = sar_agreed_cost(a, true, &layout, sums / ranks);
    double bytes = (ranks - 1) * (push.bytes + pull.bytes);
    double work = a->nnz_max + a->nnz_mean + sums + (ranks - 1) * (push.work + pull.work);
    return 2 * (ranks - 1) * a->machine.alpha + bytes * a->machine.beta + work * a->machine.gamma;
}

/* Equation 1: (n-1)/n (gamma^n + 1) 2 M d, where M d are the bytes of one rank's values. */
static double paper_bytes(const struct sar_agreed *a)
{
    double ranks = a->machine.ranks, values = a->nnz_mean * (double)a->shape.element_size;
    return (ranks - 1) / ranks * (sar_gamma_at(&a->gamma, ranks) + 1) * 2 * values;
}

static double push_imbalance(const struct sar_request *request)
{
    const struct state *state = request->state;
    size_t largest = 0;
    for (int r = 0; r < request->net->ranks; r++)
        largest = state->parts[r].nnz > largest ? state->parts[r].nnz : largest;
    return request->input.nnz == 0 ? 1 : (double)largest * request->net->ranks / (double)request->input.nnz;
}

static void note_map(struct sar_request *request, const struct sar_map *map)
{
    bool range = map->kind == SAR_PARTITION_RANGE;
    request->notes.partition = sar_partition_names[map->kind];
    request->notes.grain = range ? 0 : 1 << map->grain_shift;
}

static enum sar_status partition(struct sar_request *request)
{
    struct state *state = request->state;
    size_t ranks = (size_t)request->net->ranks;
    state->map = sar_agreed_map(request->agreed);
    note_map(request, &state->map);
    SAR_TRY(sar_request_take(request, ranks, sizeof *state->parts, &state->parts));
    SAR_TRY(sar_request_take(request, ranks, sizeof *state->outgoing, &state->outgoing));
    SAR_TRY(request->device->partition(&state->map, &request->agreed->shape, &request->input, request->arena,
                                       state->parts));
    request->notes.push_imbalance = push_imbalance(request);
    for (int r = 0; r < request->net->ranks; r++)
        if (r != request->net->rank)
            SAR_TRY(sar_request_encode(request, false, layout_of(request->agreed, &state->map, r),
                                       &state->parts[r], &state->outgoing[r]));
    return SAR_OK;
}

static void expect_all(struct sar_request *request)
{
    int ranks = request->net->ranks;
    for (int i = 1; i < ranks; i++)
        sar_exchange_expect(&request->exchange, (request->net->rank + i) % ranks);
}

static void push(struct sar_request *request)
{
    struct state *state = request->state;
    int ranks = request->net->ranks;
    expect_all(request);
    for (int i = 1; i < ranks; i++) {
        int peer = (request->net->rank + i) % ranks;
        sar_exchange_send(&request->exchange, peer, state->outgoing == NULL ? NULL : &state->outgoing[peer]);
    }
}

/* The vector as the owner of a part sees it: slots in place of indices. */
static struct sar_shape part_shape(const struct sar_request *request)
{
    const struct state *state = request->state;
    struct sar_shape shape = sar_request_shape(request);
    shape.count = sar_map_slots(&state->map, (uint32_t)request->net->rank);
    shape.index_size = 4;
    return shape;
}

static enum sar_status reduce(struct sar_request *request)
{
    struct state *state = request->state;
    int rank = request->net->rank, ranks = request->net->ranks;
    struct sar_layout layout = layout_of(request->agreed, &state->map, rank);
    for (int r = 0; r < ranks; r++)
        if (r != rank)
            SAR_TRY(sar_request_decode(request, layout, r, &state->parts[r]));
    struct sar_shape shape = part_shape(request);
    SAR_TRY(sar_run_take(&shape, sar_reduce_bound(&shape, state->parts, (size_t)ranks), request->arena,
                         &state->own));
    SAR_TRY(request->device->reduce(&shape, state->parts, (size_t)ranks, request->arena, &state->own));
    return sar_request_encode(request, true, layout, &state->own, &state->sums);
}

static void pull(struct sar_request *request)
{
    struct state *state = request->state;
    int ranks = request->net->ranks;
    expect_all(request);
    for (int i = 1; i < ranks; i++)
        sar_exchange_send(&request->exchange, (request->net->rank + i) % ranks, &state->sums);
}

static double pull_imbalance(const struct sar_request *request)
{
    const struct state *state = request->state;
    size_t largest = 0, sum = 0;
    for (int r = 0; r < request->net->ranks; r++) {
        largest = state->parts[r].nnz > largest ? state->parts[r].nnz : largest;
        sum += state->parts[r].nnz;
    }
    return sum == 0 ? 1 : (double)largest * request->net->ranks / (double)sum;
}

/* The parts have no index in common: putting them together is a reduction in which nothing meets. */
static enum sar_status collect(struct sar_request *request)
{
    struct state *state = request->state;
    struct sar_shape shape = request->agreed->shape;
    shape.absent_is_zero = false;
    for (int r = 0; r < request->net->ranks; r++) {
        if (r == request->net->rank)
            state->parts[r] = state->own;
        else
            SAR_TRY(
                sar_request_decode(request, layout_of(request->agreed, &state->map, r), r, &state->parts[r]));
        SAR_TRY(
            request->device->unpartition(&state->map, &shape, (uint32_t)r, request->arena, &state->parts[r]));
    }
    request->notes.pull_imbalance = pull_imbalance(request);
    return sar_request_deliver(request, &shape, state->parts, (size_t)request->net->ranks);
}

static const struct sar_stage stages[] = {
    { partition, push }, { reduce, pull }, { collect, NULL }, { NULL, NULL }
};

const struct sar_scheme sar_scheme_balanced = {
    .name = "balanced",
    .summary = "a hash gives each rank an equal share to reduce; push to the owner, pull from it",
    .obstacle = obstacle,
    .seconds = seconds,
    .paper_bytes = paper_bytes,
    .state_size = sizeof(struct state),
    .stages = stages,
};
