/* SPDX-License-Identifier: BSD-3-Clause */
/* The pull of owner-based schemes: from the sums of all parts to the result. */

#include <string.h>

#include "scheme/engine/owner_internal.h"
#include "vector/merge_bitmaps.h"
#include "vector/partition.h"
#include "vector/reduce.h"

enum { BITMAP_SLOTS_PER_ELEMENT = 48 /* of sparser parts, lists of slots are merged faster */ };

static void keep(const struct sar_task *task, enum sar_owner_channel_class channel_class, struct sar_msg *to)
{
    memcpy(to, &task->exchange.arrived[sar_owner_channel(task, channel_class, 0)],
           (size_t)task->comm->ranks * sizeof *to);
}

/* o->step counts the steps that have been posted: the last one pushed segment o->step - 1. */
enum sar_status sar_owner_keep_messages(struct sar_task *task)
{
    struct sar_owner *o = task->state;
    uint32_t lag = sar_owner_pull_lag(o), pulled = o->step - 1 - lag;
    if (o->reduce.received != NULL && o->step > 0 && o->step <= o->parts.segments.n)
        keep(task, SAR_OWNER_PUSH, o->reduce.received);
    if (o->relay.limit > 0 && o->step > 2)
        SAR_TRY(sar_owner_relay_collect(task, pulled - 1));
    if (!o->parts.pulls || o->step < 1 + lag || pulled >= o->parts.segments.n)
        return SAR_OK;
    keep(task, SAR_OWNER_PULL, o->pull.received[pulled % 2]);
    return o->relay.limit > 0 ? sar_owner_relay_route(task, pulled) : SAR_OK;
}

/* Returns the message with this rank's sums for a receiver. With sliced rows, ranks of this rank's row group
 * know the indices of the sums; each other rank gets them once a group. */
static const struct sar_msg *whole_message_to(const struct sar_task *task, int receiver, uint32_t segment)
{
    const struct sar_owner *o = task->state;
    const struct sar_columns *columns = &o->parts.columns;
    if (!sar_columns_sliced(columns))
        return &o->pull.outgoing[sar_owner_sums_index(segment)];
    int number = sar_owner_number(task, task->comm->rank), to = sar_owner_number(task, receiver);
    int group = sar_columns_group(columns, number);
    bool knows =
        sar_columns_group(columns, to) == group || sar_columns_list_sender(columns, group, to) != number;
    return knows ? &o->pull.values[segment % 2] : &o->pull.outgoing[sar_owner_sums_index(segment)];
}

static const struct sar_msg *message_to(const struct sar_task *task, int receiver, uint32_t segment)
{
    const struct sar_msg *deferral = sar_owner_relay_deferral(task, segment, receiver);
    return deferral != NULL ? deferral : whole_message_to(task, receiver, segment);
}

/* Sends the sums to all sources of their elements, to the next rank first as in the push. */
void sar_owner_post_pull(struct sar_task *task, uint32_t segment)
{
    int ranks = task->comm->ranks, rank = task->comm->rank, n = 0, self = 0;
    for (int r = 0; r < ranks; r++)
        if (r != rank && sar_owner_sends_to(task, r))
            sar_exchange_expect(&task->exchange, sar_owner_channel(task, SAR_OWNER_PULL, r));
    for (int r; (r = sar_owner_source(task, n)) >= 0; n++)
        self = r == rank ? n : self;
    for (int i = 1; i < n; i++) {
        int r = sar_owner_source(task, (self + i) % n);
        sar_exchange_send(&task->exchange, sar_owner_channel(task, SAR_OWNER_PULL, r),
                          message_to(task, r, segment));
    }
}

/* The merge visits blocks or slots. */
static struct sar_span_work merge_work(const struct sar_owner *o, uint32_t segment,
                                       const struct sar_partition_map *map, size_t nnz, size_t element_size)
{
    uint64_t slots = (sar_segments_begin(&o->parts.segments, segment + 1) - map->slot_base) * map->parts;
    bool blocks = sar_partition_merges_by_block(map, slots / map->parts >> map->grain_shift, nnz);
    struct sar_span_work work =
        sar_span_work_make("assemble", nnz, element_size, blocks ? slots >> map->grain_shift : slots);
    work.format = blocks ? "blocks" : "runs";
    return work;
}

enum sar_status sar_owner_append(struct sar_task *task, uint32_t segment)
{
    struct sar_owner *o = task->state;
    struct sar_partition_map map = sar_owner_segment_map(o, segment);
    struct sar_vec_desc desc = sar_owner_result_desc(task);
    struct sar_span span = sar_task_span(task, "deliver");
    SAR_TRY(sar_owner_reserve(task, sar_reduce_max_nnz(&desc, o->inputs, map.parts)));
    struct sar_spvec end = sar_owner_free_output(task, &desc);
    SAR_TRY(sar_partition_merge(&map, &desc, o->inputs, task->memory.step_arena, &end));
    task->result.vec.nnz += end.nnz;
    span.work = merge_work(o, segment, &map, end.nnz, desc.element_size);
    sar_task_span_end(task, &span);
    return SAR_OK;
}

