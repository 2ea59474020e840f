/* SPDX-License-Identifier: BSD-3-Clause */
/* Sliced rows: the slices that a rank sends to each owner, and at the end of the pull the rows, or this
 * rank's share of rows, that are made of index lists and values of several owners. Costs one copy of a rank's
 * rows, and one of the result's; on a device, if it executes the call. */

#include "device/exec.h"
#include "scheme/engine/owner_internal.h"
#include "vector/spvec.h"
#include "wire/message.h"

static enum sar_status alloc(struct sar_task *task, size_t n, size_t size, void **memory)
{
    return task->device.exec != NULL ? sar_device_exec_alloc(task->device.exec, n, size, memory)
                                     : sar_arena_alloc(task->memory.step_arena, n, size, memory);
}

/* As sar_columns_gather, on the host or the device. */
static enum sar_status gather(struct sar_task *task, struct sar_slice slice, const struct sar_spvec *rows,
                              void *values)
{
    const struct sar_vec_desc *desc = &task->agreed->desc;
    size_t value_size = desc->element_size / desc->row_len, bytes = slice.len * value_size;
    if (task->device.exec == NULL) {
        sar_columns_gather(desc, slice, rows, values);
        return SAR_OK;
    }
    struct sar_strided_copy copy = { values, (const unsigned char *)rows->value + slice.begin * value_size,
                                     bytes,  desc->element_size,
                                     bytes,  rows->nnz };
    return sar_device_exec_copy_strided(task->device.exec, &copy);
}

static enum sar_status scatter_on_device(struct sar_task *task, const struct sar_vec_desc *desc,
                                         struct sar_slice slice, const struct sar_spvec *vec, void *rows)
{
    size_t value_size = desc->element_size / desc->row_len, bytes = slice.len * value_size;
    struct sar_strided_copy copy = { (unsigned char *)rows + slice.begin * value_size,
                                     vec->value,
                                     desc->element_size,
                                     bytes,
                                     bytes,
                                     vec->nnz };
    return sar_device_exec_copy_strided(task->device.exec, &copy);
}

/* With one row group, a part is a range of the input: only its indices are copied. */
enum sar_status sar_owner_split_rows(struct sar_task *task, uint32_t segment, struct sar_spvec *rows)
{
    const struct sar_owner *o = task->state;
    const struct sar_vec_desc *desc = &task->agreed->desc;
    if (o->parts.columns.groups > 1)
        return sar_owner_split(task, segment, NULL, rows);
    rows[0] = sar_owner_next_input(task, segment);
    return sar_spvec_rebase(desc, sar_segments_begin(&o->parts.segments, segment), sizeof(uint32_t),
                            task->memory.step_arena, &rows[0]);
}

enum sar_status sar_owner_gather_part(struct sar_task *task, uint32_t segment, int owner)
{
    struct sar_owner *o = task->state;
    const struct sar_spvec *rows = &o->push.rows[segment % 2][sar_owner_group(task, owner)];
    struct sar_span span = sar_task_span(task, "partition");
    struct sar_spvec *part = &o->push.parts[segment % 2][owner];
    struct sar_slice slice = sar_owner_slice(task, owner);
    struct sar_vec_desc desc = sar_columns_slice_desc(&task->agreed->desc, slice);
    void *values;
    SAR_TRY(alloc(task, rows->nnz, desc.element_size, &values));
    SAR_TRY(gather(task, slice, rows, values));
    *part = (struct sar_spvec){ rows->index, values, rows->nnz };
    span.work = sar_span_work_make("append", part->nnz, desc.element_size, 0);
    sar_task_span_end(task, &span);
    return SAR_OK;
}

/* Decodes the message of a rank. If it has no index list, *slice comes with the known one, whose hash is
 * given. */
static enum sar_status decode(struct sar_task *task, uint32_t segment, int rank,
                              const struct sar_list_hash *hash, struct sar_spvec *slice)
{
    struct sar_owner *o = task->state;
    struct sar_wire_layout layout = sar_owner_part_layout(task, rank, segment);
    const struct sar_msg *message = &o->pull.received[segment % 2][rank];
    if (rank == task->comm->rank)
        *slice = o->reduce.sums[sar_owner_sums_index(segment)];
    else if (hash == NULL)
        SAR_TRY(sar_task_decode(task, layout, message, slice));
    else
        SAR_TRY(sar_task_decode_values(task, layout, hash, message, slice));
    o->pull.received_values[rank] += slice->nnz * sar_owner_slice(task, rank).len;
    return SAR_OK;
}

/* Returns the owners of a group that this rank exchanges messages with. */
static struct sar_owner_range owners_of(const struct sar_task *task, int group)
{
    const struct sar_columns *columns = &((const struct sar_owner *)task->state)->parts.columns;
    return sar_columns_owners(columns, group,
                              sar_columns_share(columns, sar_owner_number(task, task->comm->rank)));
}

