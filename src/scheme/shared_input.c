/* SPDX-License-Identifier: BSD-3-Clause */
/* The inputs of `shared`: each rank's elements in its shared input buffer. Dense buffers are compacted into
 * it, coordinates copied, unless two_level wrote them there. Its inputs may be shares of the same rows, which
 * are joined instead of reduced. */

#include "scheme/shared.h"
#include "vector/dense.h"
#include "vector/multiselect.h"
#include "vector/spvec.h"

enum { BALANCE = 64 }; /* parts may differ by one element in so many */

/* The input buffer, while a dense buffer is compacted into it. */
struct shm_growable {
    struct sar_growable growable; /* first */
    struct sar_task *task;
    struct sar_shm_coll_msg *msg;
};

/* Returns the elements that a buffer of this rank can hold without growing. */
static size_t capacity_of(const struct sar_shm_buffer *buffer, const struct sar_vec_desc *desc)
{
    size_t bytes = buffer->own.bytes, spare = 2 * SAR_ALIGNMENT;
    return bytes < spare ? 0 : (bytes - spare) / (desc->index_size + desc->element_size);
}

/* Makes room for at least nnz elements in the input buffer. */
static enum sar_status grow_buffer(const struct sar_task *task, const struct sar_vec_desc *desc,
                                   struct sar_shm_coll_msg *msg, size_t nnz, struct sar_spvec *vec)
{
    struct sar_shm_buffer *buffer = sar_shm_group_input_buffer(task->comm->shm_group);
    size_t fits = capacity_of(buffer, desc);
    return sar_shm_coll_grow(task, desc, msg, buffer, fits > nnz ? fits : nnz, vec);
}

static enum sar_status grow(struct sar_growable *growable, size_t nnz, struct sar_spvec *vec)
{
    const struct shm_growable *on = (struct shm_growable *)growable;
    SAR_TRY(grow_buffer(on->task, &on->task->agreed->desc, on->msg, nnz, vec));
    growable->capacity = (size_t)on->msg->capacity;
    return SAR_OK;
}

static enum sar_status reserve_in_buffer(struct sar_output_dest *output, const struct sar_output_need *need,
                                         struct sar_spvec *vec)
{
    struct sar_shared_output *shared = (struct sar_shared_output *)output;
    bool first = vec->index == NULL;
    if (!first && need->nnz <= shared->msg.capacity)
        return SAR_OK;
    return grow_buffer(shared->task, &shared->desc, &shared->msg,
                       first ? need->nnz : need->nnz + need->nnz / 2, vec);
}

struct sar_shared_output sar_shared_output(const struct sar_task *task, struct sar_vec_desc desc)
{
    return (struct sar_shared_output){ .output.reserve = reserve_in_buffer, .task = task, .desc = desc };
}

enum sar_status sar_shared_load_dense(struct sar_task *task, struct sar_shm_coll_msg *msg)
{
    const struct sar_agreed *agreed = task->agreed;
    struct sar_spvec *input = &task->input.vec;
    struct shm_growable on = { { grow, 0, task->memory.call_arena }, task, msg };
    const void *buf = agreed->call.in_place ? task->args.buffers.recvbuf : task->args.buffers.sendbuf;
    struct sar_span span = sar_task_span(task, "compact");
    SAR_TRY(sar_dense_compact_into(&agreed->desc, buf, (size_t)agreed->data.nnz_max, &on.growable, input));
    span.work = sar_span_work_make("compact", input->nnz, agreed->desc.element_size,
                                   agreed->desc.count * agreed->desc.row_len);
    sar_task_span_end(task, &span);
    task->minus_zero =
        sar_dense_has_negative_zero(agreed->desc.dtype, input->value, input->nnz * agreed->desc.row_len);
    return SAR_OK;
}

/* The other ranks read the copy, so the memory of the original is free for the reduction. */
static void move_input(struct sar_task *task, const struct sar_spvec *copy)
{
    if (task->input.arena_mark.newest == NULL)
        return;
    sar_arena_rewind(task->memory.call_arena, task->input.arena_mark);
    task->input.arena_mark = (struct sar_arena_mark){ 0 };
    task->input.vec = *copy;
    task->input.moved = true;
}

/* Copies past the caches if some ranks are on another socket: they read memory faster than a cache on another
 * socket, and this rank need not fetch the lines before it writes them. */
