/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared: ranks of one node read each other's memory. Each rank puts its elements in its input buffer;
 * dense buffers are compacted into it. Each rank finds its slice of all inputs, so that all slices together
 * have about equally many elements, and reduces it, in rank order.
 *
 * A result of coordinates is in memory that all ranks share, one copy a node. The position of a part is
 * known once all parts are counted, which is the first half of a reduction (vector/reduce.h): ranks count,
 * pass a barrier, and write each sum once, to its final place. For dense buffers ranks write parts to
 * output buffers.
 *
 * There are no messages, but three barriers, or two for dense buffers. If reducing all elements costs less
 * than a barrier, each rank does so, and there is one barrier; also if few ranks with dense buffers each
 * accumulate all elements into their own buffer (prefers_replicated decides). A single rank copies.
 *
 *     time = 3 t + z gamma + (s+i) (2 z + z f/p) mu        coordinates
 *     time = 2 t + z gamma + (s+i) (z + z f/p + z f) mu    dense buffers, once these are read and written
 *     time = t + p z gamma                                 each rank reduces all elements
 *     time = t + 0.55 p z gamma                            accumulated into dense buffers
 *
 * t a barrier, p ranks, z elements of a rank and z f of the union, s and i bytes of an element and an
 * index, mu seconds for a byte in memory. The slices are those of parallel merge sorts. */

#include "scheme/shared.h"

#include <math.h>

#include "scheme/scheme.h"
#include "vector/spvec.h"
#include "vector/dense.h"
#include "vector/reduce.h"

enum {
    BUFFER_OUTPUT = 2,           /* the first two buffers are for inputs */
    MAX_STAGED_BYTES = 1 << 20,  /* of a part that is written to private memory first */
    REPLICATED_MAX_VALUES = 150, /* values of a rank up to which to replicate */
    REPLICATED_MAX_OTHERS = 1024 /* values of all other ranks up to which to replicate */
};

/* Measured on four ranks, 6.4e7 floats, 1 %, in units of the time of plain sums. */
static const double BARRIER_SECONDS = 0.5, /* of alpha */
    ACCUMULATE_WORK = 0.55,                /* of gamma: to accumulate an element into a dense buffer */
    OUTPUT_WORK = 0.7; /* of gamma: to write an element of the result there, as other schemes do */

struct state {
    struct sar_shm_coll_msg msg;
    struct sar_shm_buffer *input_buffer;
    struct sar_spvec *inputs;          /* of all ranks, in their buffers */
    struct sar_vec_desc desc;          /* of the reduction */
    const struct sar_columns *columns; /* inputs are shares of the same rows, to be joined; or NULL */
    const struct sar_spvec *slices;    /* this rank's part of them */
    bool prefer_replicated;            /* by agreed numbers, before the first barrier */
    bool replicated;                   /* each rank reduces all elements; decided after the first barrier */
    bool skips_barrier;                /* value of skips_barrier_now at the second barrier */
    bool maps_output;                  /* value of maps_output at the third barrier */
    bool shares_result;                /* the result goes to shared memory */
    struct sar_shm_result *result;     /* that memory */
    struct sar_reduction part;         /* this rank's part of a shared result, counted but not written */
    struct sar_spvec output_part;      /* this rank's part in its output buffer, if not shares_result */
};

_Static_assert(sizeof(struct state) <= SAR_SHARED_STATE_BYTES, "two_level reserves this size");

static const char *unsupported_reason(const struct sar_agreed *agreed)
{
    const char *reason = sar_agreed_sparse_unsupported(agreed);
    bool one_node = agreed->topo.nodes == 1 && agreed->topo.shared_memory;
    return reason == NULL && !one_node ? "ranks do not share memory" : reason;
}

static bool is_small(const struct sar_agreed *a, double nnz)
{
    double values = nnz * (double)a->desc.row_len, others = a->machine.ranks - 1;
    return others < 1 || (values <= REPLICATED_MAX_VALUES && values * others <= REPLICATED_MAX_OTHERS);
}

static double seconds_of_parts(const struct sar_agreed *a)
{
    double barrier = BARRIER_SECONDS * a->machine.alpha, ranks = a->machine.ranks;
    double element = (double)(a->desc.element_size + a->desc.index_size);
    double result = sar_agreed_union_nnz(a, ranks);
    double moved = result / ranks + a->data.nnz_mean + (a->call.dense_face ? result : a->data.nnz_mean);
    return (a->call.dense_face ? 2 : 3) * barrier + a->data.nnz_mean * a->machine.gamma +
           element * moved * a->machine.memory;
}

