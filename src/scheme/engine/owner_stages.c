/* SPDX-License-Identifier: BSD-3-Clause */
/* The stages of owner-based schemes: each step of the pipeline pushes one segment and pulls an earlier one.
 *
 * Each message is sent when it is encoded, or with those that other threads encode beside it. Parts of a
 * segment are encoded ahead while messages of the step before are in flight; the other parts, and all parts
 * of the first segment, right before they are sent. */

#include "device/exec.h"
#include "scheme/engine/owner_internal.h"
#include "vector/partition.h"

enum { EAGER_BYTES = 4096 }; /* every MPI library sends messages up to this size at once */

static enum sar_status partition_on_device(struct sar_task *task, uint32_t segment, struct sar_spvec *parts)
{
    const struct sar_owner *o = task->state;
    struct sar_partition_layout layout = { o->parts.map, o->parts.segments.equal, o->parts.segments.n,
                                           &task->report.hash };
    return task->device.partition->next_segment(task->device.partition, &layout, segment, parts);
}

static enum sar_status split(struct sar_task *task, uint32_t segment, struct sar_spvec *parts)
{
    const struct sar_owner *o = task->state;
    bool sliced = sar_columns_sliced(&o->parts.columns);
    if (o->parts.peers != NULL)
        return o->parts.peers->split(task, segment, parts);
    if (o->parts.is_range)
        return sar_range_parts_split(task, o->parts.bounds, parts);
    if (sliced)
        parts = o->push.rows[segment % 2];
    if (task->device.partition != NULL)
        return partition_on_device(task, segment, parts);
    return sliced ? sar_owner_split_rows(task, segment, parts) : sar_owner_split(task, segment, NULL, parts);
}

/* Returns the owner at a position of the sending order. It starts with the next rank, so that not all ranks
 * send to one rank at once; this rank's own part comes last. */
static int send_order(const struct sar_task *task, int position)
{
    return (task->comm->rank + 1 + position) % task->comm->ranks;
}

/* Makes the part of an owner, and adds it to the batch. */
static enum sar_status add_part(struct sar_task *task, uint32_t segment, int owner, size_t *n)
{
    struct sar_owner *o = task->state;
    struct sar_spvec *part = &o->push.parts[segment % 2][owner];
    if (!sar_owner_sends_to(task, owner))
        return SAR_OK;
    if (o->parts.peers != NULL)
        SAR_TRY(o->parts.peers->combine(task, segment, owner, part));
    else if (sar_columns_sliced(&o->parts.columns))
        SAR_TRY(sar_owner_gather_part(task, segment, owner));
    o->push.sent_values[owner] += part->nnz * sar_owner_slice(task, owner).len;
    o->batch[(*n)++] = (struct sar_task_part){
        .layout = sar_owner_part_layout(task, owner, segment),
        .vec = part,
        .message = owner == task->comm->rank ? NULL : &o->push.messages[segment % 2][owner],
    };
    return SAR_OK;
}

/* Encodes the next part in the order of sending, and with it those after it, if a loop over them pays. */
static enum sar_status encode_next(struct sar_task *task, uint32_t segment)
{
    struct sar_owner *o = task->state;
    size_t n = 0, together = 1;
    for (size_t i = 0; i < together && o->push.n_encoded < task->comm->ranks; i++) {
        size_t left = (size_t)(task->comm->ranks - o->push.n_encoded);
        SAR_TRY(add_part(task, segment, send_order(task, o->push.n_encoded++), &n));
        if (i == 0 && n == 1)
            together = sar_task_parts_together(task, &o->batch[0], left);
    }
    return sar_task_encode_parts(task, false, o->batch, n);
}

static enum sar_status prepare_push(struct sar_task *task, uint32_t segment)
{
    struct sar_owner *o = task->state;
    SAR_TRY(split(task, segment, o->push.parts[segment % 2]));
    o->push.n_encoded = 0;
    while (o->push.n_encoded < task->comm->ranks && !sar_task_progress(task))
        SAR_TRY(encode_next(task, segment));
    return SAR_OK;
}

static enum sar_status prepare_segment(struct sar_task *task, uint32_t segment)
{
    const struct sar_owner *o = task->state;
    return o->parts.pushes ? prepare_push(task, segment) : sar_owner_prepare_pull(task, segment);
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
        sar_exchange_fail(x,
                          sar_device_exec_wait_encoded(task->device.exec, sar_msg_payload(&messages[owner])));
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
    while (o->push.n_encoded <= last && x->status == SAR_OK)
        sar_exchange_fail(x, encode_next(task, o->step));
}

/* Decodes and reduces a segment from now on. */
static void begin_reduction(struct sar_owner *o, uint32_t segment)
{
    o->reduce.segment = segment;
    o->reduce.n_decoded = o->reduce.n_reduced = 0;
    o->reduce.partial.nnz = 0;
}

