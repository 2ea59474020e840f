/* SPDX-License-Identifier: BSD-3-Clause */
/* Input in device memory. Runs in calls whose arrays stay on a device.
 *
 * Vectors: the device finds the non-zero elements and compacts or partitions them, so that only elements
 * are copied to the host. If the device also reduces and encodes, only messages are copied. If the scheme
 * works on dense buffers, the whole vector is staged through the host.
 *
 * Coordinates: the device sorts them. They are copied to the host, unless the device also partitions,
 * reduces and encodes them. */

#include "core/prepare.h"
#include "vector/spvec.h"
#include "vector/dense.h"

enum {
    SLOTS_PER_NNZ_MAX = 1024, /* size of the index space per element of the fullest rank */
    PINNED_BLOCKS_MAX = 64    /* blocks of a pinned ring, for the messages of all calls in flight */
};

static struct sar_host_copy *input_copy(struct sar_call_args *args)
{
    return &args->device.copy[args->sig.in_place ? 1 : 0];
}

static struct sar_pack_args pack_args_of(struct sar_active_call *op)
{
    struct sar_call_args *args = op->args;
    return (struct sar_pack_args){ &args->device.memory,       &args->sig.desc,
                                   input_copy(args)->device,   &op->device.mask,
                                   op->task.memory.call_arena, args->device.block_bytes };
}

static enum sar_status scan_coo(struct sar_active_call *op, long long *bad)
{
    struct sar_call_args *args = op->args;
    bool is_sorted;
    SAR_TRY(sar_device_canonicalize(&args->device.memory, &args->sig.desc, &args->data.coo, &op->device.d2h,
                                    &is_sorted));
    op->task.input.vec.nnz = op->device.d2h.device.nnz;
    return is_sorted ? SAR_OK : sar_device_input_load_coo(op, bad);
}

enum sar_status sar_device_input_scan(struct sar_active_call *op, long long *bad)
{
    struct sar_call_args *args = op->args;
    if (!args->sig.dense_face)
        return scan_coo(op, bad);
    struct sar_device_vec vector =
        sar_device_vec_of(&args->device.memory, &args->sig.desc, input_copy(args)->device);
    return args->device.memory.accelerator->find_nonzeros(&vector, &op->device.mask);
}

enum sar_status sar_device_input_load_coo(struct sar_active_call *op, long long *bad)
{
    struct sar_call_args *args = op->args;
    struct sar_d2h_copy *d2h = &op->device.d2h;
    struct sar_arena *arena = &op->comm_state->memory.arena;
    struct sar_spvec *input = &op->task.input.vec;
    if (input->nnz == 0 || input->index != NULL)
        return SAR_OK;
    SAR_TRY(sar_d2h_copy_start(d2h, args->device.block_bytes, arena));
    SAR_TRY(sar_d2h_copy_wait(d2h, d2h->device.nnz));
    struct sar_coo_args host = { d2h->host.index, d2h->host.value, d2h->host.nnz, args->data.coo.type };
    return sar_canonicalize(&args->sig.desc, &host, arena, input, bad);
}

/* No effect after an error of this rank: then there is no memory for the elements. */
enum sar_status sar_device_input_load_dense(struct sar_active_call *op)
{
    struct sar_pack_args pack = pack_args_of(op);
    if (op->args->result.error.status != SAR_OK || op->task.input.vec.index != NULL)
        return SAR_OK;
    SAR_TRY(sar_device_compact(&pack, &op->device.d2h));
    op->task.input.vec = op->device.d2h.host;
    return SAR_OK;
}

/* The partitioned input, kept for the rest of the call. Parts of one segment are contiguous. */
struct partitioned {
    struct sar_spvec vec;      /* all elements, on the host or in the memory of device execution */
    unsigned long long *first; /* first element of each part, segment by segment */
};

static enum sar_status partition_on_device(struct sar_active_call *op, const struct sar_pack_args *pack,
                                           const struct sar_partition_layout *layout,
                                           struct partitioned *partitioned)
{
    struct sar_device_exec *exec = op->task.device.exec;
    struct sar_vec_desc desc = op->args->sig.desc;
    if (op->args->sig.dense_face)
        return sar_device_exec_compact_parts(exec, pack, layout, &partitioned->vec, partitioned->first,
                                             &op->task.minus_zero);
    desc.index_size = op->device.d2h.index_size;
    return sar_device_exec_partition(exec, &desc, layout, &op->device.d2h.device, &partitioned->vec,
                                     partitioned->first);
}

static enum sar_status partition_input(struct sar_active_call *op, const struct sar_partition_layout *layout,
                                       struct partitioned *partitioned)
{
    struct sar_pack_args pack = pack_args_of(op);
    struct sar_task *task = &op->task;
    size_t cells = (size_t)layout->segments * layout->map.parts;
    struct sar_span span = sar_task_span(task, "partition");
    SAR_TRY(sar_task_alloc(task, cells + 1, sizeof *partitioned->first, &partitioned->first));
    if (task->device.exec == NULL) {
        SAR_TRY(sar_device_compact_parts(&pack, layout, &op->device.d2h, partitioned->first));
        partitioned->vec = op->device.d2h.host;
    } else {
        SAR_TRY(partition_on_device(op, &pack, layout, partitioned));
    }
    task->input.vec.nnz = partitioned->vec.nnz;
    sar_task_span_end(task, &span);
    return SAR_OK;
}