/* Seconds beyond those of writing a result to a dense buffer; INFINITY if ranks cannot accumulate. */
static double seconds_of_accumulation(const struct sar_agreed *a, const struct sar_vec_desc *desc)
{
    double ranks = a->machine.ranks, result = sar_agreed_union_nnz(a, ranks);
    double extra = ACCUMULATE_WORK * ranks * a->data.nnz_mean - OUTPUT_WORK * result;
    if (!a->call.dense_face || a->data.disjoint ||
        !sar_dense_can_accumulate(desc, NULL, (size_t)a->machine.ranks))
        return INFINITY;
    return BARRIER_SECONDS * a->machine.alpha + fmax(extra, 0) * a->machine.gamma;
}

/* Returns true if each rank should reduce all elements instead of its part. This pays if it costs less than a
 * barrier, or if ranks accumulate directly into their dense buffers, since then no rank writes a result that
 * all have to read. Equal on all ranks. desc: agreed->desc, or sar_task_desc, which knows of a -0.0; nnz:
 * elements of a rank, on average. */
static bool prefers_replicated(const struct sar_agreed *agreed, const struct sar_vec_desc *desc, double nnz)
{
    bool small = is_small(agreed, nnz);
    if (small || !agreed->call.dense_face)
        return small;
    struct sar_agreed actual = *agreed;
    actual.data.nnz_mean = nnz;
    return seconds_of_accumulation(&actual, desc) < seconds_of_parts(&actual);
}

static double seconds(const struct sar_agreed *a)
{
    double element = (double)(a->desc.element_size + a->desc.index_size), ranks = a->machine.ranks;
    if (a->machine.ranks == 1)
        return element * a->data.nnz_mean * a->machine.memory;
    double other = is_small(a, a->data.nnz_mean)
                       ? BARRIER_SECONDS * a->machine.alpha + ranks * a->data.nnz_mean * a->machine.gamma
                       : seconds_of_parts(a);
    return fmin(seconds_of_accumulation(a, &a->desc), other);
}

static struct sar_shm_buffer *output_buffer(const struct sar_task *task)
{
    return &task->comm->shm_group->buffers[BUFFER_OUTPUT];
}

static void post_msg(struct sar_task *task)
{
    struct state *state = task->state;
    bool whole_call = task->scheme == &sar_scheme_shared;
    sar_shm_coll_post(task, whole_call ? "scheme shared" : "last steps of scheme two_level", &state->msg);
}

void sar_shared_set_input(struct sar_task *task, const struct sar_shared_output *from,
                          const struct sar_columns *columns)
{
    struct state *state = task->state;
    state->msg = from->msg;
    state->columns = sar_columns_sliced(columns) ? columns : NULL;
}

static enum sar_status defer_error(struct sar_task *task, enum sar_status status)
{
    struct state *state = task->state;
    return sar_shm_coll_defer_error(task, &state->msg, status);
}

/* Compacts into the input buffer, so that a buffer compacted early, for a profile, need not be copied
 * later. If there is no memory to share, the elements go to private memory, for the scheme that replaces
 * this one. */
static enum sar_status load_dense(struct sar_task *task)
{
    struct state *state = task->state;
    const struct sar_agreed *agreed = task->agreed;
    const void *buf = agreed->call.in_place ? task->args.buffers.recvbuf : task->args.buffers.sendbuf;
    SAR_TRY(defer_error(task, sar_shared_load_dense(task, &state->msg)));
    if (state->msg.status == SAR_OK)
        return SAR_OK;
    return sar_dense_compact(&agreed->desc, buf, (size_t)agreed->data.nnz_max, task->memory.call_arena,
                             &task->input.vec);
}

static enum sar_status copy_in(struct sar_task *task)
{
    struct state *state = task->state;
    state->input_buffer = sar_shm_group_input_buffer(task->comm->shm_group);
    enum sar_status status = sar_shared_copy_in(task, &state->msg);
    if (status != SAR_OK)
        return defer_error(task, status);
    task->result.covers_input = true;
    state->msg.nnz = task->input.vec.nnz;
    state->msg.minus_zero = task->minus_zero;
    state->msg.index_size = task->output->use_shared != NULL ? task->output->index_size : 0;
    if (task->output->returned != NULL)
        state->msg.result = sar_shm_result_handle(task->output->returned);
    return SAR_OK;
}