/* Decodes all slices of a row group; slices[i] is of its i-th owner. They share one index list: that of this
 * rank's sums, or of the message of the owner that sends it. */
static enum sar_status decode_group(struct sar_task *task, uint32_t segment, int group,
                                    struct sar_spvec *slices)
{
    const struct sar_owner *o = task->state;
    const struct sar_columns *columns = &o->parts.columns;
    struct sar_owner_range owners = owners_of(task, group);
    int own = sar_owner_number(task, task->comm->rank);
    int sender =
        group == sar_columns_group(columns, own) ? own : sar_columns_list_sender(columns, group, own);
    struct sar_list_hash hash = { o->pull.index_hash[sar_owner_sums_index(segment)], NULL };
    struct sar_spvec list;
    SAR_TRY(decode(task, segment, sar_owner_rank(task, sender), NULL, &list));
    if (sender != own && owners.end - owners.first > 1)
        SAR_TRY(sar_task_hash_list(task, &list, &hash));
    for (int i = owners.first; i < owners.end; i++) {
        slices[i - owners.first] = list;
        if (i == sender)
            continue;
        sar_task_progress(task);
        SAR_TRY(decode(task, segment, sar_owner_rank(task, i), &hash, &slices[i - owners.first]));
    }
    return SAR_OK;
}

static enum sar_status join_on_device(struct sar_task *task, const struct sar_vec_desc *desc,
                                      struct sar_owner_range owners, const struct sar_spvec *slices,
                                      void *rows)
{
    const struct sar_owner *o = task->state;
    for (int i = owners.first; i < owners.end; i++) {
        struct sar_slice slice = sar_columns_slice(&o->parts.columns, i);
        slice.begin -= o->parts.columns_of_result.begin;
        SAR_TRY(scatter_on_device(task, desc, slice, &slices[i - owners.first], rows));
    }
    return SAR_OK;
}

/* Copies the slices of a group to the rows of this rank's result. */
static enum sar_status join(struct sar_task *task, int group, const struct sar_spvec *slices, void *rows)
{
    const struct sar_owner *o = task->state;
    struct sar_vec_desc desc = sar_owner_result_desc(task);
    struct sar_owner_range owners = owners_of(task, group);
    struct sar_span span = sar_task_span(task, "deliver");
    size_t n = (size_t)(owners.end - owners.first);
    if (task->device.exec != NULL) {
        SAR_TRY(join_on_device(task, &desc, owners, slices, rows));
    } else {
        sar_columns_join(&o->parts.columns, &desc, o->parts.columns_of_result.begin, owners, slices, rows);
        span.work = sar_span_work_make("append", n * slices[0].nnz, desc.element_size / n, 0);
    }
    sar_task_span_end(task, &span);
    return SAR_OK;
}

/* With one group the rows are in the order of the result. */
static enum sar_status append_group(struct sar_task *task, const struct sar_partition_map *map,
                                    const struct sar_spvec *slices)
{
    struct sar_vec_desc desc = sar_owner_result_desc(task);
    struct sar_spvec *out = &task->result.vec;
    size_t nnz = slices[0].nnz;
    SAR_TRY(sar_owner_reserve(task, nnz));
    if (nnz == 0)
        return SAR_OK;
    for (size_t i = 0; i < nnz; i++)
        sar_index_set(out->index, desc.index_size, out->nnz + i,
                      map->slot_base + sar_index_get(slices[0].index, sizeof(uint32_t), i));
    SAR_TRY(join(task, 0, slices, (unsigned char *)out->value + out->nnz * desc.element_size));
    out->nnz += nnz;
    return SAR_OK;
}

enum sar_status sar_owner_write_rows(struct sar_task *task, uint32_t segment)
{
    struct sar_owner *o = task->state;
    struct sar_partition_map map = sar_owner_segment_map(o, segment);
    int groups = o->parts.columns.groups;
    struct sar_spvec *slices;
    void *memory;
    SAR_TRY(
        sar_arena_alloc_zeroed(task->memory.step_arena, (size_t)task->comm->ranks, sizeof *slices, &memory));
    slices = memory;
    for (int g = 0; g < groups; g++) {
        SAR_TRY(decode_group(task, segment, g, slices));
        if (groups == 1 && task->device.exec == NULL)
            return append_group(task, &map, slices);
        void *rows;
        SAR_TRY(alloc(task, slices[0].nnz, sar_owner_result_desc(task).element_size, &rows));
        o->inputs[g] = (struct sar_spvec){ slices[0].index, rows, slices[0].nnz };
        SAR_TRY(join(task, g, slices, rows));
    }
    if (task->device.exec != NULL)
        return sar_task_add_output_parts(task, o->parts.segments.n, &map, o->inputs);
    return sar_owner_append(task, segment);
}
