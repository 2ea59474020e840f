/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of a task whose vectors are in device memory: headers on the host, payloads encoded on the
 * device. */

#include "scheme/engine/device_task.h"

/* The device treats the slots of a part as elements. */
static struct sar_vec_desc desc_of(const struct sar_task *task, const struct sar_wire_layout *layout)
{
    struct sar_vec_desc desc = task->agreed->desc;
    desc.count = layout->slots;
    desc.index_size = layout->index_size;
    return desc;
}

/* For an MPI library that reads device memory: the payload stays on the device, apart from its header. */
static enum sar_status encode_detached(struct sar_task *task, const struct sar_msg_key *key,
                                       const struct sar_wire *wire, const struct sar_spvec *vec,
                                       struct sar_msg *message)
{
    struct sar_device_exec *exec = task->device.exec;
    struct sar_vec_desc desc = desc_of(task, &key->layout);
    SAR_TRY(sar_msg_begin(key, wire, vec, true, exec->msg_arena, message));
    struct sar_encoded payload = { wire->codec_id, NULL, (size_t)message->bytes - SAR_MSG_HEADER_BYTES,
                                   vec->nnz };
    if (payload.bytes == 0)
        return SAR_OK;
    SAR_TRY(sar_device_blocks_alloc(&exec->blocks, payload.bytes, &payload.memory));
    message->payload = payload.memory;
    return sar_device_exec_encode_in_place(exec, &desc, vec, &payload);
}

enum sar_status sar_device_task_encode(struct sar_task *task, bool pull, struct sar_wire_layout layout,
                                       const struct sar_spvec *vec, struct sar_msg *message,
                                       const struct sar_wire **wire)
{
    const struct sar_wire *chosen = sar_agreed_device_wire(task->agreed, pull, &layout, vec->nnz);
    struct sar_msg_key key = sar_task_msg_key(task, layout);
    struct sar_vec_desc desc = desc_of(task, &layout);
    *wire = chosen;
    if (task->device.exec->cuda_aware)
        return encode_detached(task, &key, chosen, vec, message);
    SAR_TRY(sar_msg_begin(&key, chosen, vec, false, task->device.exec->msg_arena, message));
    struct sar_encoded payload = { chosen->codec_id, sar_msg_payload(message),
                                   (size_t)message->bytes - SAR_MSG_HEADER_BYTES, vec->nnz };
    return sar_device_exec_encode(task->device.exec, &desc, vec, &payload);
}

enum sar_status sar_device_task_wait_message(struct sar_task *task, const struct sar_msg *message)
{
    return sar_device_exec_wait_encoded(task->device.exec, sar_msg_payload(message));
}

/* For a format that devices cannot decode; such payloads are never detached from their headers. */
static enum sar_status decode_on_host(struct sar_task *task, struct sar_msg_key *key,
                                      const struct sar_msg *message, struct sar_spvec *vec)
{
    struct sar_vec_desc desc = desc_of(task, &key->layout);
    if (message->payload != NULL)
        return SAR_CORRUPT;
    SAR_TRY(sar_msg_decode(key, message, task->device.exec->msg_arena, vec));
    return sar_device_exec_upload(task->device.exec, &desc, vec);
}

enum sar_status sar_device_task_decode(struct sar_task *task, struct sar_msg_key *key,
                                       const struct sar_msg *message, struct sar_spvec *vec)
{
    const struct sar_wire_layout *layout = &key->layout;
    struct sar_vec_desc desc = desc_of(task, layout);
    struct sar_msg_content content;
    SAR_TRY(sar_msg_open(key, message, &content));
    if (content.wire->codec_id == SAR_CODEC_NONE)
        return decode_on_host(task, key, message, vec);
    if (content.nnz > layout->slots || content.bytes != content.wire->min_bytes(layout, content.nnz))
        return SAR_CORRUPT;
    struct sar_encoded payload = { content.wire->codec_id, content.payload, (size_t)content.bytes,
                                   (size_t)content.nnz };
    SAR_TRY(message->payload != NULL
                ? sar_device_exec_decode_in_place(task->device.exec, &desc, &payload, vec)
                : sar_device_exec_decode(task->device.exec, &desc, &payload, vec));
    key->user_word = content.user_word;
    return SAR_OK;
}

struct sar_vec_desc sar_device_task_output_desc(const struct sar_task *task)
{
    struct sar_vec_desc desc = task->agreed->desc;
    if (!task->agreed->call.dense_face)
        desc.index_size = task->output->index_size;
    return desc;
}

enum sar_status sar_device_task_add_output_parts(struct sar_task *task, size_t times,
                                                 const struct sar_partition_map *map,
                                                 const struct sar_spvec parts[])
{
    struct sar_device_exec *exec = task->device.exec;
    struct sar_vec_desc desc = sar_device_task_output_desc(task);
    if (exec->output_parts == NULL)
        SAR_TRY(sar_task_alloc(task, times * map->parts, sizeof *exec->output_parts, &exec->output_parts));
    task->result.parts = exec->output_parts;
    for (uint32_t p = 0; p < map->parts; p++) {
        struct sar_map_part part = { *map, p };
        struct sar_spvec vec = parts[p];
        if (vec.nnz == 0)
            continue;
        SAR_TRY(sar_device_exec_slots_to_indices(exec, &desc, &part, &vec));
        exec->output_parts[task->result.n_parts++] = vec;
        task->result.vec.nnz += vec.nnz;
    }
    return SAR_OK;
}
