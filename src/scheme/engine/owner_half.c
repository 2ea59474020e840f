/* SPDX-License-Identifier: BSD-3-Clause */
/* The collectives that are one half of an allreduce: a reduce_scatter, which is the push, and an allgather,
 * which is the pull. Their terms, the beginning of a pull without a push, and the output of both.
 *
 * In a reduce_scatter the partition map is the caller's. Of dense buffers the output is this rank's part,
 * whose indices count from its beginning. In an allgather any rank may have any element: all elements are
 * one part, of which each rank sends those that it has. Unless ranks have found that each has elements that
 * it owns under a map with a part for each rank: then the pull is that of an allreduce. */

#include <string.h>

#include "scheme/engine/owner_internal.h"
#include "vector/partition.h"
#include "vector/reduce.h"

static struct sar_partition_map map_of_one_part(const struct sar_agreed *a)
{
    return sar_partition_map_make(SAR_PARTITION_CYCLIC, a->desc.count, 1, 1, 0);
}

/* In an allgather the largest part is that of the rank with most elements. */
static struct sar_owner_cost_terms allgather_terms(const struct sar_agreed *a, struct sar_partition_map map)
{
    struct sar_owner_cost_terms terms = sar_owner_cost_terms(a, map);
    if (a->data.nnz_mean > 0)
        terms.pull_share = a->data.nnz_max / (a->data.nnz_mean * a->machine.ranks);
    return terms;
}

struct sar_owner_cost_terms sar_owner_scatter_terms(const struct sar_agreed *a, int group_ranks)
{
    struct sar_owner_cost_terms terms = sar_owner_cost_terms(a, sar_agreed_block_map(a));
    terms.group_ranks = group_ranks;
    return terms;
}

/* Owners make messages shorter, but contiguous parts have one segment, which hides no work. Slots of merged
 * parts have 32 bits. Parts of the caller's map that are not contiguous have loads as if by chance: no other
 * is known. */
struct sar_owner_cost_terms sar_owner_collective_terms(const struct sar_agreed *a)
{
    if (a->call.collective == SAR_ALLREDUCE)
        return sar_owner_columns_terms(a, 1);
    if (a->call.collective == SAR_REDUCE_SCATTER)
        return sar_owner_scatter_terms(a, 1);
    struct sar_owner_cost_terms any = allgather_terms(a, map_of_one_part(a));
    if (a->call.block == 0 || a->machine.ranks == 1 || sar_agreed_block_map(a).slots_max > UINT32_MAX)
        return any;
    struct sar_owner_cost_terms owned = allgather_terms(a, sar_agreed_block_map(a));
    return sar_owner_seconds(a, &owned) <= sar_owner_seconds(a, &any) ? owned : any;
}

/* The partition makes slots of 32 bits, and no segment is shorter than a stripe. */
const char *sar_owner_half_unsupported_reason(const struct sar_agreed *a)
{
    struct sar_partition_map map =
        a->call.collective == SAR_ALLGATHER ? map_of_one_part(a) : sar_agreed_block_map(a);
    bool fits = map.kind == SAR_PARTITION_RANGE || map.grain <= UINT32_MAX;
    const char *reason = sar_agreed_sparse_unsupported(a);
    return reason == NULL && !fits ? "blocks of 2^32 elements" : reason;
}

/* Makes the slots of elements that this rank owns: the inverse of sar_partition_slots_to_indices. */
static enum sar_status make_slots(struct sar_task *task, const struct sar_partition_map *map,
                                  struct sar_spvec *own)
{
    const struct sar_vec_desc *desc = &task->agreed->desc;
    uint64_t end = 0, to_slot = 0;
    void *slots;
    SAR_TRY(sar_arena_alloc(task->memory.step_arena, own->nnz, sizeof(uint32_t), &slots));
    for (size_t i = 0; i < own->nnz; i++) {
        uint64_t index = sar_index_get(own->index, desc->index_size, i);
        if (index >= end) {
            to_slot = sar_partition_map_locate(map, index).slot - index;
            end = index - index % map->grain + map->grain;
        }
        sar_index_set(slots, sizeof(uint32_t), i, index + to_slot);
    }
    own->index = slots;
    return SAR_OK;
}

/* Replaces indices by slots of the segment. */
static enum sar_status rebase(struct sar_task *task, uint32_t segment, unsigned index_size,
                              struct sar_spvec *own)
{
    const struct sar_owner *o = task->state;
    struct sar_partition_map map = sar_owner_segment_map(o, segment);
    if (o->parts.has_owners && !o->parts.is_range)
        return make_slots(task, &map, own);
    uint64_t base = o->parts.is_range ? o->parts.bounds[task->comm->rank] : map.slot_base;
    return sar_spvec_rebase(&task->agreed->desc, base, index_size, task->memory.step_arena, own);
}