/* Decides by the actual elements: agreed numbers may be estimates, or those of earlier calls. */
static bool can_replicate(const struct sar_task *task)
{
    const struct state *state = task->state;
    double nnz = 0, shares = state->columns != NULL ? task->comm->ranks : 1;
    struct sar_vec_desc desc = sar_task_desc(task);
    for (int r = 0; r < task->comm->ranks; r++)
        nnz += (double)sar_shm_coll_msg_of(task, r)->nnz;
    return prefers_replicated(task->agreed, &desc, nnz / shares / task->comm->ranks);
}

/* Runs before anything that can fail on one rank, so that all ranks agree on the barriers to come. */
static enum sar_status check_all(struct sar_task *task)
{
    struct state *state = task->state;
    int ranks = task->comm->ranks;
    if (ranks == 1) {
        state->replicated = true;
        return state->msg.status == SAR_OK ? SAR_OK : SAR_SHM_RETRY;
    }
    SAR_TRY(sar_shm_coll_check_peers(task));
    for (int r = 0; r < ranks; r++)
        task->minus_zero |= sar_shm_coll_msg_of(task, r)->minus_zero != 0;
    for (int r = 1; r < ranks && state->columns != NULL; r++)
        if (sar_shm_coll_msg_of(task, r)->nnz != sar_shm_coll_msg_of(task, 0)->nnz)
            return SAR_CORRUPT;
    state->replicated = state->prefer_replicated && can_replicate(task);
    return SAR_OK;
}

static enum sar_status map_inputs(struct sar_task *task)
{
    struct state *state = task->state;
    int ranks = task->comm->ranks;
    SAR_TRY(check_all(task));
    SAR_TRY(sar_task_alloc(task, (size_t)ranks, sizeof *state->inputs, &state->inputs));
    for (int r = 0; r < ranks && ranks > 1; r++)
        SAR_TRY(sar_shm_coll_peer_vec(task, state->input_buffer, r, &state->inputs[r]));
    return SAR_OK;
}

/* Ends a span over this rank's slices, with its share of the slots. */
static void end_part(const struct sar_task *task, struct sar_span *span, const char *kind,
                     const struct sar_spvec *slices)
{
    const struct state *state = task->state;
    size_t n = (size_t)task->comm->ranks;
    if (span->start_ns != 0 && state->columns == NULL)
        span->work = sar_task_work(kind, &task->agreed->desc, slices, n);
    span->work.slots /= n;
    sar_task_span_end(task, span);
}

/* Returns the most elements that these vectors of all ranks can have together. */
static size_t max_nnz(const struct sar_task *task, const struct sar_spvec *vecs)
{
    const struct state *state = task->state;
    return state->columns != NULL ? vecs[0].nnz
                                  : sar_reduce_max_nnz(&state->desc, vecs, (size_t)task->comm->ranks);
}

static enum sar_status count_part(struct sar_task *task, const struct sar_spvec *slices)
{
    struct state *state = task->state;
    size_t n = (size_t)task->comm->ranks, bound = max_nnz(task, state->inputs);
    if (task->comm->rank == 0)
        SAR_TRY(sar_shm_coll_choose_result(task, &state->msg, bound, &state->result));
    struct sar_span span = sar_task_span(task, "reduce");
    if (state->columns != NULL)
        state->part.nnz = slices[0].nnz;
    else
        SAR_TRY(sar_reduce_count(&state->desc, slices, n, task->output->index_size, task->memory.call_arena,
                                 &state->part));
    end_part(task, &span, "count", slices);
    state->msg.nnz = state->part.nnz;
    return SAR_OK;
}

static enum sar_status reduce_to_buffer(struct sar_task *task, const struct sar_spvec *slices)
{
    struct state *state = task->state;
    size_t n = (size_t)task->comm->ranks, bound = max_nnz(task, slices);
    SAR_TRY(
        sar_shm_coll_grow(task, &state->desc, &state->msg, output_buffer(task), bound, &state->output_part));
    struct sar_span span = sar_task_span(task, "reduce");
    if (state->columns != NULL)
        span.work =
            sar_shared_join(task, state->columns, slices, state->desc.index_size, &state->output_part);
    else
        SAR_TRY(sar_reduce(&state->desc, slices, n, task->memory.call_arena, &state->output_part));
    end_part(task, &span, "reduce", slices);
    state->msg.nnz = state->output_part.nnz;
    return SAR_OK;
}

static enum sar_status reduce_part(struct sar_task *task)
{
    struct state *state = task->state;
    struct sar_spvec *slices;
    SAR_TRY(sar_task_alloc(task, (size_t)task->comm->ranks, sizeof *slices, &slices));
    if (state->columns != NULL)
        sar_shared_slice_shares(task, state->columns, state->inputs, slices);
    else
        SAR_TRY(sar_shared_slice_inputs(task, state->inputs, slices));
    state->slices = slices;
    state->desc = sar_task_desc(task);
    state->shares_result = sar_shm_coll_can_share_output(task);
    state->msg.needs_mapping = 0;
    return state->shares_result ? count_part(task, slices) : reduce_to_buffer(task, slices);
}