/* Finds the bits of all parts of a segment, that of this rank in the message that it has sent. Sets *other
 * unless all messages are bitmaps. */
static enum sar_status open_bitmaps(struct sar_task *task, uint32_t segment, struct sar_part_bitmap *bitmaps,
                                    bool *other)
{
    const struct sar_owner *o = task->state;
    *other = false;
    for (int r = 0; r < task->comm->ranks && !*other; r++) {
        bool own = r == task->comm->rank;
        const struct sar_msg *message =
            own ? &o->pull.outgoing[sar_owner_sums_index(segment)] : &o->pull.received[segment % 2][r];
        if (own && message->buffer == NULL)
            *other = true;
        else
            SAR_TRY(sar_task_open_bitmap(task, sar_owner_part_layout(task, r, segment), message, &bitmaps[r],
                                         other));
    }
    return SAR_OK;
}

/* Puts the elements of bitmaps in place, without lists of slots. Sets *done if the messages are bitmaps, and
 * not sparse. */
static enum sar_status append_bitmaps(struct sar_task *task, uint32_t segment, bool *done)
{
    struct sar_owner *o = task->state;
    struct sar_partition_map map = sar_owner_segment_map(o, segment);
    struct sar_vec_desc desc = sar_owner_result_desc(task);
    struct sar_part_bitmap *bitmaps;
    size_t nnz = 0;
    bool other = !o->parts.has_owners || o->parts.peers != NULL || o->relay.limit > 0 ||
                 task->device.exec != NULL || !sar_merge_bitmaps_works(&map) ||
                 !sar_merge_bitmaps_is_faster(&desc);
    *done = false;
    if (other)
        return SAR_OK;
    void *memory;
    SAR_TRY(sar_arena_alloc(task->memory.step_arena, (size_t)task->comm->ranks, sizeof *bitmaps, &memory));
    bitmaps = memory;
    SAR_TRY(open_bitmaps(task, segment, bitmaps, &other));
    if (other)
        return SAR_OK;
    for (int r = 0; r < task->comm->ranks; r++)
        nnz += bitmaps[r].nnz;
    uint64_t slots = sar_owner_part_layout(task, 0, segment).slots * map.parts;
    if (slots / BITMAP_SLOTS_PER_ELEMENT > nnz)
        return SAR_OK;
    struct sar_span span = sar_task_span(task, "deliver");
    SAR_TRY(sar_owner_reserve(task, nnz));
    struct sar_spvec end = sar_owner_free_output(task, &desc);
    SAR_TRY(sar_merge_bitmaps(&map, &desc, bitmaps, task->memory.step_arena, &end));
    task->result.vec.nnz += nnz;
    for (int r = 0; r < task->comm->ranks; r++)
        o->pull.received_values[r] += bitmaps[r].nnz * desc.row_len;
    span.work = sar_span_work_make("assemble", nnz, desc.element_size, slots);
    span.work.format = "bitmaps";
    sar_task_span_end(task, &span);
    *done = true;
    return SAR_OK;
}

/* Parts of owners that this rank does not send to are empty. */
enum sar_status sar_owner_write_output(struct sar_task *task, uint32_t segment)
{
    struct sar_owner *o = task->state;
    struct sar_partition_map map = sar_owner_segment_map(o, segment);
    int at = sar_owner_sums_index(segment);
    size_t n = 0;
    bool done;
    SAR_TRY(append_bitmaps(task, segment, &done));
    if (done)
        return SAR_OK;
    for (int r = 0; r < task->comm->ranks; r++) {
        bool own = r == task->comm->rank;
        o->inputs[r] = own ? o->reduce.sums[at] : (struct sar_spvec){ NULL, NULL, 0 };
        if (own ? o->inputs[r].index == NULL && o->inputs[r].nnz > 0 : sar_owner_sends_to(task, r))
            o->batch[n++] = (struct sar_task_part){ .layout = sar_owner_part_layout(task, r, segment),
                                                    .vec = &o->inputs[r],
                                                    .message = own ? &o->pull.outgoing[at]
                                                                   : &o->pull.received[segment % 2][r] };
    }
    sar_task_progress(task);
    SAR_TRY(sar_task_decode_parts(task, o->batch, n));
    for (int r = 0; r < task->comm->ranks; r++)
        o->pull.received_values[r] += o->inputs[r].nnz * task->agreed->desc.row_len;
    if (task->device.exec != NULL)
        return sar_task_add_output_parts(task, o->parts.segments.n, &map, o->inputs);
    if (!o->parts.has_owners)
        return sar_owner_append_all(task, segment);
    return o->parts.is_range ? sar_range_parts_write_output(task, o->parts.bounds, o->inputs)
                             : sar_owner_append(task, segment);
}
