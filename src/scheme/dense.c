/* SPDX-License-Identifier: BSD-3-Clause */
/* Dense: MPI_Allreduce. On dense buffers it is the call itself. Coordinates are first written into a
 * vector of the op's identity, and a bitmap of the elements present, reduced by OR, tells afterwards
 * which there are.
 *
 *     time = dense_alpha + n s dense_beta    (measured constants of this MPI)
 *
 * and for coordinates the vote before, and the elements that are present after it. */

#include <string.h>

#include "scheme/scheme.h"

struct state {
    unsigned char *vector, *bitmap;
    int failures;   /* ranks that cannot go on */
    bool piecewise; /* no rank failed before the first piece */
    size_t pieces;  /* that were posted */
};

static double seconds(const struct sar_agreed *a)
{
    double bytes = (double)a->shape.count * (double)a->shape.element_size;
    double time = a->machine.dense_alpha + bytes * a->machine.dense_beta;
    if (a->dense_face)
        return time;
    double bitmap = (double)sar_bitmap_bytes(a->shape.count), work = 0.3 * (double)a->shape.count;
    return time + 2 * a->machine.dense_alpha + bitmap * a->machine.dense_beta + work * a->machine.gamma;
}

static bool is_short(enum sar_base base)
{
    return base == SAR_INT8 || base == SAR_INT16 || base == SAR_UINT8 || base == SAR_UINT16;
}

/* Absent elements stand at the op's identity, the largest or smallest number for MIN and MAX, which a NaN may
 * lose to where it comes second. MPICH up to 4.0.2 compares unsigned numbers as signed ones, to which those
 * look negative. Sums of short integers do not wrap around in Open MPI 4.1. */
static const char *obstacle(const struct sar_agreed *agreed)
{
    const struct sar_shape *shape = &agreed->shape;
    bool is_signed = shape->base >= SAR_INT8 && shape->base <= SAR_INT64;
    if (!agreed->dense_face && !is_signed && (shape->op == SAR_MAX || shape->op == SAR_MIN))
        return "MAX and MIN of unsigned coordinates and of those in floats";
    if (!agreed->dense_face && is_short(shape->base) && shape->op == SAR_SUM)
        return "sums of coordinates of 8 and 16 bits";
    bool fits = sar_times(agreed->shape.count, agreed->shape.element_size) <= (uint64_t)PTRDIFF_MAX;
    return agreed->dense_face || fits ? NULL : "a vector larger than memory";
}

static enum sar_status densify(struct sar_request *request)
{
    struct state *state = request->state;
    const struct sar_shape *shape = &request->agreed->shape;
    if (request->agreed->dense_face)
        return SAR_OK;
    struct sar_layout layout = sar_agreed_layout(request->agreed, shape->count, shape->index_size);
    struct sar_span span = sar_request_span(request, "densify");
    SAR_TRY(sar_request_take(request, (size_t)shape->count, shape->element_size, &state->vector));
    SAR_TRY(sar_request_take(request, (size_t)sar_bitmap_bytes(shape->count), 1, &state->bitmap));
    shape->kernels->fill_identity(state->vector, (size_t)shape->count * shape->row);
    request->device->scatter(shape, &request->input, state->vector);
    sar_bitmap_encode(&layout, &request->input, state->bitmap);
    span.work = sar_work_on("densify", request->input.nnz, shape->element_size, shape->count * shape->row);
    sar_request_span_end(request, &span);
    return SAR_OK;
}

static void start(struct sar_request *request, const struct sar_dense_call *call)
{
    enum sar_status status = sar_dense_start(request->net, call, request->blocking, &request->dense);
    sar_exchange_fail(&request->exchange, status);
}

/* A rank without memory or its vector cannot take part in the allreduce: all must know before it begins. */
static void vote(struct sar_request *request)
{
    struct state *state = request->state;
    if (request->agreed->dense_face && !request->votes)
        return;
    state->failures = request->exchange.status != SAR_OK;
    start(request, &(struct sar_dense_call){ MPI_IN_PLACE, &state->failures, 1, MPI_INT, MPI_SUM });
}

static enum sar_status count_votes(struct sar_request *request)
{
    struct state *state = request->state;
    state->piecewise = request->piece != 0 && state->failures == 0;
    return state->failures == 0 ? SAR_OK : SAR_PEER_FAILED;
}

static void reduce_values(struct sar_request *request)
{
    struct state *state = request->state;
    struct sar_dense_call call = request->buffers;
    double bytes = (double)request->agreed->shape.count * (double)request->agreed->shape.element_size;
    double ring = 2 * bytes * (request->net->ranks - 1) / request->net->ranks;
    if (request->exchange.status != SAR_OK)
        return;
    if (!request->agreed->dense_face) {
        call.sendbuf = MPI_IN_PLACE;
        call.recvbuf = state->vector;
    }
    request->exchange.traffic.bytes_sent = request->exchange.traffic.bytes_received = (uint64_t)ring;
    request->output_in_place = request->agreed->dense_face;
    if (!state->piecewise)
        start(request, &call);
}

