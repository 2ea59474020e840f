/* SPDX-License-Identifier: BSD-3-Clause */
/* Dense: MPI_Allreduce, or MPI_Reduce_scatter_block. Dense buffers go to it unchanged. Coordinates are first
 * written into a vector of the op's identity; a bitmap of the present elements, reduced by OR, tells which
 * elements the result has. In a reduce_scatter of coordinates, vector and bitmap have one part after the
 * other, each as long as the longest, and the elements of a part are at their slots.
 *
 *     time = dense_alpha + n s dense_beta    (measured constants of this MPI)
 *
 * in a reduce_scatter half of the bytes' time, and for coordinates also an agreement on failures before it,
 * and the bitmap after it. */

#include <string.h>

#include "base/word.h"
#include "scheme/engine/task.h"
#include "scheme/scheme.h"
#include "vector/dense.h"
#include "vector/partition.h"

struct state {
    unsigned char *vector, *bitmap; /* of coordinates */
    struct sar_partition_map map;   /* of a reduce_scatter of coordinates */
    int failures;                   /* ranks that have failed */
    bool chunked;                   /* reduce in chunks; no rank has failed before the first one */
    size_t chunks_posted;
};

enum { PADDING_MAX = 64 /* slots of each part, and as many as the vector has elements in all parts */ };

static bool scatters_coordinates(const struct sar_agreed *a)
{
    return !a->call.dense_face && a->call.collective == SAR_REDUCE_SCATTER;
}

/* Returns the elements of the dense vector. */
static uint64_t elements_of(const struct sar_agreed *a)
{
    return scatters_coordinates(a)
               ? sar_mul_saturate(sar_agreed_block_map(a).slots_max, (uint64_t)a->machine.ranks)
               : a->desc.count;
}

static double seconds(const struct sar_agreed *a)
{
    double elements = (double)elements_of(a), bytes = elements * (double)a->desc.element_size;
    double rings = a->call.collective == SAR_REDUCE_SCATTER ? 0.5 : 1;
    double time = a->machine.dense_alpha + rings * bytes * a->machine.dense_beta;
    if (a->call.dense_face)
        return time;
    double bitmap = (double)sar_bitmap_bytes(elements_of(a)), work = 0.3 * elements;
    return time + 2 * a->machine.dense_alpha + rings * bitmap * a->machine.dense_beta +
           work * a->machine.gamma;
}

static bool is_short(enum sar_dtype dtype)
{
    return dtype == SAR_INT8 || dtype == SAR_INT16 || dtype == SAR_UINT8 || dtype == SAR_UINT16;
}

/* Absent elements have the op's identity: for MIN and MAX the largest or smallest number, which may win
 * over a NaN that comes second. MPICH up to 4.0.2 compares unsigned numbers as signed ones, in which these
 * identities are negative. Sums of short integers do not wrap around in Open MPI 4.1. */
static const char *unsupported_reason(const struct sar_agreed *agreed)
{
    const struct sar_vec_desc *desc = &agreed->desc;
    uint64_t elements = elements_of(agreed);
    uint64_t most = sar_mul_saturate(desc->count, 2) + (uint64_t)agreed->machine.ranks * PADDING_MAX;
    if (elements > most)
        return "a reduce_scatter of coordinates whose parts differ in length";
    bool is_signed = desc->dtype >= SAR_INT8 && desc->dtype <= SAR_INT64;
    if (!agreed->call.dense_face && !is_signed && (desc->op == SAR_MAX || desc->op == SAR_MIN))
        return "MAX and MIN of unsigned coordinates and of those in floats";
    if (!agreed->call.dense_face && is_short(desc->dtype) && desc->op == SAR_SUM)
        return "sums of coordinates of 8 and 16 bits";
    bool fits = sar_mul_saturate(elements, agreed->desc.element_size) <= (uint64_t)PTRDIFF_MAX;
    return agreed->call.dense_face || fits ? NULL : "a vector larger than memory";
}

/* Other schemes halve the bytes between nodes. */
static const char *redundant_reason(const struct sar_agreed *agreed)
{
    bool rounds = agreed->wire.precision != SAR_PRECISION_FULL;
    return rounds && agreed->topo.nodes > 1 ? "values of 16 bits, which MPI would send as 32" : NULL;
}

/* Returns the slots of each part: of the whole vector in an allreduce. */
static uint64_t slots_of(const struct sar_task *task)
{
    const struct state *state = task->state;
    return scatters_coordinates(task->agreed) ? state->map.slots_max : task->agreed->desc.count;
}

static uint64_t parts_of(const struct sar_task *task)
{
    return scatters_coordinates(task->agreed) ? (uint64_t)task->comm->ranks : 1;
}

