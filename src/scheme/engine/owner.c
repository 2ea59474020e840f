/* SPDX-License-Identifier: BSD-3-Clause */
/* The stages of owner-based schemes: each step of the pipeline pushes one segment and pulls the one
 * before.
 *
 * Each message is sent when it is encoded. Parts of a segment are encoded ahead while messages of the step
 * before are in flight; the other parts, and all parts of the first segment, when it is their turn to be
 * sent. */

#include "scheme/engine/owner.h"

#include <math.h>
#include <string.h>

#include "device/exec.h"
#include "vector/partition.h"
#include "vector/reduce.h"
#include "vector/spvec.h"

enum { EAGER_BYTES = 4096 }; /* every MPI library sends messages up to this size at once */

static const double RESERVE_FACTOR = 1.05; /* over the predicted elements of the result */

/* Classes of channels: one for each direction, so that one step may have a push and a pull. */
enum channel_class { PUSH, PULL };

static int channel_of(const struct sar_task *task, enum channel_class channel_class, int rank)
{
    return (int)channel_class * task->comm->ranks + rank;
}

/* Functions of struct sar_owner_peers, with or without peers. */
static bool sends_to(const struct sar_task *task, int owner)
{
    const struct sar_owner *o = task->state;
    return o->parts.peers == NULL || o->parts.peers->sends_to(task, owner);
}

static int source_of(const struct sar_task *task, int i)
{
    const struct sar_owner *o = task->state;
    if (o->parts.peers != NULL)
        return o->parts.peers->source(task, i);
    return i < task->comm->ranks ? i : -1;
}

void sar_owner_open(struct sar_task *task, struct sar_partition_map map, const struct sar_owner_peers *peers)
{
    struct sar_owner *o = task->state;
    double share = 1.0 / task->comm->ranks, group = peers == NULL ? 1 : task->agreed->topo.node_ranks;
    struct sar_owner_cost_terms terms = {
        share, share, task->preferred_wire[0], task->preferred_wire[1], map, (double)map.slots_max, group
    };
    struct sar_owner_estimate estimate = sar_owner_estimate(task->agreed, &terms);
    bool is_range = map.kind == SAR_PARTITION_RANGE;
    o->parts = (struct sar_owner_parts){ .map = map,
                                         .peers = peers,
                                         .is_range = is_range && peers == NULL,
                                         .segment_slots = estimate.segment_slots,
                                         .segments = (uint32_t)estimate.segments };
    for (int r = 0; r < task->comm->ranks; r++)
        o->parts.n_targets += sends_to(task, r);
    task->exchange.throttle = estimate.throttle;
    task->result.early_write = peers == NULL && o->parts.segments > 1;
    task->report.partition = sar_partition_names[map.kind];
    task->report.grain = is_range ? 0 : 1 << map.grain_shift;
}

static uint64_t slots_of(const struct sar_owner *o, int rank, uint32_t segment)
{
    if (o->parts.is_range)
        return o->parts.bounds[rank + 1] - o->parts.bounds[rank];
    uint64_t slots = sar_partition_map_slots(&o->parts.map, (uint32_t)rank),
             before = segment * o->parts.segment_slots;
    uint64_t rest = slots > before ? slots - before : 0;
    return rest < o->parts.segment_slots ? rest : o->parts.segment_slots;
}

static struct sar_wire_layout part_layout(const struct sar_task *task, int rank, uint32_t segment)
{
    uint64_t slots = slots_of(task->state, rank, segment);
    return sar_agreed_layout(task->agreed, slots, sar_index_size(slots));
}

struct sar_vec_desc sar_owner_part_desc(const struct sar_task *task, int rank, uint32_t segment)
{
    struct sar_wire_layout layout = part_layout(task, rank, segment);
    struct sar_vec_desc desc = sar_task_desc(task);
    desc.count = layout.slots;
    desc.index_size = layout.index_size;
    return desc;
}

static struct sar_partition_map segment_map(const struct sar_owner *o, uint32_t segment)
{
    struct sar_partition_map map = o->parts.map;
    map.slot_base = segment * o->parts.segment_slots;
    return map;
}

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
    struct sar_partition_map map = segment_map(o, segment);
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
    if (!sends_to(task, owner))
        return SAR_OK;
    if (o->parts.peers != NULL)
        SAR_TRY(o->parts.peers->combine(task, segment, owner, part));
    o->push.nnz[owner] += part->nnz;
    struct sar_msg *message = owner == task->comm->rank ? NULL : &o->push.messages[segment % 2][owner];
    return sar_task_encode(task, false, part_layout(task, owner, segment), part, message);
}