/* Wait for the elements up to `until`, and search those that arrived for a -0.0. */
static enum sar_status receive_until(struct sar_active_call *op, size_t until)
{
    struct sar_d2h_copy *d2h = &op->device.d2h;
    const struct sar_vec_desc *desc = &op->args->sig.desc;
    size_t before = d2h->arrived;
    SAR_TRY(sar_d2h_copy_wait(d2h, until));
    const char *value = (const char *)d2h->host.value + before * desc->element_size;
    op->task.minus_zero |=
        sar_dense_has_negative_zero(desc->dtype, value, (d2h->arrived - before) * desc->row_len);
    return SAR_OK;
}

static enum sar_status get_parts(struct sar_device_partition *partition,
                                 const struct sar_partition_layout *layout, uint32_t segment,
                                 struct sar_spvec parts[])
{
    struct sar_active_call *op = partition->owner;
    struct sar_vec_desc desc = op->args->sig.desc;
    desc.index_size = sizeof(uint32_t);
    if (segment == 0) {
        SAR_TRY(sar_task_alloc(&op->task, 1, sizeof(struct partitioned), &partition->state));
        SAR_TRY(partition_input(op, layout, partition->state));
    }
    const struct partitioned *partitioned = partition->state;
    const unsigned long long *first = partitioned->first + (size_t)segment * layout->map.parts;
    if (op->task.device.exec == NULL)
        SAR_TRY(receive_until(op, (size_t)first[layout->map.parts]));
    for (uint32_t p = 0; p < layout->map.parts; p++)
        parts[p] = sar_spvec_slice(&desc, &partitioned->vec, (size_t)first[p], (size_t)first[p + 1]);
    return SAR_OK;
}

/* True if bitmaps of the index space, in which devices reduce, are small compared to the elements, and if
 * 32-bit numbers suffice to sort these. */
static bool is_dense_enough(const struct sar_active_call *op)
{
    const struct sar_agreed *agreed = &op->common.agreed;
    return agreed->call.dense_face ||
           ((double)agreed->desc.count <= SLOTS_PER_NNZ_MAX * agreed->data.nnz_max &&
            agreed->data.nnz_max <= UINT32_MAX);
}

/* A message costs several kernels on a device; each takes microseconds to launch. */
static bool exec_pays(const struct sar_active_call *op)
{
    double elements = op->common.agreed.data.nnz_max / op->common.agreed.machine.ranks;
    return elements >= (double)op->policy->config.cuda_least &&
           sar_agreed_allows_device(&op->common.agreed) && is_dense_enough(op);
}

bool sar_device_input_offer_parts(struct sar_active_call *op)
{
    bool use_exec = exec_pays(op), on_host = op->task.input.vec.index != NULL;
    if (!use_exec && (on_host || !op->args->sig.dense_face))
        return false;
    op->device.partition = (struct sar_device_partition){ get_parts, op, NULL };
    op->task.device.partition = &op->device.partition;
    if (use_exec) {
        sar_device_exec_open(&op->device.exec, &op->args->device.memory, op->task.memory.call_arena,
                             op->comm_state->memory.exec, PINNED_BLOCKS_MAX * op->args->device.block_bytes);
        op->task.device.exec = &op->device.exec;
        op->device.exec.cuda_aware = op->args->device.cuda_aware;
        if (op->args->device.cuda_aware)
            op->task.exchange.recv_allocator = &op->device.exec.blocks.allocator;
    }
    return true;
}

/* The caller's buffers may be host copies, if the plan has been part of a fusion: name the device's own. */
static enum sar_status pass_device_buffers(struct sar_active_call *op)
{
    struct sar_call_args *args = op->args;
    struct sar_dense_args *buffers = &op->task.args.buffers;
    buffers->sendbuf = args->sig.in_place ? MPI_IN_PLACE : args->device.copy[0].device;
    buffers->recvbuf = args->device.copy[1].device;
    return sar_host_copies_read(&args->device.memory, NULL, 0);
}

enum sar_status sar_device_input_expand(struct sar_active_call *op)
{
    struct sar_call_args *args = op->args;
    struct sar_pipeline_args pipeline = { input_copy(args)->device, args->device.copy[1].device,
                                          args->device.copy[1].bytes };
    if (args->device.direct)
        return pass_device_buffers(op);
    op->task.device.pipeline = &op->device.pipeline;
    return sar_host_pipeline_open(&op->device.pipeline, &args->device.memory, &pipeline,
                                  op->task.args.chunk_bytes);
}

void sar_device_input_release(struct sar_active_call *op)
{
    sar_device_exec_close(&op->device.exec);
    if (op->device.d2h.ctx.accelerator != NULL)
        sar_d2h_copy_close(&op->device.d2h);
    (void)sar_host_pipeline_close(&op->device.pipeline);
    sar_device_free_mask(&op->args->device.memory, &op->device.mask);
}
