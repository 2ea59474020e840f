/* SPDX-License-Identifier: BSD-3-Clause */
/* Preparation of a call, its agree message, the selection of its scheme, and the task that the call hands to
 * it. Runs in every call: once over coordinates; once over a dense buffer, unless the scheme converts that
 * itself, and over a sample of it. */

#include "core/prepare.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "comm/dense_allreduce.h"
#include "comm/thread_ratio.h"
#include "core/ownership.h"
#include "vector/dense.h"

enum {
    SAMPLE_MAX = 16384,   /* elements of a dense buffer that are read before the agreement, at most */
    SAMPLE_SHARE = 16,    /* elements of the buffer per element read */
    SAMPLE_BYTES = 65536, /* bytes up to which a buffer is read whole */
    REUSE_CALLS = 16      /* calls that reuse a selection */
};

static const double RATIO_DRIFT = 0.03; /* relative change of the scheme's measured cost that ends reuse */

/* Returns the elements of the input, of a dense buffer estimated from a sample, and sets their quantiles
 * where indices are at hand. A vector in device memory is partitioned there, in segments of equal length. */
static size_t estimate_input(const struct sar_active_call *op, struct sar_agree_spread *spread)
{
    const struct sar_call_args *args = op->args;
    const struct sar_vec_desc *desc = &args->sig.desc;
    const void *buf = args->sig.in_place ? args->data.buffers.recvbuf : args->data.buffers.sendbuf;
    size_t count = (size_t)desc->count, share = count / SAMPLE_SHARE;
    spread->equal_segments = args->device.resident;
    if (!args->sig.dense_face) {
        if (!args->device.resident)
            spread->quantiles = sar_quantiles_of(desc, &op->task.input.vec);
        return op->task.input.vec.nnz;
    }
    if (args->device.resident)
        return op->device.mask.nnz;
    if (sar_call_args_has_packed(args))
        return (size_t)*args->device.packed[0]->nnz;
    size_t sample = share < SAMPLE_MAX ? share : SAMPLE_MAX;
    if (count * desc->element_size <= SAMPLE_BYTES)
        sample = count;
    return sar_dense_estimate_nonzero(desc, buf, sample, &spread->quantiles);
}

void sar_call_args_resolve_types(struct sar_call_args *args, const struct sar_policy *policy)
{
    static const enum sar_dtype bases[] = { [SAR_ELEMENT_BF16] = SAR_BF16, [SAR_ELEMENT_FP16] = SAR_FP16 };
    struct sar_vec_desc *desc = &args->sig.desc;
    int element = policy->config.element;
    args->device.block_bytes = sar_pinned_ring_block_bytes(policy->config.staging);
    if (args->sig.int16_as_float && element != SAR_ELEMENT_INTEGER) {
        desc->dtype = bases[element];
        desc->kernels = sar_op_kernels_of(desc->dtype, desc->op);
        args->sig.native = desc->kernels != NULL;
        if (!args->sig.native)
            sar_error_set(&args->result.error, SAR_UNDEFINED_OP, args->sig.field[SAR_AGREE_OP]);
    }
    if (args->sig.native && (desc->dtype == SAR_BF16 || desc->dtype == SAR_FP16)) {
        args->data.buffers.datatype = MPI_UINT16_T; /* MPI fails to copy some of its own 16-bit float types */
        args->data.buffers.op = sar_op16_get(desc->dtype, desc->op);
    }
}

/* While a packed input is expanded in place, its indices move to spare memory. */
static enum sar_status alloc_spare(struct sar_comm_state *comm_state, const struct sar_call_args *args,
                                   void **spare_indices)
{
    if (!sar_call_args_has_packed(args))
        return SAR_OK;
    return sar_arena_alloc(&comm_state->memory.arena, (size_t)*args->device.packed[0]->nnz,
                           args->sig.desc.index_size, spare_indices);
}

enum sar_status sar_call_args_expand(struct sar_comm_state *comm_state, struct sar_call_args *args)
{
    void *spare_indices = NULL;
    if (!sar_call_args_has_packed(args))
        return SAR_OK;
    sar_comm_state_reset_memory(comm_state);
    SAR_TRY(alloc_spare(comm_state, args, &spare_indices));
    sar_packed_vec_expand(&args->sig.desc, args->device.packed[0], spare_indices);
    return SAR_OK;
}

/* Returns the bytes of a task's state, enough for any scheme. */
static size_t task_state_size(void)
{
    size_t largest = 0;
    for (size_t i = 0; sar_schemes[i] != NULL; i++)
        largest = sar_schemes[i]->state_size > largest ? sar_schemes[i]->state_size : largest;
    return largest;
}