/* The caller's buffer may be misaligned, or in device memory, on this rank alone. */
static bool can_accumulate(const struct sar_task *task, const struct sar_vec_desc *desc)
{
    return task->args.may_accumulate && !task->agreed->data.disjoint &&
           sar_dense_can_accumulate(desc, task->args.buffers.recvbuf, (size_t)task->comm->ranks);
}

static enum sar_status copy_input(struct sar_task *task, const struct sar_vec_desc *desc)
{
    struct sar_spvec out = { NULL, NULL, 0 };
    task->result.vec = task->input.vec;
    if (task->agreed->call.dense_face)
        return SAR_OK;
    SAR_TRY(sar_task_reserve(task, task->input.vec.nnz, &out));
    sar_task_copy(task, desc, &task->input.vec, &out, false);
    task->result.vec.index = out.index;
    task->result.vec.value = out.value;
    return SAR_OK;
}

static enum sar_status reduce_replicated(struct sar_task *task, const struct sar_spvec inputs[])
{
    struct sar_vec_desc desc = sar_task_desc(task);
    size_t ranks = (size_t)task->comm->ranks;
    if (ranks == 1)
        return copy_input(task, &desc);
    if (!can_accumulate(task, &desc))
        return sar_task_reduce_to_output(task, &desc, inputs, ranks);
    task->result.parts = inputs;
    task->result.n_parts = ranks;
    task->result.parts_overlap = true;
    for (size_t r = 0; r < ranks; r++)
        task->result.vec.nnz += inputs[r].nnz;
    return SAR_OK;
}

/* If each rank has reduced all elements, the second barrier only serves ranks that still map inputs. */
static bool skips_barrier_now(const struct sar_task *task)
{
    const struct state *state = task->state;
    return task->comm->ranks == 1 ||
           (state->replicated ? !sar_shm_coll_needs_mapping(task) : sar_shm_coll_calls_differ(task));
}

/* A rank that skips the barrier has mapped nothing, and cannot defer an error to it. */
static enum sar_status reduce(struct sar_task *task)
{
    const struct state *state = task->state;
    enum sar_status status = map_inputs(task);
    if (status == SAR_OK && state->replicated)
        status = state->columns != NULL ? sar_shared_join_to_output(task, state->columns, state->inputs)
                                        : reduce_replicated(task, state->inputs);
    else if (status == SAR_OK)
        status = reduce_part(task);
    return status == SAR_OK || skips_barrier_now(task) ? status : defer_error(task, status);
}

/* If some ranks are on another socket, writes the part to private memory first, unless it exceeds a cache. */
static enum sar_status write_part(struct sar_task *task, const struct sar_vec_desc *desc,
                                  struct sar_spvec *out)
{
    struct state *state = task->state;
    bool staged = task->comm->shm_group->numa_remote &&
                  sar_shm_coll_vec_bytes(desc, desc->index_size, out->nnz) <= MAX_STAGED_BYTES;
    struct sar_spvec sums = *out;
    if (staged)
        SAR_TRY(sar_spvec_alloc(desc, out->nnz, task->memory.call_arena, &sums));
    struct sar_span span = sar_task_span(task, "deliver");
    if (state->columns != NULL) {
        span.work = sar_shared_join(task, state->columns, state->slices, task->output->index_size, &sums);
    } else {
        sar_reduce_write(&state->part, &sums);
        span.work = sar_span_work_make(state->part.computed ? "copy" : "fill", out->nnz, desc->element_size,
                                       desc->count / (uint64_t)task->comm->ranks);
        if (!state->part.computed)
            span.work.format = sar_task_sum_format((size_t)task->comm->ranks);
    }
    sar_task_span_end(task, &span);
    if (staged)
        sar_task_copy(task, desc, &sums, out, true);
    return SAR_OK;
}

/* Writes this rank's part to its place in the shared result. */
static enum sar_status write_result(struct sar_task *task)
{
    struct state *state = task->state;
    struct sar_vec_desc desc = task->agreed->desc;
    size_t before = 0, total = 0;
    for (int r = 0; r < task->comm->ranks; r++) {
        before += r < task->comm->rank ? sar_shm_coll_msg_of(task, r)->nnz : 0;
        total += sar_shm_coll_msg_of(task, r)->nnz;
    }
    SAR_TRY(sar_shm_coll_attach_result(task, total, &state->result));
    desc.index_size = task->output->index_size;
    struct sar_spvec own = sar_spvec_slice(&desc, &task->result.vec, before, before + state->part.nnz);
    return write_part(task, &desc, &own);
}