static enum sar_status prepare_push(struct sar_task *task, uint32_t segment)
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
    for (int r, i = 0; (r = source_of(task, i)) >= 0; i++)
        if (r != task->comm->rank)
            sar_exchange_expect(&task->exchange, channel_of(task, PUSH, r));
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
    sar_exchange_send(x, channel_of(task, PUSH, owner), messages == NULL ? NULL : &messages[owner]);
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
        if (owner != task->comm->rank && sends_to(task, owner))
            send_part(task, owner);
    }
}

/* Decodes push messages in rank order, up to the first that has not arrived. */
static enum sar_status decode_ready(struct sar_task *task)
{
    struct sar_owner *o = task->state;
    int rank = task->comm->rank;
    struct sar_wire_layout layout = part_layout(task, rank, o->reduce.segment);
    for (int r; (r = source_of(task, o->reduce.n_decoded)) >= 0; o->reduce.n_decoded++) {
        if (r == rank)
            o->reduce.decoded[o->reduce.n_decoded] = o->push.parts[o->reduce.segment % 2][rank];
        else if (sar_exchange_has_arrived(&task->exchange, r))
            SAR_TRY(sar_task_decode(task, layout, &task->exchange.arrived[r],
                                    &o->reduce.decoded[o->reduce.n_decoded]));
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

static void save_pulled(struct sar_task *task)
{
    struct sar_owner *o = task->state;
    const struct sar_msg *first = &task->exchange.arrived[channel_of(task, PULL, 0)];
    memcpy(o->pull.received, first, (size_t)task->comm->ranks * sizeof *o->pull.received);
}

/* Sends the sums to all sources of their elements, to the next rank first as in the push. */
static void post_pull(struct sar_task *task, const struct sar_msg *sums)
{
    int ranks = task->comm->ranks, rank = task->comm->rank, n = 0, self = 0;
    for (int r = 0; r < ranks; r++)
        if (r != rank && sends_to(task, r))
            sar_exchange_expect(&task->exchange, channel_of(task, PULL, r));
    for (int r; (r = source_of(task, n)) >= 0; n++)
        self = r == rank ? n : self;
    for (int i = 1; i < n; i++) {
        int r = source_of(task, (self + i) % n);
        sar_exchange_send(&task->exchange, channel_of(task, PULL, r), sums);
    }
}

/* Makes room for n more elements of the result. The first call reserves memory for the predicted whole
 * result. */
static enum sar_status reserve_more(struct sar_task *task, size_t n)
{
    struct sar_spvec *out = &task->result.vec;
    size_t wanted = out->nnz + n;
    const struct sar_owner *o = task->state;
    if (o->parts.segments > 1 && out->index == NULL) {
        double share = (double)o->parts.n_targets / task->comm->ranks;
        double expected = sar_agreed_union_nnz(task->agreed, task->comm->ranks) * share * RESERVE_FACTOR;
        expected = fmin(expected, (double)task->agreed->desc.count);
        wanted = expected > (double)wanted ? (size_t)expected : wanted;
    }
    return sar_task_reserve(task, wanted, out);
}

/* The merge visits blocks or slots. */
static struct sar_span_work merge_work(const struct sar_owner *o, const struct sar_partition_map *map,
                                       size_t nnz, size_t element_size)
{
    uint64_t rest = map->slots_max - map->slot_base,
             slots = (rest < o->parts.segment_slots ? rest : o->parts.segment_slots) * map->parts;
    bool blocks = sar_partition_merges_by_block(map, slots / map->parts >> map->grain_shift, nnz);
    struct sar_span_work work =
        sar_span_work_make("assemble", nnz, element_size, blocks ? slots >> map->grain_shift : slots);
    work.format = blocks ? "blocks" : "runs";
    return work;
}

/* Merges the parts of a segment, and appends them to the result. */
static enum sar_status append(struct sar_task *task, const struct sar_partition_map *map)
{
    struct sar_owner *o = task->state;
    const struct sar_vec_desc *desc = &task->agreed->desc;
    struct sar_span span = sar_task_span(task, "deliver");
    SAR_TRY(reserve_more(task, sar_reduce_max_nnz(desc, o->inputs, map->parts)));
    struct sar_spvec *out = &task->result.vec;
    struct sar_spvec end = { (unsigned char *)out->index + out->nnz * desc->index_size,
                             (unsigned char *)out->value + out->nnz * desc->element_size, 0 };
    SAR_TRY(sar_partition_merge(map, desc, o->inputs, task->memory.step_arena, &end));
    out->nnz += end.nnz;
    span.work = merge_work(o, map, end.nnz, desc->element_size);
    sar_task_span_end(task, &span);
    return SAR_OK;
}

/* Parts of owners that this rank does not send to are empty. */
static enum sar_status write_output(struct sar_task *task, uint32_t segment)
{
    struct sar_owner *o = task->state;
    struct sar_partition_map map = segment_map(o, segment);
    for (int r = 0; r < task->comm->ranks; r++) {
        o->inputs[r] = (struct sar_spvec){ NULL, NULL, 0 };
        if (!sends_to(task, r))
            continue;
        sar_task_progress(task);
        if (r == task->comm->rank)
            o->inputs[r] = o->reduce.sums[segment % 2];
        else
            SAR_TRY(
                sar_task_decode(task, part_layout(task, r, segment), &o->pull.received[r], &o->inputs[r]));
        o->pull.nnz[r] += o->inputs[r].nnz;
    }
    if (task->device.exec != NULL)
        return sar_task_add_output_parts(task, o->parts.segments, &map, o->inputs);
    return o->parts.is_range ? sar_range_parts_write_output(task, o->parts.bounds, o->inputs)
                             : append(task, &map);
}

enum sar_status sar_owner_begin(struct sar_task *task)
{
    struct sar_owner *o = task->state;
    size_t ranks = (size_t)task->comm->ranks;
    for (int parity = 0; parity < 2; parity++) {
        SAR_TRY(sar_task_alloc(task, ranks, sizeof *o->push.parts[0], &o->push.parts[parity]));
        SAR_TRY(sar_task_alloc(task, ranks, sizeof *o->push.messages[0], &o->push.messages[parity]));
    }
    SAR_TRY(sar_task_alloc(task, ranks, sizeof *o->pull.received, &o->pull.received));
    SAR_TRY(sar_task_alloc(task, ranks, sizeof *o->inputs, &o->inputs));
    SAR_TRY(sar_task_alloc(task, ranks, sizeof *o->reduce.decoded, &o->reduce.decoded));
    SAR_TRY(sar_task_alloc(task, ranks, sizeof *o->push.nnz, &o->push.nnz));
    SAR_TRY(sar_task_alloc(task, ranks, sizeof *o->pull.nnz, &o->pull.nnz));
    if (o->parts.is_range && o->parts.bounds == NULL)
        SAR_TRY(sar_range_parts_bounds(task, &o->parts.map, &o->parts.bounds));
    sar_task_next_step_arena(task);
    return prepare_push(task, 0);
}

/* The sums go to all sources of their elements; this rank is always one of them. */
enum sar_status sar_owner_reduce(struct sar_task *task)
{
    struct sar_owner *o = task->state;
    sar_task_next_step_arena(task);
    save_pulled(task);
    if (o->step == 0)
        return SAR_OK;
    uint32_t segment = o->step - 1;
    struct sar_spvec *sums = &o->reduce.sums[segment % 2];
    struct sar_msg *message = source_of(task, 1) >= 0 ? &o->pull.outgoing[segment % 2] : NULL;
    SAR_TRY(sar_owner_sum_push(task, sums));
    return sar_task_encode(task, true, part_layout(task, task->comm->rank, segment), sums, message);
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

/* Reads the failures that push messages report, and adopts the worst. */
static void collect_failures(struct sar_task *task)
{
    const struct sar_owner *o = task->state;
    uint64_t worst = (uint64_t)o->failure;
    struct sar_msg_header header;
    for (int r, i = 0; (r = source_of(task, i)) >= 0; i++) {
        int channel = channel_of(task, PUSH, r);
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
    if (o->step == 1 && task->exchange.status != SAR_OK)
        collect_failures(task);
    if (o->step < o->parts.segments)
        sar_owner_post_push(task);
    if (o->step > 0)
        post_pull(task, &o->pull.outgoing[(o->step - 1) % 2]);
    task->repeat_stage = o->step < o->parts.segments;
    o->step++;
}

/* sar_owner_post has already incremented o->step. */
enum sar_status sar_owner_overlap(struct sar_task *task)
{
    struct sar_owner *o = task->state;
    uint32_t step = o->step - 1;
    if (step + 1 < o->parts.segments)
        SAR_TRY(prepare_push(task, step + 1));
    return step < 2 ? SAR_OK : write_output(task, step - 2);
}

/* Owners that this rank does not send to have 0 elements. */
static double imbalance(const struct sar_task *task, const size_t *nnz)
{
    const struct sar_owner *o = task->state;
    size_t largest = 0, sum = 0;
    for (int r = 0; r < task->comm->ranks; r++) {
        largest = nnz[r] > largest ? nnz[r] : largest;
        sum += nnz[r];
    }
    return sum == 0 ? 1 : (double)largest * o->parts.n_targets / (double)sum;
}

enum sar_status sar_owner_finish(struct sar_task *task)
{
    struct sar_owner *o = task->state;
    save_pulled(task);
    SAR_TRY(write_output(task, o->parts.segments - 1));
    task->report.push_imbalance = imbalance(task, o->push.nnz);
    task->report.pull_imbalance = imbalance(task, o->pull.nnz);
    return SAR_OK;
}