void sar_active_call_prepare(struct sar_active_call *op)
{
    struct sar_call_args *args = op->args;
    struct sar_task *task = &op->task;
    long long bad = 0;
    enum sar_status status =
        sar_exchange_open(&op->comm_state->comm, &op->comm_state->memory.arena, &task->exchange);
    if (status == SAR_OK)
        status = sar_arena_alloc(&op->comm_state->memory.arena, 1, task_state_size(), &task->state);
    sar_error_set(&args->result.error, status, 0);
    if (args->result.error.status != SAR_OK)
        return;
    if (!args->device.resident && !args->sig.dense_face)
        task->input.arena_mark = sar_arena_mark(&op->comm_state->memory.arena);
    if (args->device.resident)
        status = sar_device_input_scan(op, &bad);
    else if (args->sig.dense_face)
        status = alloc_spare(op->comm_state, args, &op->host.spare_indices);
    else
        status = sar_canonicalize(&args->sig.desc, &args->data.coo, &op->comm_state->memory.arena,
                                  &task->input.vec, &bad);
    if (status == SAR_OK && args->sig.collective == SAR_ALLGATHER && task->input.vec.nnz < args->data.coo.nnz)
        status = SAR_COMMON_INDEX;
    sar_error_set(&args->result.error, status, bad);
}

/* Starts of a plan may skip the agreement, so that only this rank knows of its own failure to copy. */
static enum sar_dense_path dense_path_of(const struct sar_active_call *op)
{
    const struct sar_call_args *args = op->args;
    bool planned = op->plan != NULL && (args->device.fused || args->device.memory.accelerator != NULL);
    if (!args->sig.dense_face)
        return SAR_DENSE_PATH_HOST;
    if (args->device.resident && !args->device.direct)
        return SAR_DENSE_PATH_PIPELINED;
    return args->device.direct || planned ? SAR_DENSE_PATH_STAGED : SAR_DENSE_PATH_HOST;
}

/* Elements in device memory are not looked at. */
static uint8_t violations_of(const struct sar_active_call *op)
{
    if (op->args->device.resident)
        return UINT8_MAX;
    return sar_ownership_violations(op->comm_state, &op->args->sig.desc, &op->task.input.vec);
}

struct sar_agree_msg sar_active_call_agree_msg(const struct sar_active_call *op)
{
    const struct sar_call_args *args = op->args;
    struct sar_agree_msg msg = sar_agree_msg_make(&op->comm_state->comm, args->sig.field);
    msg.status = (int32_t)args->result.error.status;
    msg.status_value = args->result.error.value;
    msg.dense_path = (uint8_t)dense_path_of(op);
    msg.last_call_ns = op->comm_state->feedback.scheme_ns;
    msg.pre_scheme_ns = op->comm_state->feedback.pre_scheme_ns;
    msg.pull = op->comm_state->feedback.pull;
    if (op->run.speculates) {
        uint32_t call = op->common.tensor->speculation.call;
        msg.early = (struct sar_agree_early){ call, call, op->task.exchange.tag_base };
    }
    if (args->result.error.status != SAR_OK || !args->sig.native)
        return msg;
    msg.nnz_max = (int64_t)estimate_input(op, &msg.spread);
    msg.nnz_sum = msg.nnz_max;
    if (args->sig.collective == SAR_ALLGATHER)
        msg.spread.not_owned = violations_of(op);
    return msg;
}

/* Returns the error of a field that differs, by the name that the argument has in the function. Three
 * arguments share a field. Labels have 31 bits, and fusions more (core/persistent.h). */
static enum sar_status mismatch_of(int field, const struct sar_agree_range *found,
                                   const struct sar_call_sig *sig)
{
    static const enum sar_status mismatch[SAR_AGREE_FIELDS] = {
        SAR_MISMATCHED_CALL,     SAR_MISMATCHED_PLANS, SAR_MISMATCHED_COUNT,
        SAR_MISMATCHED_DATATYPE, SAR_MISMATCHED_OP,    SAR_MISMATCHED_IN_PLACE,
    };
    bool scatters = sig->collective == SAR_REDUCE_SCATTER;
    if (field == SAR_AGREE_BLOCK && scatters)
        return SAR_MISMATCHED_BLOCK;
    if (field == SAR_AGREE_COUNT && scatters && sig->dense_face)
        return SAR_MISMATCHED_RECVCOUNT;
    if (field == SAR_AGREE_IN_PLACE && found->min >> 1 != found->max >> 1)
        return SAR_MISMATCHED_PLAN;
    return field == SAR_AGREE_LABEL && found->max <= INT32_MAX ? SAR_MISMATCHED_LABEL : mismatch[field];
}

/* Errors of arguments go first. Then the first field that differs counts: the fields are in an order in which
 * an earlier difference may cause a later one. Labels come last, since callers choose them. */
