/* SPDX-License-Identifier: BSD-3-Clause */
/* Allgather (AGsparse, as in PyTorch and Horovod): every rank sends its elements to every other rank, and
 * reduces the elements of all ranks, in rank order, in one pass.
 *
 * It takes one step, so it suits few ranks and very sparse vectors. The bytes that a rank receives grow
 * with the number of ranks, because equal indices are reduced only at the end. A row is sent whole, with one
 * index, as in PyTorch and Horovod.
 *
 *     time = e(p-1, (p-1) m) + p z gamma
 *
 * p ranks, z elements and m bytes of message of the rank with most, e the time of sar_agreed_exchange. In the
 * collective allgather the reduction puts the elements in order, and finds indices that occur twice. */

#include "scheme/engine/task.h"
#include "scheme/scheme.h"

struct state {
    struct sar_spvec input; /* as the other ranks decode it */
    struct sar_msg message;
};

static struct sar_wire_layout layout_of(const struct sar_agreed *agreed)
{
    return sar_agreed_layout(agreed, agreed->desc.count, agreed->desc.index_size);
}

static double seconds(const struct sar_agreed *a)
{
    struct sar_wire_layout layout = layout_of(a);
    struct sar_cost message = sar_agreed_cost(a, false, &layout, a->data.nnz_max);
    double peers = a->machine.ranks - 1;
    double coding = a->machine.ranks / 2.0 * message.work; /* encoded once */
    double work = a->machine.ranks * a->data.nnz_mean + coding;
    return sar_agreed_exchange(a, peers, peers * message.bytes) + work * a->machine.gamma;
}

static enum sar_status encode(struct sar_task *task)
{
    struct state *state = task->state;
    struct sar_msg *message = task->comm->ranks > 1 ? &state->message : NULL;
    task->result.early_write =
        task->agreed->call.collective == SAR_ALLGATHER; /* check_disjoint comes later */
    state->input = task->input.vec;
    return sar_task_encode(task, false, layout_of(task->agreed), &state->input, message);
}

/* Starts with the next rank, so that not all ranks send to one rank at once. */
static void exchange(struct sar_task *task)
{
    struct state *state = task->state;
    int ranks = task->comm->ranks;
    for (int i = 1; i < ranks; i++)
        sar_exchange_expect(&task->exchange, (task->comm->rank + i) % ranks);
    for (int i = 1; i < ranks; i++)
        sar_exchange_send(&task->exchange, (task->comm->rank + i) % ranks, &state->message);
}

static enum sar_status check_disjoint(const struct sar_task *task, const struct sar_spvec inputs[])
{
    size_t sum = 0;
    for (int r = 0; r < task->comm->ranks; r++)
        sum += inputs[r].nnz;
    return task->result.vec.nnz < sum ? SAR_COMMON_INDEX : SAR_OK;
}

static enum sar_status reduce(struct sar_task *task)
{
    const struct state *state = task->state;
    struct sar_spvec *inputs;
    struct sar_task_part *parts;
    size_t n = 0;
    int ranks = task->comm->ranks;
    SAR_TRY(sar_task_alloc(task, (size_t)ranks, sizeof *inputs, &inputs));
    SAR_TRY(sar_task_alloc(task, (size_t)ranks, sizeof *parts, &parts));
    for (int r = 0; r < ranks; r++)
        if (r != task->comm->rank)
            parts[n++] = (struct sar_task_part){ layout_of(task->agreed), &inputs[r],
                                                 &task->exchange.arrived[r], NULL, false };
    SAR_TRY(sar_task_decode_parts(task, parts, n));
    inputs[task->comm->rank] = state->input;
    struct sar_vec_desc desc = sar_task_desc(task);
    SAR_TRY(sar_task_reduce_to_output(task, &desc, inputs, (size_t)ranks));
    return task->agreed->call.collective == SAR_ALLGATHER ? check_disjoint(task, inputs) : SAR_OK;
}

static const struct sar_stage stages[] = { { .compute = encode, .post = exchange },
                                           { .compute = reduce },
                                           { .compute = NULL } };

const struct sar_scheme sar_scheme_allgather = {
    .name = "allgather",
    .summary = "every rank sends its elements to every other rank, which reduces them all",
    .collectives = 1u << SAR_ALLREDUCE | 1u << SAR_ALLGATHER,
    .unsupported_reason = sar_agreed_sparse_unsupported,
    .seconds = seconds,
    .stages_to_push = 1,
    .pushes_whole = true,
    .state_size = sizeof(struct state),
    .stages = stages,
};