static enum sar_status copy_input(struct sar_task *task, struct sar_shm_coll_msg *msg)
{
    struct sar_shm_buffer *buffer = sar_shm_group_input_buffer(task->comm->shm_group);
    struct sar_spvec copy = { NULL, NULL, 0 };
    if (msg->capacity != 0) /* it is there */
        return SAR_OK;
    SAR_TRY(sar_shm_coll_grow(task, &task->agreed->desc, msg, buffer, task->input.vec.nnz, &copy));
    copy.nnz = task->input.vec.nnz;
    sar_task_copy(task, &task->agreed->desc, &task->input.vec, &copy, task->comm->shm_group->numa_remote);
    move_input(task, &copy);
    return SAR_OK;
}

enum sar_status sar_shared_copy_in(struct sar_task *task, struct sar_shm_coll_msg *msg)
{
    if (task->input.load_deferred)
        SAR_TRY(sar_shared_load_dense(task, msg));
    return task->comm->ranks > 1 ? copy_input(task, msg) : SAR_OK;
}

enum sar_status sar_shared_slice_inputs(struct sar_task *task, const struct sar_spvec inputs[],
                                        struct sar_spvec slices[])
{
    const struct sar_vec_desc *desc = &task->agreed->desc;
    size_t n = (size_t)task->comm->ranks, rank = (size_t)task->comm->rank, total = 0, *from;
    for (size_t r = 0; r < n; r++)
        total += inputs[r].nnz;
    SAR_TRY(sar_task_alloc(task, 4 * n, sizeof *from, &from));
    size_t *to = from + n, *scratch = to + n, share = total / n, slack = share / BALANCE;
    if (rank > 0)
        sar_multiselect(desc, inputs, n, (struct sar_multiselect_target){ rank * share, slack }, from,
                        scratch);
    if (rank + 1 < n)
        sar_multiselect(desc, inputs, n, (struct sar_multiselect_target){ (rank + 1) * share, slack }, to,
                        scratch);
    for (size_t r = 0; r < n; r++)
        slices[r] = sar_spvec_slice(desc, &inputs[r], from[r], rank + 1 < n ? to[r] : inputs[r].nnz);
    return SAR_OK;
}

void sar_shared_slice_shares(const struct sar_task *task, const struct sar_columns *columns,
                             const struct sar_spvec inputs[], struct sar_spvec slices[])
{
    size_t n = (size_t)task->comm->ranks, rank = (size_t)task->comm->rank, nnz = inputs[0].nnz;
    for (size_t r = 0; r < n; r++) {
        struct sar_slice share = sar_columns_share_slice(columns, (int)r);
        struct sar_vec_desc desc = sar_columns_slice_desc(&task->agreed->desc, share);
        slices[r] = sar_spvec_slice(&desc, &inputs[r], nnz * rank / n, nnz * (rank + 1) / n);
    }
}

/* Reads the indices of this rank's share: those of the others are equal. */
struct sar_span_work sar_shared_join(const struct sar_task *task, const struct sar_columns *columns,
                                     const struct sar_spvec shares[], unsigned index_size,
                                     struct sar_spvec *out)
{
    const struct sar_vec_desc *desc = &task->agreed->desc;
    const struct sar_spvec *own = &shares[task->comm->rank];
    size_t n = (size_t)task->comm->ranks;
    out->nnz = own->nnz;
    for (size_t i = 0; i < own->nnz; i++)
        sar_index_set(out->index, index_size, i, sar_index_get(own->index, desc->index_size, i));
    for (size_t r = 0; r < n; r++)
        sar_columns_scatter(desc, sar_columns_share_slice(columns, (int)r), &shares[r], out->value);
    return sar_span_work_make("append", n * out->nnz, desc->element_size / n, 0);
}

enum sar_status sar_shared_join_to_output(struct sar_task *task, const struct sar_columns *columns,
                                          const struct sar_spvec shares[])
{
    struct sar_spvec out = { NULL, NULL, 0 };
    struct sar_span span = sar_task_span(task, "deliver");
    SAR_TRY(sar_task_reserve(task, shares[0].nnz, &out));
    span.work = sar_shared_join(task, columns, shares, task->agreed->desc.index_size, &out);
    task->result.vec = out;
    sar_task_span_end(task, &span);
    return SAR_OK;
}