struct sar_error sar_error_resolve(const struct sar_agree_msg *all, const struct sar_call_sig *sig)
{
    struct sar_error error = { .agreed = true,
                               .status = (enum sar_status)all->status,
                               .rank = all->status_rank,
                               .value = all->status_value,
                               .low = all->field[SAR_AGREE_COUNT].min,
                               .high = all->field[SAR_AGREE_COUNT].max };
    for (int i = 0; i < SAR_AGREE_FIELDS; i++) {
        if ((error.status != SAR_OK && error.status != SAR_MISMATCHED_LABEL) ||
            all->field[i].min == all->field[i].max)
            continue;
        error = (struct sar_error){ .agreed = true,
                                    .status = mismatch_of(i, &all->field[i], sig),
                                    .low = all->field[i].min,
                                    .high = all->field[i].max,
                                    .low_rank = all->field[i].min_rank,
                                    .high_rank = all->field[i].max_rank };
    }
    return error;
}

/* Only floats are rounded to 16 bits. A product may overflow those long before the float. */
static enum sar_wire_precision precision_of(const struct sar_active_call *op)
{
    const struct sar_vec_desc *desc = &op->args->sig.desc;
    bool sends = op->comm_state->comm.ranks > 1;
    bool rounds = op->args->sig.native && desc->dtype == SAR_FLOAT && desc->op != SAR_PROD;
    return sends && rounds ? (enum sar_wire_precision)op->policy->config.wire_values : SAR_PRECISION_FULL;
}

static void describe_call(struct sar_active_call *op)
{
    const struct sar_comm_state *comm_state = op->comm_state;
    const struct sar_policy *policy = op->policy;
    const struct sar_call_args *args = op->args;
    struct sar_agreed *agreed = &op->common.agreed;
    *agreed = (struct sar_agreed){
        .desc = args->sig.desc,
        .machine = comm_state->settings.machine,
        .topo.nodes = comm_state->comm.nodes.n,
        .topo.node_ranks = comm_state->comm.nodes.max_ranks,
        .topo.shared_memory = comm_state->comm.shm_group != NULL && comm_state->no_shm_calls == 0,
        .call.collective = args->sig.collective,
        .call.block = args->sig.block,
        .call.dense_face = args->sig.dense_face,
        .call.in_place = args->sig.in_place,
        .call.dense_skips_agree = args->sig.dense_face && op->plan == NULL && policy->fallback_max > 0,
        .call.speculates = policy->config.speculate && comm_state->comm.agree != NULL && args->sig.native &&
                           args->sig.collective != SAR_ALLGATHER,
        .call.check_seconds = comm_state->comm.nodes.n > 1
                                  ? sar_agree_seconds(comm_state->comm.ranks, &comm_state->settings.machine)
                                  : 0,
        .call.native = args->sig.native,
        .partition = policy->partition,
        .wire = policy->wire,
        .data.skewness = op->common.tensor->has_profile ? fmax(op->common.tensor->profile.skewness, 1) : 1,
        .data.pull_imbalance = op->common.tensor->pull.permille * 1e-3,
        .data.pull_parts = op->common.tensor->pull.parts,
        .data.nnz_mean = (double)op->common.agreement.global.nnz_sum / comm_state->comm.ranks,
        .data.nnz_max = (double)op->common.agreement.global.nnz_max,
    };
    if (op->common.tensor->has_profile)
        memcpy(agreed->data.segment_imbalance, op->common.tensor->profile.segment_imbalance,
               sizeof agreed->data.segment_imbalance);
    if (!op->common.agreement.global.spread.equal_segments)
        agreed->data.quantiles = op->common.agreement.global.spread.quantiles;
    agreed->wire.precision = precision_of(op);
    agreed->wire.throttle = comm_state->settings.policy.wire.throttle;
    agreed->machine.thread_ratio =
        sar_thread_ratio_of(policy->thread_ratio, &agreed->desc, agreed->data.nnz_mean);
    agreed->machine.gamma = sar_agreed_element_seconds(&comm_state->settings.machine, &args->sig.desc) *
                            agreed->machine.thread_ratio;
    double density = args->sig.desc.count == 0 ? 0 : agreed->data.nnz_mean / (double)args->sig.desc.count;
    agreed->data.densification = op->common.tensor->has_profile
                                     ? op->common.tensor->profile.gamma
                                     : sar_densification_independent(density, comm_state->comm.ranks);
    if (args->sig.collective == SAR_ALLGATHER) {
        agreed->data.densification = sar_densification_disjoint(comm_state->comm.ranks);
        agreed->data.disjoint = true;
        agreed->call.block =
            sar_ownership_block(comm_state, &args->sig.desc, op->common.agreement.global.spread.not_owned);
    }
}

