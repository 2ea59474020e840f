/* SPDX-License-Identifier: BSD-3-Clause */
/* Who owns what in an owner-based scheme: parts, segments, and the ranks that exchange messages about
 * them. */

#include <limits.h>

#include "scheme/engine/owner_internal.h"
#include "vector/partition.h"
#include "vector/spvec.h"

bool sar_owner_sends_to(const struct sar_task *task, int owner)
{
    const struct sar_owner *o = task->state;
    return o->parts.peers == NULL || o->parts.peers->sends_to(task, owner);
}

int sar_owner_source(const struct sar_task *task, int i)
{
    const struct sar_owner *o = task->state;
    if (o->parts.peers != NULL)
        return o->parts.peers->source(task, i);
    return i < task->comm->ranks ? i : -1;
}

int sar_owner_number(const struct sar_task *task, int rank)
{
    const struct sar_owner_parts *parts = &((const struct sar_owner *)task->state)->parts;
    return parts->peers == NULL || !sar_columns_sliced(&parts->columns) ? rank
                                                                        : parts->peers->number(task, rank);
}

int sar_owner_rank(const struct sar_task *task, int number)
{
    const struct sar_owner_parts *parts = &((const struct sar_owner *)task->state)->parts;
    return parts->peers == NULL || !sar_columns_sliced(&parts->columns) ? number
                                                                        : parts->peers->rank(task, number);
}

struct sar_slice sar_owner_slice(const struct sar_task *task, int rank)
{
    const struct sar_owner *o = task->state;
    return sar_columns_slice(&o->parts.columns, sar_owner_number(task, rank));
}

int sar_owner_group(const struct sar_task *task, int rank)
{
    const struct sar_owner *o = task->state;
    return sar_columns_group(&o->parts.columns, sar_owner_number(task, rank));
}

struct sar_vec_desc sar_owner_result_desc(const struct sar_task *task)
{
    const struct sar_owner *o = task->state;
    return sar_columns_slice_desc(&task->agreed->desc, o->parts.columns_of_result);
}

void sar_owner_open_terms(struct sar_task *task, const struct sar_owner_cost_terms *terms,
                          const struct sar_owner_peers *peers)
{
    struct sar_owner *o = task->state;
    struct sar_owner_estimate estimate = sar_owner_estimate(task->agreed, terms);
    struct sar_partition_map map = terms->map;
    bool is_range = map.kind == SAR_PARTITION_RANGE;
    o->parts = (struct sar_owner_parts){ .pushes = task->agreed->call.collective != SAR_ALLGATHER,
                                         .pulls = task->agreed->call.collective != SAR_REDUCE_SCATTER,
                                         .has_owners =
                                             task->agreed->call.collective != SAR_ALLGATHER || map.parts > 1,
                                         .map = map,
                                         .columns = terms->columns,
                                         .peers = peers,
                                         .is_range = is_range && peers == NULL,
                                         .segments = estimate.segments,
                                         .reduces_in_flight = estimate.reduces_in_flight };
    /* Weighing may put nearly all slots in one segment, which has 32 bits for them. Within a node messages
     * are work, too, and do not wait for it. */
    bool slots_fit = !o->parts.has_owners || map.slots_max <= UINT32_MAX;
    if (slots_fit && task->agreed->topo.nodes > 1)
        sar_segments_weigh(task->agreed, &o->parts.segments);
    int share = sar_columns_share(&terms->columns, sar_owner_number(task, task->comm->rank));
    o->parts.columns_of_result = sar_columns_share_slice(&terms->columns, share);
    for (int r = 0; r < task->comm->ranks; r++)
        o->parts.n_targets += sar_owner_sends_to(task, r);
    o->relay.limit = estimate.relay_limit;
    o->relay.layout = (struct sar_relay_layout){ &o->parts.columns, estimate.relay_stride, NULL };
    task->exchange.throttle = estimate.throttle;
    task->wire_policy[0] = estimate.push_policy;
    task->wire_policy[1] = estimate.pull_policy;
    /* With peers the result of an allreduce goes to memory of the node first. */
    task->result.early_write =
        (peers == NULL || !o->parts.pulls) && (o->parts.segments.n > 1 || !o->parts.pushes);
    task->report.columns = sar_columns_max_slices(&o->parts.columns);
    task->report.partition = sar_partition_map_name(&map);
    task->report.map_parts = is_range || peers != NULL || !o->parts.pushes ? 0 : (int)map.parts;
    task->report.grain = is_range ? 0 : (int)(map.grain < INT_MAX ? map.grain : INT_MAX);
    if (!o->parts.has_owners)
        task->report.partition = NULL;
}