/* Writes the elements to the slots of their parts. */
static void scatter_to_parts(const struct sar_task *task)
{
    const struct state *state = task->state;
    const struct sar_vec_desc *desc = &task->agreed->desc;
    const struct sar_spvec *vec = &task->input.vec;
    size_t size = desc->element_size;
    for (size_t i = 0; i < vec->nnz; i++) {
        struct sar_slot at =
            sar_partition_map_locate(&state->map, sar_index_get(vec->index, desc->index_size, i));
        memcpy(state->vector + (at.part * state->map.slots_max + at.slot) * size,
               (const unsigned char *)vec->value + i * size, size);
        state->bitmap[at.part * sar_bitmap_bytes(state->map.slots_max) + at.slot / 8] |=
            (unsigned char)(1u << at.slot % 8);
    }
}

static enum sar_status densify(struct sar_task *task)
{
    struct state *state = task->state;
    const struct sar_vec_desc *desc = &task->agreed->desc;
    if (task->agreed->call.dense_face)
        return SAR_OK;
    if (scatters_coordinates(task->agreed))
        state->map = sar_agreed_block_map(task->agreed);
    struct sar_wire_layout layout = sar_agreed_layout(task->agreed, desc->count, desc->index_size);
    struct sar_span span = sar_task_span(task, "densify");
    size_t elements = (size_t)elements_of(task->agreed),
           bitmap_bytes = (size_t)(parts_of(task) * sar_bitmap_bytes(slots_of(task)));
    SAR_TRY(sar_task_alloc(task, elements, desc->element_size, &state->vector));
    SAR_TRY(sar_task_alloc(task, bitmap_bytes, 1, &state->bitmap));
    desc->kernels->fill_identity(state->vector, elements * desc->row_len);
    if (scatters_coordinates(task->agreed)) {
        memset(state->bitmap, 0, bitmap_bytes);
        scatter_to_parts(task);
    } else {
        sar_dense_scatter(desc, &task->input.vec, state->vector);
        sar_bitmap_encode(&layout, &task->input.vec, state->bitmap);
    }
    span.work =
        sar_span_work_make("densify", task->input.vec.nnz, desc->element_size, elements * desc->row_len);
    sar_task_span_end(task, &span);
    return SAR_OK;
}

static void start(struct sar_task *task, const struct sar_dense_args *args)
{
    enum sar_status status =
        sar_dense_allreduce_start(task->comm, args, task->args.may_block, &task->allreduce);
    sar_exchange_fail(&task->exchange, status);
}

/* A rank without memory or without its vector cannot take part in the allreduce: all ranks must know before
 * it starts. */
static void agree_on_failures(struct sar_task *task)
{
    struct state *state = task->state;
    if (task->agreed->call.dense_face && !task->args.vote_first)
        return;
    state->failures = task->exchange.status != SAR_OK;
    start(task, &(struct sar_dense_args){ MPI_IN_PLACE, &state->failures, 1, MPI_INT, MPI_SUM, 0 });
}

static enum sar_status check_failures(struct sar_task *task)
{
    struct state *state = task->state;
    state->chunked = task->args.chunk_bytes != 0 && state->failures == 0;
    return state->failures == 0 ? SAR_OK : SAR_PEER_FAILED;
}

static void reduce_values(struct sar_task *task)
{
    struct state *state = task->state;
    struct sar_dense_args args = task->args.buffers;
    double bytes = (double)elements_of(task->agreed) * (double)task->agreed->desc.element_size;
    double rings = task->agreed->call.collective == SAR_REDUCE_SCATTER ? 1 : 2;
    double ring = rings * bytes * (task->comm->ranks - 1) / task->comm->ranks;
    if (task->exchange.status != SAR_OK)
        return;
    if (!task->agreed->call.dense_face) {
        args.sendbuf = MPI_IN_PLACE;
        args.recvbuf = state->vector;
    }
    if (scatters_coordinates(task->agreed)) {
        args.count = state->map.slots_max * task->agreed->desc.row_len;
        args.parts = (uint32_t)task->comm->ranks;
    }
    task->exchange.traffic.bytes_sent = task->exchange.traffic.bytes_received = (uint64_t)ring;
    task->result.in_place = task->agreed->call.dense_face;
    if (!state->chunked)
        start(task, &args);
}

/* Copies the last chunk back to the device, and waits for the next chunk from there. */
static enum sar_status swap_chunks(struct sar_task *task)
{
    const struct state *state = task->state;
    if (task->device.pipeline == NULL || !state->chunked)
        return SAR_OK;
    if (state->chunks_posted > 0)
        SAR_TRY(sar_host_pipeline_write_back(task->device.pipeline, state->chunks_posted - 1));
    return sar_host_pipeline_wait(task->device.pipeline, state->chunks_posted);
}

