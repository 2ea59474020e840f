/* SPDX-License-Identifier: BSD-3-Clause */
/* Who owns what in an owner-based scheme: parts, segments, and the ranks that exchange messages about
 * them. */

#include "scheme/engine/owner_internal.h"

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

static void open_parts(struct sar_task *task, const struct sar_owner_cost_terms *terms)
{
    struct sar_owner *o = task->state;
    struct sar_owner_estimate estimate = sar_owner_estimate(task->agreed, terms);
    o->parts.map = *terms->map;
    o->parts.segment_slots = estimate.segment_slots;
    o->parts.segments = (uint32_t)estimate.segments;
    task->exchange.throttle = estimate.throttle;
    for (int r = 0; r < task->comm->ranks; r++)
        o->parts.n_targets += sar_owner_sends_to(task, r);
    task->report.partition = sar_partition_names[o->parts.map.kind];
    task->report.grain = o->parts.map.kind == SAR_PARTITION_RANGE ? 0 : 1 << o->parts.map.grain_shift;
}

void sar_owner_open(struct sar_task *task, const struct sar_partition_map *map)
{
    struct sar_owner *o = task->state;
    double share = 1.0 / task->comm->ranks;
    open_parts(task, &(struct sar_owner_cost_terms){ .push_share = share,
                                                     .pull_share = share,
                                                     .push_wire = task->preferred_wire[0],
                                                     .pull_wire = task->preferred_wire[1],
                                                     .map = map,
                                                     .max_slots = (double)map->slots_max,
                                                     .group_ranks = 1 });
    o->parts.is_range = map->kind == SAR_PARTITION_RANGE;
    task->result.early_write = o->parts.segments > 1;
}

void sar_owner_open_with_peers(struct sar_task *task, const struct sar_owner_cost_terms *terms,
                               const struct sar_owner_peers *peers)
{
    ((struct sar_owner *)task->state)->parts.peers = peers;
    open_parts(task, terms);
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

struct sar_wire_layout sar_owner_part_layout(const struct sar_task *task, int rank, uint32_t segment)
{
    uint64_t slots = slots_of(task->state, rank, segment);
    return sar_agreed_layout(task->agreed, slots, sar_index_size(slots));
}

struct sar_vec_desc sar_owner_part_desc(const struct sar_task *task, int rank, uint32_t segment)
{
    struct sar_wire_layout layout = sar_owner_part_layout(task, rank, segment);
    struct sar_vec_desc desc = sar_task_desc(task);
    desc.count = layout.slots;
    desc.index_size = layout.index_size;
    return desc;
}

struct sar_partition_map sar_owner_segment_map(const struct sar_owner *o, uint32_t segment)
{
    struct sar_partition_map map = o->parts.map;
    map.slot_base = segment * o->parts.segment_slots;
    return map;
}
