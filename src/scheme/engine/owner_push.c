/* SPDX-License-Identifier: BSD-3-Clause */
/* The push of owner-based schemes: from a rank's elements to the sums of its part.
 *
 * Each message is sent when it is encoded. Parts of a segment are encoded ahead while messages of the step
 * before are in flight; the other parts, and all parts of the first segment, when it is their turn to be
 * sent. */

#include "scheme/engine/device_task.h"
#include "scheme/engine/owner_internal.h"
#include "vector/spvec.h"
#include "vector/partition.h"

enum { EAGER_BYTES = 4096 }; /* every MPI library sends messages up to this size at once */

static enum sar_status partition_on_device(struct sar_task *task, uint32_t segment, struct sar_spvec *parts)
{
    const struct sar_owner *o = task->state;
    struct sar_partition_layout layout = { o->parts.map, o->parts.segment_slots, o->parts.segments };
    return task->device.partition->next_segment(task->device.partition, &layout, segment, parts);
}

enum sar_status sar_owner_split(struct sar_task *task, uint32_t segment, const struct sar_spvec *memory,
                                struct sar_spvec *parts)
{
    struct sar_owner *o = task->state;
    const struct sar_vec_desc *desc = &task->agreed->desc;
    struct sar_partition_map map = sar_owner_segment_map(o, segment);
    struct sar_span span = sar_task_span(task, "partition");
    uint64_t limit = sar_mul_saturate((segment + 1) * o->parts.segment_slots, map.parts);
    size_t from = o->push.next;
    o->push.next = segment + 1 == o->parts.segments
                       ? task->input.vec.nnz
                       : sar_spvec_lower_bound(desc, &task->input.vec, from, limit);
    struct sar_spvec slice = sar_spvec_slice(desc, &task->input.vec, from, o->push.next);
    SAR_TRY(memory == NULL ? sar_partition_split(&map, desc, &slice, task->memory.step_arena, parts)
                           : sar_partition_into(&map, desc, &slice, task->memory.step_arena, memory, parts));
    span.work = sar_span_work_make("partition", slice.nnz, desc->element_size, 0);
    sar_task_span_end(task, &span);
    return SAR_OK;
}

static enum sar_status split(struct sar_task *task, uint32_t segment, struct sar_spvec *parts)
{
    const struct sar_owner *o = task->state;
    if (o->parts.peers != NULL)
        return o->parts.peers->split(task, segment, parts);
    if (o->parts.is_range)
        return sar_range_parts_split(task, o->parts.bounds, parts);
    return task->device.partition != NULL ? partition_on_device(task, segment, parts)
                                          : sar_owner_split(task, segment, NULL, parts);
}

/* Returns the owner at a position of the sending order. It starts with the next rank, so that not all ranks
 * send to one rank at once; this rank's own part comes last. */
static int send_order(const struct sar_task *task, int position)
{
    return (task->comm->rank + 1 + position) % task->comm->ranks;
}

static enum sar_status encode_part(struct sar_task *task, uint32_t segment, int owner)
{
    struct sar_owner *o = task->state;
    struct sar_spvec *part = &o->push.parts[segment % 2][owner];
    if (!sar_owner_sends_to(task, owner))
        return SAR_OK;
    if (o->parts.peers != NULL)
        SAR_TRY(o->parts.peers->combine(task, segment, owner, part));
    o->push.nnz[owner] += part->nnz;
    struct sar_msg *message = owner == task->comm->rank ? NULL : &o->push.messages[segment % 2][owner];
    return sar_task_encode(task, false, sar_owner_part_layout(task, owner, segment), part, message);
}

enum sar_status sar_owner_prepare_push(struct sar_task *task, uint32_t segment)
{
    struct sar_owner *o = task->state;
    SAR_TRY(split(task, segment, o->push.parts[segment % 2]));
    for (o->push.n_encoded = 0; o->push.n_encoded < task->comm->ranks && !sar_task_progress(task);
         o->push.n_encoded++)
        SAR_TRY(encode_part(task, segment, send_order(task, o->push.n_encoded)));
    return SAR_OK;
}

static void expect_parts(struct sar_task *task)
{
    for (int r, i = 0; (r = sar_owner_source(task, i)) >= 0; i++)
        if (r != task->comm->rank)
            sar_exchange_expect(&task->exchange, sar_owner_channel(task, SAR_OWNER_PUSH, r));
}

/* Progress after each long message: MPI sends it in several steps. */
static void send_part(struct sar_task *task, int owner)
{
    const struct sar_owner *o = task->state;
    const struct sar_msg *messages = o->push.messages[o->step % 2];
    struct sar_exchange *x = &task->exchange;
    if (task->device.exec != NULL && x->status == SAR_OK)
        sar_exchange_fail(x, sar_device_task_wait_message(task, &messages[owner]));
    sar_exchange_send(x, sar_owner_channel(task, SAR_OWNER_PUSH, owner),
                      messages == NULL ? NULL : &messages[owner]);
    if (x->status == SAR_OK && messages[owner].bytes > EAGER_BYTES)
        sar_task_progress(task);
}

