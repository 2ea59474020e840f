/* SPDX-License-Identifier: BSD-3-Clause */
/* The task that a call hands to the selected scheme, and its input. Runs in every call; costs one pass over a
 * dense buffer, unless the scheme converts that itself. */

#include "core/prepare.h"
#include "vector/dense.h"

#include <string.h>

static uint32_t fingerprint(const struct sar_active_call *op)
{
    uint32_t hash = (uint32_t)op->common.selection.scheme;
    for (int i = 0; i < SAR_AGREE_FIELDS; i++)
        hash = sar_murmur3_u64((uint64_t)op->args->sig.field[i], hash);
    return hash;
}

/* may_block is agreed on, because MPI's blocking and nonblocking collectives do not match each other. */
void sar_active_call_task_init(struct sar_active_call *op)
{
    struct sar_task *task = &op->task;
    task->scheme = sar_schemes[op->common.selection.scheme];
    task->agreed = &op->common.agreed;
    task->comm = &op->comm_state->comm;
    task->memory.call_arena = task->memory.step_arena = &op->comm_state->memory.arena;
    task->memory.step_arenas = op->comm_state->memory.scratch;
    task->args.oktopk = &op->common.tensor->oktopk;
    task->args.oktopk_interval = op->policy->config.recompute;
    task->args.buffers = op->args->data.buffers;
    task->args.may_block = op->common.agreement.global.may_block == SAR_MAY_BLOCK;
    task->args.can_retry = true;
    task->args.vote_first = op->common.agreement.global.dense_path != SAR_DENSE_PATH_HOST;
    task->args.chunk_bytes =
        op->common.agreement.global.dense_path == SAR_DENSE_PATH_PIPELINED ? op->args->device.block_bytes : 0;
    task->args.epoch = op->comm_state->epoch;
    task->args.fingerprint = fingerprint(op);
    op->host.output =
        sar_output_in_buffers(&op->comm_state->memory.output[0], &op->comm_state->memory.output[1]);
    task->output = op->args->sig.dense_face ? &op->host.output.output : op->args->data.output;
}

/* If the scheme moved the coordinates of the input, sort and check the caller's again. */
static void canonicalize_again(struct sar_active_call *op)
{
    const struct sar_call_args *args = op->args;
    struct sar_task *task = &op->task;
    long long bad = 0;
    enum sar_status status = sar_canonicalize(&args->sig.desc, &args->data.coo, &op->comm_state->memory.arena,
                                              &task->input.vec, &bad);
    sar_exchange_fail(&task->exchange, status);
    if (status != SAR_OK)
        task->input.vec = (struct sar_spvec){ NULL, NULL, 0 };
}

/* The elements of a host vector are dropped: they may be in memory of the first scheme. */
void sar_active_call_task_reset(struct sar_active_call *op)
{
    struct sar_task before = op->task;
    memset(before.state, 0, sar_task_state_size());
    before.exchange.status = SAR_OK;
    op->task = (struct sar_task){ .state = before.state, .exchange = before.exchange };
    if (!op->args->sig.dense_face || op->args->device.resident)
        op->task.input.vec = before.input.vec;
    op->task.minus_zero = op->args->device.resident && before.minus_zero;
    if (before.input.moved)
        canonicalize_again(op);
}

/* False after an error of this rank: then the device holds no mask of the vector. */
static bool accepts_parts(const struct sar_active_call *op)
{
    return op->task.scheme->on_device && op->args->result.error.status == SAR_OK &&
           sar_agreed_partition_map(&op->common.agreed).kind != SAR_PARTITION_RANGE;
}

void sar_active_call_load_coo(struct sar_active_call *op)
{
    struct sar_task *task = &op->task;
    long long bad = 0;
    if (!op->args->device.resident || op->args->sig.dense_face || op->args->result.error.status != SAR_OK)
        return;
    enum sar_status status = sar_device_input_load_coo(op, &bad);
    sar_exchange_fail(&task->exchange, status);
    if (status != SAR_OK)
        task->input.vec = (struct sar_spvec){ NULL, NULL, 0 };
}

static enum sar_status load_host(struct sar_active_call *op)
{
    const struct sar_call_args *args = op->args;
    const void *buf = args->sig.in_place ? args->data.buffers.recvbuf : args->data.buffers.sendbuf;
    struct sar_task *task = &op->task;
    if (!sar_call_args_has_packed(args))
        return sar_dense_compact(&args->sig.desc, buf, (size_t)op->common.agreed.data.nnz_max,
                                 task->memory.call_arena, &task->input.vec);
    task->input.vec = sar_packed_vec_spvec(args->device.packed[0]);
    return SAR_OK;
}

void sar_active_call_load_dense(struct sar_active_call *op)
{
    struct sar_task *task = &op->task;
    const struct sar_call_args *args = op->args;
    const struct sar_scheme *scheme = task->scheme;
    bool own_compact = args->sig.dense_face && scheme->load_dense != NULL && !args->device.resident &&
                       !sar_call_args_has_packed(args);
    task->input.load_deferred = own_compact && !op->run.profile_due;
    task->args.may_accumulate =
        args->sig.dense_face && !args->device.resident && args->device.packed[1] == NULL;
    bool parts = args->device.resident && accepts_parts(op);
    if (task->input.load_deferred || (parts && !op->run.profile_due && sar_device_input_offer_parts(op)))
        return;
    if (own_compact) {
        sar_exchange_fail(&task->exchange, scheme->load_dense(task));
        return;
    }
    if (!args->sig.dense_face) {
        sar_active_call_load_coo(op);
        return;
    }
    if (scheme->on_dense_buffers) {
        if (sar_call_args_has_packed(args))
            sar_packed_vec_expand(&args->sig.desc, args->device.packed[0], op->host.spare_indices);
        sar_exchange_fail(&task->exchange, args->device.resident ? sar_device_input_expand(op) : SAR_OK);
        return;
    }
    struct sar_span span = sar_active_call_span(op, "compact");
    enum sar_status status = args->device.resident ? sar_device_input_load_dense(op) : load_host(op);
    sar_exchange_fail(&task->exchange, status);
    if (status == SAR_OK)
        task->minus_zero = sar_dense_has_negative_zero(args->sig.desc.dtype, task->input.vec.value,
                                                       task->input.vec.nnz * args->sig.desc.row_len);
    if (parts && status == SAR_OK)
        sar_device_input_offer_parts(op);
    if (!args->device.resident)
        span.work = sar_span_work_make("compact", task->input.vec.nnz, args->sig.desc.element_size,
                                       args->sig.desc.count * args->sig.desc.row_len);
    sar_active_call_span_end(op, &span);
}