/* Copies all parts to this rank's output: callers on different ranks use different index sizes. */
static enum sar_status copy_out(struct sar_task *task, const struct sar_spvec *parts, size_t total)
{
    const struct sar_vec_desc *desc = &task->agreed->desc;
    struct sar_spvec out = { NULL, NULL, 0 };
    SAR_TRY(sar_task_reserve(task, total, &out));
    for (int r = 0; r < task->comm->ranks; r++) {
        struct sar_spvec end = sar_spvec_slice(desc, &out, out.nnz, out.nnz);
        sar_task_copy(task, desc, &parts[r], &end, false);
        out.nnz += parts[r].nnz;
    }
    task->result.vec = out;
    return SAR_OK;
}

static enum sar_status gather_parts(struct sar_task *task)
{
    struct sar_spvec *parts;
    size_t total = 0, n = (size_t)task->comm->ranks;
    SAR_TRY(sar_task_alloc(task, n, sizeof *parts, &parts));
    for (int r = 0; r < task->comm->ranks; r++) {
        SAR_TRY(sar_shm_coll_peer_vec(task, output_buffer(task), r, &parts[r]));
        total += parts[r].nnz;
    }
    if (!task->agreed->call.dense_face)
        return copy_out(task, parts, total);
    task->result.parts = parts;
    task->result.n_parts = n;
    task->result.vec.nnz = total;
    return SAR_OK;
}

/* Returns true if ranks map memory to place their parts, and pass a third barrier. */
static bool maps_output(const struct sar_task *task)
{
    const struct state *state = task->state;
    return task->comm->ranks > 1 && !state->replicated && !sar_shm_coll_calls_differ(task) &&
           (!task->agreed->call.dense_face || sar_shm_coll_needs_mapping(task));
}

static enum sar_status place_parts(struct sar_task *task)
{
    const struct state *state = task->state;
    if (state->replicated)
        return state->skips_barrier ? SAR_OK : sar_shm_coll_check_peers(task);
    SAR_TRY(sar_shm_coll_check_peers(task));
    enum sar_status status = state->shares_result ? write_result(task) : gather_parts(task);
    return status == SAR_OK || !maps_output(task) ? status : defer_error(task, status);
}

static enum sar_status finish(struct sar_task *task)
{
    const struct state *state = task->state;
    return state->maps_output ? sar_shm_coll_check_peers(task) : SAR_OK;
}

/* Runs after a failure, too: no rank will map the result any more. */
static void close_call(struct sar_task *task)
{
    const struct state *state = task->state;
    if (state->result != NULL)
        sar_shm_result_close_fd(state->result);
    if (task->exchange.status != SAR_OK && task->comm->ranks > 1 && sar_shm_coll_calls_differ(task))
        sar_shm_group_reset_buffer(task->comm->shm_group);
}

/* After a call with one barrier ranks may still read this input, so the next call uses the other buffer. */
static void barrier_input(struct sar_task *task)
{
    struct state *state = task->state;
    const struct sar_agreed *agreed = task->agreed;
    if (task->comm->ranks == 1)
        return;
    state->prefer_replicated = prefers_replicated(agreed, &agreed->desc, agreed->data.nnz_mean);
    if (state->prefer_replicated)
        sar_shm_group_flip_buffer(task->comm->shm_group);
    post_msg(task);
}

static void barrier_reduced(struct sar_task *task)
{
    struct state *state = task->state;
    state->skips_barrier = skips_barrier_now(task);
    if (!state->skips_barrier)
        post_msg(task);
}

static void barrier_placed(struct sar_task *task)
{
    struct state *state = task->state;
    state->maps_output = maps_output(task);
    if (state->maps_output)
        post_msg(task);
}

static const struct sar_stage stages[] = {
    { .compute = copy_in, .post = barrier_input },
    { .compute = reduce, .post = barrier_reduced },
    { .compute = place_parts, .post = barrier_placed },
    { .compute = finish, .post = close_call },
    { .compute = NULL },
};

const struct sar_scheme sar_scheme_shared = {
    .name = "shared",
    .summary = "ranks of one node reduce parts of each other's elements in shared memory",
    .unsupported_reason = unsupported_reason,
    .seconds = seconds,
    .load_dense = load_dense,
    .state_size = sizeof(struct state),
    .stages = stages,
};