/* Returns the basic values of a chunk; an element may have several. */
static uint64_t chunk_values(const struct sar_task *task)
{
    const struct sar_vec_desc *desc = &task->agreed->desc;
    return task->args.chunk_bytes / (desc->element_size / desc->row_len);
}

/* Returns the arguments for the next chunk. */
static struct sar_dense_args chunk_of(const struct sar_task *task)
{
    const struct state *state = task->state;
    struct sar_dense_args args = task->args.buffers;
    uint64_t chunk = chunk_values(task), done = state->chunks_posted * chunk;
    size_t offset = state->chunks_posted * task->args.chunk_bytes;
    args.count = args.count - done < chunk ? args.count - done : chunk;
    if (task->device.pipeline != NULL) {
        args.sendbuf = MPI_IN_PLACE;
        args.recvbuf = sar_host_pipeline_chunk(task->device.pipeline, state->chunks_posted);
        return args;
    }
    if (args.sendbuf != MPI_IN_PLACE)
        args.sendbuf = (const char *)args.sendbuf + offset;
    args.recvbuf = (char *)args.recvbuf + offset;
    return args;
}

static void reduce_chunk(struct sar_task *task)
{
    struct state *state = task->state;
    if (!state->chunked)
        return;
    struct sar_dense_args args = chunk_of(task);
    start(task, &args);
    state->chunks_posted++;
    task->repeat_stage = state->chunks_posted * chunk_values(task) < task->args.buffers.count;
}

/* Copies the last chunk back to the device. All copies must be complete before this rank reports success. */
static enum sar_status end_chunks(struct sar_task *task)
{
    const struct state *state = task->state;
    if (task->device.pipeline == NULL)
        return SAR_OK;
    SAR_TRY(sar_host_pipeline_write_back(task->device.pipeline, state->chunks_posted - 1));
    return sar_host_pipeline_close(task->device.pipeline);
}

static void agree_on_failures_again(struct sar_task *task)
{
    const struct state *state = task->state;
    if (state->chunked)
        agree_on_failures(task);
}

static void reduce_presence(struct sar_task *task)
{
    struct state *state = task->state;
    if (task->agreed->call.dense_face || task->exchange.status != SAR_OK)
        return;
    uint32_t parts = scatters_coordinates(task->agreed) ? (uint32_t)task->comm->ranks : 0;
    start(task, &(struct sar_dense_args){ MPI_IN_PLACE, state->bitmap, sar_bitmap_bytes(slots_of(task)),
                                          MPI_UINT8_T, MPI_BOR, parts });
}

static enum sar_status sparsify(struct sar_task *task)
{
    struct state *state = task->state;
    const struct sar_vec_desc *desc = &task->agreed->desc;
    struct sar_spvec out = { NULL, NULL, 0 };
    if (task->agreed->call.dense_face)
        return SAR_OK;
    struct sar_wire_layout layout = sar_agreed_layout(task->agreed, slots_of(task), desc->index_size);
    struct sar_span span = sar_task_span(task, "sparsify");
    size_t nnz = sar_bitmap_count(state->bitmap, sar_bitmap_bytes(layout.slots), 0, UINT64_MAX),
           size = desc->element_size;
    SAR_TRY(sar_task_reserve(task, nnz, &out));
    SAR_TRY(sar_bitmap_decode(&layout, state->bitmap, nnz, out.index));
    for (size_t i = 0; i < nnz; i++)
        memcpy((unsigned char *)out.value + i * size,
               state->vector + sar_index_get(out.index, desc->index_size, i) * size, size);
    out.nnz = nnz;
    if (scatters_coordinates(task->agreed))
        sar_partition_slots_to_indices(&state->map, (uint32_t)task->comm->rank, out.index, desc->index_size,
                                       nnz, out.index, desc->index_size);
    task->result.vec = out;
    span.work = sar_span_work_make("sparsify", nnz, size, layout.slots * desc->row_len);
    sar_task_span_end(task, &span);
    return SAR_OK;
}

static const struct sar_stage stages[] = {
    { .compute = densify, .post = agree_on_failures },
    { .compute = check_failures, .post = reduce_values },
    { .compute = swap_chunks, .post = reduce_chunk },
    { .compute = end_chunks, .post = agree_on_failures_again },
    { .compute = check_failures, .post = reduce_presence },
    { .compute = sparsify },
    { .compute = NULL },
};

const struct sar_scheme sar_scheme_dense = {
    .name = "dense",
    .summary = "MPI_Allreduce of the dense vector",
    .collectives = 1u << SAR_ALLREDUCE | 1u << SAR_REDUCE_SCATTER,
    .unsupported_reason = unsupported_reason,
    .redundant_reason = redundant_reason,
    .seconds = seconds,
    .on_dense_buffers = true,
    .state_size = sizeof(struct state),
    .stages = stages,
};