/* If segments are reduced in flight, that of the step before is still to be reduced. */
void sar_owner_post_push(struct sar_task *task)
{
    struct sar_owner *o = task->state;
    if (!o->parts.reduces_in_flight)
        begin_reduction(o, o->step);
    expect_parts(task);
    for (int position = 0; position < task->comm->ranks; position++) {
        int owner = send_order(task, position);
        encode_until(task, position);
        if (owner != task->comm->rank && sar_owner_sends_to(task, owner))
            send_part(task, owner);
    }
}

/* Returns the push message of a rank, or NULL if it has not arrived. In flight, those of the step before are
 * kept: o->step counts the steps that have been posted. */
static struct sar_msg *pushed_by(const struct sar_task *task, int rank)
{
    const struct sar_owner *o = task->state;
    if (o->reduce.segment + 1 < o->step)
        return &o->reduce.received[rank];
    return sar_exchange_has_arrived(&task->exchange, rank) ? &task->exchange.arrived[rank] : NULL;
}

/* Decodes push messages in rank order, up to the first that has not arrived. */
static enum sar_status decode_ready(struct sar_task *task)
{
    struct sar_owner *o = task->state;
    int rank = task->comm->rank;
    size_t n = 0;
    struct sar_wire_layout layout = sar_owner_part_layout(task, rank, o->reduce.segment);
    for (int r; (r = sar_owner_source(task, o->reduce.n_decoded)) >= 0; o->reduce.n_decoded++) {
        struct sar_spvec *vec = &o->reduce.decoded[o->reduce.n_decoded];
        struct sar_msg *message = r == rank ? NULL : pushed_by(task, r);
        if (r == rank)
            *vec = o->push.parts[o->reduce.segment % 2][rank];
        else if (message == NULL)
            break;
        else
            o->batch[n++] = (struct sar_task_part){ .layout = layout, .vec = vec, .message = message };
    }
    return sar_task_decode_parts(task, o->batch, n);
}

/* Lists the partial sums and the decoded parts that are not in them, in o->inputs; returns their number. */
static size_t list_summands(struct sar_owner *o)
{
    size_t n = 0;
    if (o->reduce.n_reduced > 0)
        o->inputs[n++] = o->reduce.partial;
    for (int r = o->reduce.n_reduced; r < o->reduce.n_decoded; r++)
        o->inputs[n++] = o->reduce.decoded[r];
    return n;
}

/* Reduces the decoded parts that are not in the partial sums, and adds them to these. */
static enum sar_status reduce_decoded(struct sar_task *task, const struct sar_vec_desc *desc)
{
    struct sar_owner *o = task->state;
    if (o->reduce.n_reduced == o->reduce.n_decoded)
        return SAR_OK;
    size_t n = list_summands(o);
    o->reduce.n_reduced = o->reduce.n_decoded;
    return sar_task_reduce(task, desc, o->inputs, n, &o->reduce.partial);
}

/* Returns true if decoded parts should be reduced before the others arrive. Not if absent elements count as
 * zeros: partial sums do not tell which ranks lacked an element. Not for 16-bit types: rounding would
 * depend on arrival order. Not before the decoded parts have as many elements as the partial sums, so that
 * all reductions together take at most twice the work of one. Not the last parts of a relayed pull: the sums
 * must be in the memory of the next step, which lasts until they are written to the output. Not where it is
 * done in flight anyway. */