/* Encodes parts up to a position of the sending order; for a device one more, encoded while it copies this
 * one. */
static void encode_until(struct sar_task *task, int position)
{
    struct sar_owner *o = task->state;
    struct sar_exchange *x = &task->exchange;
    int last = task->device.exec != NULL && position + 1 < task->comm->ranks ? position + 1 : position;
    for (; o->push.n_encoded <= last && x->status == SAR_OK; o->push.n_encoded++)
        sar_exchange_fail(x, encode_part(task, o->step, send_order(task, o->push.n_encoded)));
}

void sar_owner_post_push(struct sar_task *task)
{
    struct sar_owner *o = task->state;
    o->reduce.segment = o->step;
    o->reduce.n_decoded = o->reduce.n_reduced = 0;
    o->reduce.partial.nnz = 0;
    expect_parts(task);
    for (int position = 0; position < task->comm->ranks; position++) {
        int owner = send_order(task, position);
        encode_until(task, position);
        if (owner != task->comm->rank && sar_owner_sends_to(task, owner))
            send_part(task, owner);
    }
}

/* Decodes push messages in rank order, up to the first that has not arrived. */
static enum sar_status decode_ready(struct sar_task *task)
{
    struct sar_owner *o = task->state;
    int rank = task->comm->rank;
    struct sar_wire_layout layout = sar_owner_part_layout(task, rank, o->reduce.segment);
    for (int r; (r = sar_owner_source(task, o->reduce.n_decoded)) >= 0; o->reduce.n_decoded++) {
        if (r == rank)
            o->reduce.decoded[o->reduce.n_decoded] = o->push.parts[o->reduce.segment % 2][rank];
        else if (sar_exchange_has_arrived(&task->exchange, r))
            SAR_TRY(sar_task_decode(task, layout, r, &o->reduce.decoded[o->reduce.n_decoded]));
        else
            break;
    }
    return SAR_OK;
}

/* Reduces the decoded parts that are not in the partial sums, and adds them to these. */
static enum sar_status reduce_decoded(struct sar_task *task, const struct sar_vec_desc *desc)
{
    struct sar_owner *o = task->state;
    size_t n = 0;
    if (o->reduce.n_reduced == o->reduce.n_decoded)
        return SAR_OK;
    if (o->reduce.n_reduced > 0)
        o->inputs[n++] = o->reduce.partial;
    for (int r = o->reduce.n_reduced; r < o->reduce.n_decoded; r++)
        o->inputs[n++] = o->reduce.decoded[r];
    o->reduce.n_reduced = o->reduce.n_decoded;
    return sar_task_reduce(task, desc, o->inputs, n, &o->reduce.partial);
}

/* Returns true if decoded parts should be reduced before the others arrive. Not if absent elements count as
 * zeros: partial sums do not tell which ranks lacked an element. Not for 16-bit types: rounding would
 * depend on arrival order. Not before the decoded parts have as many elements as the partial sums, so that
 * all reductions together take at most twice the work of one. */
static bool should_reduce_early(const struct sar_task *task, const struct sar_vec_desc *desc)
{
    const struct sar_owner *o = task->state;
    size_t nnz = 0;
    if (desc->absent_is_zero || desc->kernels->wide != NULL)
        return false;
    for (int r = o->reduce.n_reduced; r < o->reduce.n_decoded; r++)
        nnz += o->reduce.decoded[r].nnz;
    return task->agreed->topo.nodes > 1 &&
           o->reduce.n_decoded - o->reduce.n_reduced + (o->reduce.n_reduced > 0) > 1 &&
           nnz >= o->reduce.partial.nnz;
}

enum sar_status sar_owner_on_arrival(struct sar_task *task)
{
    struct sar_owner *o = task->state;
    int before = o->reduce.n_decoded;
    SAR_TRY(decode_ready(task));
    struct sar_vec_desc desc = sar_owner_part_desc(task, task->comm->rank, o->reduce.segment);
    return o->reduce.n_decoded > before && should_reduce_early(task, &desc) ? reduce_decoded(task, &desc)
                                                                            : SAR_OK;
}

/* A -0.0 in a late part invalidates the partial sums, see sar_task_desc. */
enum sar_status sar_owner_sum_push(struct sar_task *task, struct sar_spvec *sums)
{
    struct sar_owner *o = task->state;
    SAR_TRY(decode_ready(task));
    struct sar_vec_desc desc = sar_owner_part_desc(task, task->comm->rank, o->reduce.segment);
    if (desc.absent_is_zero)
        o->reduce.n_reduced = 0;
    SAR_TRY(reduce_decoded(task, &desc));
    *sums = o->reduce.partial;
    return SAR_OK;
}