/* True if the inputs of the last selection have hardly changed. Equal on all ranks. */
static bool can_reuse(const struct sar_active_call *op)
{
    const struct sar_tensor_state *tensor = op->common.tensor;
    int runs = tensor->reuse.selection.scheme;
    double change = tensor->costs.ratio[runs] - tensor->reuse.ratio;
    return tensor->reuse.reuse_left > 0 && !op->policy->config.explain &&
           tensor->reuse.shm == op->common.agreed.topo.shared_memory &&
           sar_price_cache_valid(&tensor->prices, &op->common.agreed) &&
           (op->policy->forced != NULL || fabs(change) <= RATIO_DRIFT * tensor->reuse.ratio) &&
           sar_scheme_unsupported_reason(sar_schemes[runs], &op->common.agreed) == NULL;
}

/* Pricing all schemes takes as long as a small call, and longer if the prices are not in the caches. */
static enum sar_status select_or_reuse(struct sar_active_call *op)
{
    const struct sar_policy *policy = op->policy;
    struct sar_tensor_state *tensor = op->common.tensor;
    if (can_reuse(op)) {
        tensor->reuse.reuse_left--;
        op->common.selection = tensor->reuse.selection;
        return SAR_OK;
    }
    SAR_TRY(sar_select(&op->common.agreed, &policy->config, &tensor->costs, policy->forced, &tensor->prices,
                       &op->common.selection));
    tensor->reuse.selection = op->common.selection;
    tensor->reuse.ratio = tensor->costs.ratio[op->common.selection.scheme];
    tensor->reuse.shm = op->common.agreed.topo.shared_memory;
    tensor->reuse.reuse_left = op->common.selection.settled ? REUSE_CALLS : 0;
    return SAR_OK;
}

enum sar_status sar_active_call_select(struct sar_active_call *op)
{
    const struct sar_policy *policy = op->policy;
    struct sar_comm_state *comm_state = op->comm_state;
    describe_call(op);
    if (comm_state->no_shm_calls > 0)
        comm_state->no_shm_calls--;
    SAR_TRY(select_or_reuse(op));
    if (policy->config.explain && op->comm_state->comm.rank == 0)
        sar_selection_explain(&op->common.selection, &op->common.agreed, &op->common.tensor->costs,
                              op->common.tensor->has_profile ? &op->common.tensor->profile : NULL, stderr);
    return SAR_OK;
}

static uint32_t fingerprint(const struct sar_active_call *op)
{
    uint32_t hash = (uint32_t)op->common.selection.scheme;
    for (int i = 0; i < SAR_AGREE_FIELDS; i++)
        hash = sar_murmur3_u64((uint64_t)op->args->sig.field[i], hash);
    return hash;
}

/* Reserves an eighth more from the second time on, because a scheme that has grown its output may grow it
 * again. */
static enum sar_status reserve_in_buffers(struct sar_output_dest *output, const struct sar_output_need *need,
                                          struct sar_spvec *vec)
{
    struct sar_output_in_buffers *on = (struct sar_output_in_buffers *)output;
    if (vec->index != NULL && need->nnz <= on->capacity)
        return SAR_OK;
    size_t capacity = vec->index == NULL ? need->nnz : need->nnz + need->nnz / 8;
    SAR_TRY(sar_buffer_reserve(&on->buffers[0], capacity, need->desc->index_size));
    vec->index = on->buffers[0].memory;
    SAR_TRY(sar_buffer_reserve(&on->buffers[1], capacity, need->desc->element_size));
    vec->value = on->buffers[1].memory;
    on->capacity = capacity;
    return SAR_OK;
}

/* may_block is agreed on, because MPI's blocking and nonblocking collectives do not match each other. */
void sar_active_call_task_init(struct sar_active_call *op)
{
    struct sar_task *task = &op->task;
    task->scheme = sar_schemes[op->common.selection.scheme];
    if (task->state != NULL) /* else there is no memory, and the call fails */
        memset(task->state, 0, task->scheme->state_size);
    task->agreed = &op->common.agreed;
    if (op->args->sig.collective == SAR_REDUCE_SCATTER)
        op->comm_state->scatter_block = op->args->sig.block;
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
    task->args.first_phase = op->run.first_phase;
    op->host.output = (struct sar_output_in_buffers){ .output.reserve = reserve_in_buffers,
                                                      .buffers = op->comm_state->memory.output };
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
    const struct sar_scheme *scheme = op->task.scheme;
    return scheme->on_device != NULL && op->args->result.error.status == SAR_OK &&
           scheme->on_device(&op->common.agreed);
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
    struct sar_span span = sar_task_span(&op->task, "compact");
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