static bool should_reduce_early(const struct sar_task *task, const struct sar_vec_desc *desc)
{
    const struct sar_owner *o = task->state;
    size_t nnz = 0;
    if (desc->absent_is_zero || desc->kernels->wide != NULL || o->parts.reduces_in_flight)
        return false;
    if (o->relay.limit > 0 && sar_owner_source(task, o->reduce.n_decoded) < 0)
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
    if (!o->parts.pushes)
        return SAR_OK;
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

enum sar_status sar_owner_begin(struct sar_task *task)
{
    struct sar_owner *o = task->state;
    size_t ranks = (size_t)task->comm->ranks;
    for (int parity = 0; parity < 2; parity++) {
        SAR_TRY(sar_task_alloc(task, ranks, sizeof *o->push.parts[0], &o->push.parts[parity]));
        if (sar_columns_sliced(&o->parts.columns) && o->parts.peers == NULL)
            SAR_TRY(sar_task_alloc(task, ranks, sizeof *o->push.rows[0], &o->push.rows[parity]));
        SAR_TRY(sar_task_alloc(task, ranks, sizeof *o->push.messages[0], &o->push.messages[parity]));
        SAR_TRY(sar_task_alloc(task, ranks, sizeof *o->pull.received[0], &o->pull.received[parity]));
    }
    SAR_TRY(sar_task_alloc(task, ranks, sizeof *o->inputs, &o->inputs));
    SAR_TRY(sar_task_alloc(task, ranks, sizeof *o->batch, &o->batch));
    SAR_TRY(sar_task_alloc(task, ranks, sizeof *o->reduce.decoded, &o->reduce.decoded));
    if (o->parts.reduces_in_flight)
        SAR_TRY(sar_task_alloc(task, ranks, sizeof *o->reduce.received, &o->reduce.received));
    SAR_TRY(sar_task_alloc(task, ranks, sizeof *o->push.sent_values, &o->push.sent_values));
    SAR_TRY(sar_task_alloc(task, ranks, sizeof *o->pull.received_values, &o->pull.received_values));
    if (o->relay.limit > 0)
        SAR_TRY(sar_owner_relay_begin(task));
    if (o->parts.is_range && o->parts.bounds == NULL)
        SAR_TRY(sar_range_parts_bounds(task, &o->parts.map, &o->parts.bounds));
    sar_task_next_step_arena(task);
    return prepare_segment(task, 0);
}

/* Encodes the sums for receivers that know their indices: those with slices of the same rows. */
static enum sar_status encode_values(struct sar_task *task, const struct sar_wire_layout *layout,
                                     uint32_t segment)
{
    struct sar_owner *o = task->state;
    const struct sar_spvec *sums = &o->reduce.sums[sar_owner_sums_index(segment)];
    int number = sar_owner_number(task, task->comm->rank),
        group = sar_columns_group(&o->parts.columns, number);
    struct sar_owner_range owners =
        sar_columns_owners(&o->parts.columns, group, sar_columns_share(&o->parts.columns, number));
    if (owners.end - owners.first == 1)
        return SAR_OK;
    return sar_task_encode_values(task, *layout, sums, &o->pull.index_hash[sar_owner_sums_index(segment)],
                                  &o->pull.values[segment % 2]);
}

/* Encodes the sums of a segment. They go to all sources of their elements; this rank is always one of
 * them. */
static enum sar_status encode_sums(struct sar_task *task, uint32_t segment, struct sar_spvec *sums)
{
    struct sar_owner *o = task->state;
    struct sar_wire_layout layout = sar_owner_part_layout(task, task->comm->rank, segment);
    bool has_receivers = sar_owner_source(task, 1) >= 0, sliced = sar_columns_sliced(&o->parts.columns);
    bool sends_lists = has_receivers && (!sliced || o->parts.columns.groups > 1);
    SAR_TRY(sar_task_encode(task, true, layout, sums,
                            sends_lists ? &o->pull.outgoing[sar_owner_sums_index(segment)] : NULL));
    return sliced ? encode_values(task, &layout, segment) : SAR_OK;
}

/* Reduces and encodes in one pass, if that is faster; otherwise the message stays empty. */
static enum sar_status sum_encoded(struct sar_task *task, uint32_t segment, struct sar_spvec *sums,
                                   struct sar_msg *message)
{
    struct sar_owner *o = task->state;
    message->buffer = NULL;
    SAR_TRY(decode_ready(task));
    if (o->reduce.n_reduced == o->reduce.n_decoded || sar_owner_source(task, 1) < 0 ||
        sar_columns_sliced(&o->parts.columns))
        return SAR_OK;
    struct sar_wire_layout layout = sar_owner_part_layout(task, task->comm->rank, segment);
    struct sar_vec_desc desc = sar_owner_part_desc(task, task->comm->rank, segment);
    return sar_task_reduce_encoded(task, &layout, &desc, o->inputs, list_summands(o), &o->reduce.clustered,
                                   sums, message);
}

/* Reduces the push of the step before, and encodes the sums. */
static enum sar_status reduce_segment(struct sar_task *task, uint32_t step)
{
    struct sar_owner *o = task->state;
    if (!o->parts.pushes || step == 0 || step > o->parts.segments.n)
        return SAR_OK;
    int at = sar_owner_sums_index(step - 1);
    struct sar_spvec *sums = &o->reduce.sums[at];
    if (!o->parts.pulls)
        return sar_owner_sum_push(task, sums);
    SAR_TRY(sum_encoded(task, step - 1, sums, &o->pull.outgoing[at]));
    if (o->pull.outgoing[at].buffer == NULL) {
        SAR_TRY(sar_owner_sum_push(task, sums));
        SAR_TRY(encode_sums(task, step - 1, sums));
    }
    return o->relay.limit > 0 ? sar_owner_relay_defer(task, step - 1) : SAR_OK;
}

enum sar_status sar_owner_reduce(struct sar_task *task)
{
    struct sar_owner *o = task->state;
    sar_task_next_step_arena(task);
    SAR_TRY(sar_owner_keep_messages(task));
    return o->parts.reduces_in_flight ? SAR_OK : reduce_segment(task, o->step);
}

void sar_owner_propagate_failure(struct sar_task *task, enum sar_owner_failure failure)
{
    struct sar_owner *o = task->state;
    struct sar_exchange *x = &task->exchange;
    struct sar_msg_key key = { .fingerprint = task->args.fingerprint, .epoch = task->args.epoch };
    o->failure = failure;
    if (failure == SAR_OWNER_SHM_RETRY)
        x->status = SAR_SHM_RETRY;
    else if (failure == SAR_OWNER_FAILURE && (x->status == SAR_OK || x->status == SAR_SHM_RETRY))
        x->status = SAR_PEER_FAILED;
    key.user_word = (uint64_t)failure;
    if (o->step == 0)
        sar_msg_failure(&key, &x->failure);
}

void sar_owner_collect_failures(struct sar_task *task)
{
    const struct sar_owner *o = task->state;
    uint64_t worst = (uint64_t)o->failure;
    struct sar_msg_header header;
    for (int r, i = 0; (r = sar_owner_source(task, i)) >= 0; i++) {
        int channel = sar_owner_channel(task, SAR_OWNER_PUSH, r);
        const struct sar_msg *received = &task->exchange.arrived[channel];
        if (received->buffer != NULL && received->bytes >= SAR_MSG_HEADER_BYTES &&
            sar_msg_read_header(received->buffer, &header) && header.wire == SAR_MSG_NO_WIRE &&
            header.user_word > worst)
            worst = header.user_word;
    }
    sar_owner_propagate_failure(task, worst < SAR_OWNER_FAILURE ? (enum sar_owner_failure)worst
                                                                : SAR_OWNER_FAILURE);
}

void sar_owner_post(struct sar_task *task)
{
    struct sar_owner *o = task->state;
    uint32_t lag = sar_owner_pull_lag(o);
    if (o->step == 1 && task->exchange.status != SAR_OK)
        sar_owner_collect_failures(task);
    if (o->parts.pushes && o->step < o->parts.segments.n)
        sar_owner_post_push(task);
    if (o->parts.pulls && o->step >= lag && o->step - lag < o->parts.segments.n)
        sar_owner_post_pull(task, o->step - lag);
    if (o->relay.limit > 0 && o->step > 1)
        sar_owner_post_relays(task, o->step - 2);
    task->repeat_stage = o->step + 2 < o->parts.segments.n + sar_owner_output_lag(o);
    o->step++;
}

static enum sar_status write_output(struct sar_task *task, uint32_t segment)
{
    const struct sar_owner *o = task->state;
    if (!o->parts.pulls)
        return sar_owner_append_sums(task, segment);
    return sar_columns_sliced(&o->parts.columns) ? sar_owner_write_rows(task, segment)
                                                 : sar_owner_write_output(task, segment);
}

/* sar_owner_post has already incremented o->step. Long messages begin to move when their receiver first looks
 * for them: the output comes first, since it is written in short pieces of work. The push comes last: parts
 * that are not encoded when all messages are complete are sent one by one. */
enum sar_status sar_owner_overlap(struct sar_task *task)
{
    struct sar_owner *o = task->state;
    uint32_t step = o->step - 1, lag = sar_owner_output_lag(o);
    if (step >= lag && o->parts.pulls)
        SAR_TRY(write_output(task, step - lag));
    if (o->parts.reduces_in_flight) {
        SAR_TRY(reduce_segment(task, step));
        if (step < o->parts.segments.n)
            begin_reduction(o, step);
    }
    if (step >= lag && !o->parts.pulls)
        SAR_TRY(write_output(task, step - lag));
    return step + 1 < o->parts.segments.n ? prepare_segment(task, step + 1) : SAR_OK;
}

/* Owners that this rank does not send to have 0 values. */
static double imbalance(const struct sar_task *task, const size_t *values)
{
    const struct sar_owner *o = task->state;
    size_t largest = 0, sum = 0;
    for (int r = 0; r < task->comm->ranks; r++) {
        largest = values[r] > largest ? values[r] : largest;
        sum += values[r];
    }
    return sum == 0 ? 1 : (double)largest * o->parts.n_targets / (double)sum;
}

enum sar_status sar_owner_finish(struct sar_task *task)
{
    struct sar_owner *o = task->state;
    if (!o->parts.pulls)
        sar_task_next_step_arena(task);
    SAR_TRY(sar_owner_keep_messages(task));
    if (!o->parts.pulls)
        SAR_TRY(reduce_segment(task, o->step));
    SAR_TRY(write_output(task, o->parts.segments.n - 1));
    if (o->parts.pushes)
        task->report.push_imbalance = imbalance(task, o->push.sent_values);
    if (o->parts.pulls)
        task->report.pull_imbalance = imbalance(task, o->pull.received_values);
    return o->has_common_index ? SAR_COMMON_INDEX : SAR_OK;
}