enum sar_status sar_owner_prepare_pull(struct sar_task *task, uint32_t segment)
{
    struct sar_owner *o = task->state;
    int at = sar_owner_sums_index(segment);
    struct sar_spvec *own = &o->reduce.sums[at];
    struct sar_wire_layout layout = sar_owner_part_layout(task, task->comm->rank, segment);
    *own = sar_owner_next_input(task, segment);
    SAR_TRY(rebase(task, segment, layout.index_size, own));
    return sar_task_encode(task, true, layout, own, task->comm->ranks > 1 ? &o->pull.outgoing[at] : NULL);
}

/* Sets the indices of the output from slots of slot_size bytes, which may be in the same memory. */
static void set_indices(const struct sar_vec_desc *desc, uint64_t base, const void *slots, unsigned slot_size,
                        size_t n, void *index)
{
    if (base == 0 && slots == index)
        return;
    for (size_t i = 0; i < n; i++)
        sar_index_set(index, desc->index_size, i, base + sar_index_get(slots, slot_size, i));
}

/* Indices of 8 bytes do not fit where slots of 4 bytes are reduced. */
static enum sar_status reduce_to_output(struct sar_task *task, uint64_t base, const struct sar_vec_desc *part,
                                        struct sar_spvec *end)
{
    const struct sar_owner *o = task->state;
    const struct sar_vec_desc *desc = &task->agreed->desc;
    struct sar_spvec sums = *end;
    size_t ranks = (size_t)task->comm->ranks;
    if (desc->index_size != part->index_size)
        SAR_TRY(sar_arena_alloc(task->memory.step_arena, sar_reduce_max_nnz(part, o->inputs, ranks),
                                part->index_size, &sums.index));
    SAR_TRY(sar_reduce(part, o->inputs, ranks, task->memory.step_arena, &sums));
    set_indices(desc, base, sums.index, part->index_size, sums.nnz, end->index);
    end->nnz = sums.nnz;
    return SAR_OK;
}

/* A rank that finds an index twice goes on, so that every rank finds it. */
enum sar_status sar_owner_append_all(struct sar_task *task, uint32_t segment)
{
    struct sar_owner *o = task->state;
    size_t sum = 0, ranks = (size_t)task->comm->ranks;
    struct sar_vec_desc desc = sar_owner_part_desc(task, task->comm->rank, segment);
    struct sar_span span = sar_task_span(task, "deliver");
    for (size_t r = 0; r < ranks; r++)
        sum += o->inputs[r].nnz;
    SAR_TRY(sar_owner_reserve(task, sar_reduce_max_nnz(&desc, o->inputs, ranks)));
    struct sar_spvec end = sar_owner_free_output(task, &task->agreed->desc);
    SAR_TRY(reduce_to_output(task, sar_segments_begin(&o->parts.segments, segment), &desc, &end));
    o->has_common_index |= end.nnz < sum;
    task->result.vec.nnz += end.nnz;
    span.work = sar_task_work("reduce", &desc, o->inputs, ranks);
    sar_task_span_end(task, &span);
    return SAR_OK;
}

enum sar_status sar_owner_append_sums(struct sar_task *task, uint32_t segment)
{
    struct sar_owner *o = task->state;
    const struct sar_vec_desc *desc = &task->agreed->desc;
    struct sar_partition_map map = sar_owner_segment_map(o, segment);
    struct sar_wire_layout layout = sar_owner_part_layout(task, task->comm->rank, segment);
    const struct sar_spvec *sums = &o->reduce.sums[sar_owner_sums_index(segment)];
    struct sar_span span = sar_task_span(task, "deliver");
    SAR_TRY(sar_owner_reserve(task, sums->nnz));
    if (map.kind == SAR_PARTITION_RANGE) {
        uint64_t begin = sar_partition_map_index(&map, (uint32_t)task->comm->rank, 0);
        uint64_t base = task->agreed->call.dense_face ? 0 : begin;
        sar_spvec_append(desc, sums, layout.index_size, base, &task->result.vec);
    } else if (sums->nnz > 0) {
        struct sar_spvec end = sar_owner_free_output(task, desc);
        sar_partition_slots_to_indices(&map, (uint32_t)task->comm->rank, sums->index, sizeof(uint32_t),
                                       sums->nnz, end.index, desc->index_size);
        memcpy(end.value, sums->value, sums->nnz * desc->element_size);
        task->result.vec.nnz += sums->nnz;
    }
    span.work = sar_span_work_make("append", sums->nnz, desc->element_size, 0);
    sar_task_span_end(task, &span);
    return SAR_OK;
}