void sar_owner_open(struct sar_task *task, struct sar_partition_map map, const struct sar_owner_peers *peers)
{
    double share = 1.0 / task->comm->ranks, group = peers == NULL ? 1 : task->agreed->topo.node_ranks;
    sar_owner_open_terms(task,
                         &(struct sar_owner_cost_terms){
                             .push_share = share,
                             .pull_share = share,
                             .push_policy = task->wire_policy[0],
                             .pull_policy = task->wire_policy[1],
                             .map = map,
                             .columns = sar_columns_make(&task->agreed->desc, task->comm->ranks, 1, 1),
                             .max_slots = (double)map.slots_max,
                             .group_ranks = group },
                         peers);
}

static uint64_t slots_of(const struct sar_task *task, int rank, uint32_t segment)
{
    const struct sar_owner *o = task->state;
    if (o->parts.is_range)
        return o->parts.bounds[rank + 1] - o->parts.bounds[rank];
    uint32_t part = o->parts.has_owners ? (uint32_t)sar_owner_group(task, rank) : 0;
    uint64_t slots = sar_partition_map_slots(&o->parts.map, part);
    uint64_t begin = sar_segments_begin(&o->parts.segments, segment),
             end = sar_segments_begin(&o->parts.segments, segment + 1);
    return (slots < end ? slots : end) - (slots < begin ? slots : begin);
}

struct sar_wire_layout sar_owner_part_layout(const struct sar_task *task, int rank, uint32_t segment)
{
    const struct sar_owner *o = task->state;
    uint64_t slots = slots_of(task, rank, segment);
    struct sar_wire_layout layout = sar_agreed_layout(task->agreed, slots, sar_index_size(slots));
    if (sar_columns_sliced(&o->parts.columns))
        sar_columns_slice_layout(&o->parts.columns, sar_owner_slice(task, rank).len, &layout);
    return layout;
}

struct sar_vec_desc sar_owner_part_desc(const struct sar_task *task, int rank, uint32_t segment)
{
    struct sar_wire_layout layout = sar_owner_part_layout(task, rank, segment);
    struct sar_vec_desc desc = sar_task_desc(task);
    desc = sar_columns_slice_desc(&desc, sar_owner_slice(task, rank));
    desc.count = layout.slots;
    desc.index_size = layout.index_size;
    return desc;
}

struct sar_partition_map sar_owner_segment_map(const struct sar_owner *o, uint32_t segment)
{
    struct sar_partition_map map = o->parts.map;
    map.slot_base = sar_segments_begin(&o->parts.segments, segment);
    return map;
}

struct sar_spvec sar_owner_next_input(struct sar_task *task, uint32_t segment)
{
    struct sar_owner *o = task->state;
    const struct sar_vec_desc *desc = &task->agreed->desc;
    uint64_t limit =
        sar_mul_saturate(sar_segments_begin(&o->parts.segments, segment + 1), o->parts.map.parts);
    size_t from = o->push.next;
    o->push.next = segment + 1 == o->parts.segments.n
                       ? task->input.vec.nnz
                       : sar_spvec_lower_bound(desc, &task->input.vec, from, limit);
    return sar_spvec_slice(desc, &task->input.vec, from, o->push.next);
}

enum sar_status sar_owner_split(struct sar_task *task, uint32_t segment, const struct sar_spvec *memory,
                                struct sar_spvec *parts)
{
    const struct sar_vec_desc *desc = &task->agreed->desc;
    struct sar_partition_map map = sar_owner_segment_map(task->state, segment);
    struct sar_span span = sar_task_span(task, "partition");
    struct sar_spvec slice = sar_owner_next_input(task, segment);
    struct sar_arena *arena = task->memory.step_arena;
    SAR_TRY(map.hierarchical ? sar_partition_hierarchical(NULL, &map, desc, &slice, arena, memory, parts,
                                                          &task->report.hash)
            : memory == NULL ? sar_partition_split(&map, desc, &slice, arena, parts)
                             : sar_partition_into(&map, desc, &slice, arena, memory, parts));
    uint64_t blocks = map.hierarchical ? 0 : sar_partition_run_blocks(&map, desc, &slice);
    span.work = sar_span_work_make("partition", slice.nnz, desc->element_size, blocks);
    span.work.format = blocks > 0 ? "runs" : NULL;
    sar_task_span_end(task, &span);
    return SAR_OK;
}