/* What has been reduced goes, what is reduced next comes. */
static enum sar_status turn_pieces(struct sar_request *request)
{
    const struct state *state = request->state;
    if (request->pipe == NULL || !state->piecewise)
        return SAR_OK;
    if (state->pieces > 0)
        SAR_TRY(sar_pipe_send(request->pipe, state->pieces - 1));
    return sar_pipe_bring(request->pipe, state->pieces);
}

/* Basic elements, of which a row is several. */
static uint64_t elements_of_piece(const struct sar_request *request)
{
    const struct sar_shape *shape = &request->agreed->shape;
    return request->piece / (shape->element_size / shape->row);
}

/* The next one of the caller's buffers. */
static struct sar_dense_call piece_of(const struct sar_request *request)
{
    const struct state *state = request->state;
    struct sar_dense_call call = request->buffers;
    uint64_t each = elements_of_piece(request), done = state->pieces * each;
    size_t offset = state->pieces * request->piece;
    call.count = call.count - done < each ? call.count - done : each;
    if (request->pipe != NULL) {
        call.sendbuf = MPI_IN_PLACE;
        call.recvbuf = sar_pipe_piece(request->pipe, state->pieces);
        return call;
    }
    if (call.sendbuf != MPI_IN_PLACE)
        call.sendbuf = (const char *)call.sendbuf + offset;
    call.recvbuf = (char *)call.recvbuf + offset;
    return call;
}

static void reduce_piece(struct sar_request *request)
{
    struct state *state = request->state;
    if (!state->piecewise)
        return;
    struct sar_dense_call call = piece_of(request);
    start(request, &call);
    state->pieces++;
    request->again = state->pieces * elements_of_piece(request) < request->buffers.count;
}

/* The last one goes; what is on its way must have come before this rank can say that all is well. */
static enum sar_status end_pieces(struct sar_request *request)
{
    const struct state *state = request->state;
    if (request->pipe == NULL)
        return SAR_OK;
    SAR_TRY(sar_pipe_send(request->pipe, state->pieces - 1));
    return sar_pipe_close(request->pipe);
}

static void vote_again(struct sar_request *request)
{
    const struct state *state = request->state;
    if (state->piecewise)
        vote(request);
}

static void reduce_presence(struct sar_request *request)
{
    struct state *state = request->state;
    uint64_t bytes = sar_bitmap_bytes(request->agreed->shape.count);
    if (request->agreed->dense_face || request->exchange.status != SAR_OK)
        return;
    start(request, &(struct sar_dense_call){ MPI_IN_PLACE, state->bitmap, bytes, MPI_UINT8_T, MPI_BOR });
}

static size_t count_bits(const unsigned char *bitmap, uint64_t bytes)
{
    size_t bits = 0;
    for (uint64_t i = 0; i < bytes; i++)
        bits += (size_t)__builtin_popcount(bitmap[i]);
    return bits;
}

static enum sar_status sparsify(struct sar_request *request)
{
    struct state *state = request->state;
    const struct sar_shape *shape = &request->agreed->shape;
    struct sar_run out = { NULL, NULL, 0 };
    if (request->agreed->dense_face)
        return SAR_OK;
    struct sar_layout layout = sar_agreed_layout(request->agreed, shape->count, shape->index_size);
    struct sar_span span = sar_request_span(request, "sparsify");
    size_t nnz = count_bits(state->bitmap, sar_bitmap_bytes(shape->count)), size = shape->element_size;
    SAR_TRY(request->sink->room(request->sink, request, nnz, &out));
    SAR_TRY(sar_bitmap_decode(&layout, state->bitmap, nnz, out.index));
    for (size_t i = 0; i < nnz; i++)
        memcpy((unsigned char *)out.value + i * size,
               state->vector + sar_index_get(out.index, shape->index_size, i) * size, size);
    out.nnz = nnz;
    request->output = out;
    span.work = sar_work_on("sparsify", nnz, size, shape->count * shape->row);
    sar_request_span_end(request, &span);
    return SAR_OK;
}

static const struct sar_stage stages[] = {
    { .compute = densify, .post = vote },
    { .compute = count_votes, .post = reduce_values },
    { .compute = turn_pieces, .post = reduce_piece },
    { .compute = end_pieces, .post = vote_again },
    { .compute = count_votes, .post = reduce_presence },
    { .compute = sparsify },
    { .compute = NULL },
};

const struct sar_scheme sar_scheme_dense = {
    .name = "dense",
    .summary = "MPI_Allreduce of the dense vector",
    .obstacle = obstacle,
    .seconds = seconds,
    .on_dense_buffers = true,
    .state_size = sizeof(struct state),
    .stages = stages,
};
