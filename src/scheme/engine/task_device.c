/* SPDX-License-Identifier: BSD-3-Clause */
#include "scheme/engine/task_device.h"

#include "device/exec.h"

/* The device treats the slots of a part as elements, and slices as rows. */
static struct sar_vec_desc part_desc(const struct sar_task *task, const struct sar_wire_layout *layout)
{
    struct sar_vec_desc desc = task->agreed->desc;
    desc.count = layout->slots;
    desc.row_len = layout->row_len;
    desc.element_size = layout->element_size;
    desc.index_size = layout->index_size;
    return desc;
}

/* Queues the encoding of the payload of a message, so that the next one can be encoded before this one is
 * complete. For an MPI library that reads device memory, the payload stays on the device, apart from its
 * header. */
static enum sar_status encode_payload(struct sar_task *task, const struct sar_wire_layout *layout,
                                      enum sar_codec_id codec_id, const struct sar_spvec *vec,
                                      struct sar_msg *message)
{
    struct sar_device_exec *exec = task->device.exec;
    struct sar_vec_desc desc = part_desc(task, layout);
    struct sar_encoded payload = { codec_id, NULL, (size_t)message->bytes - SAR_MSG_HEADER_BYTES, vec->nnz };
    if (!exec->cuda_aware) {
        payload.memory = sar_msg_payload(message);
        return sar_device_exec_encode(exec, &desc, vec, &payload);
    }
    if (payload.bytes == 0)
        return SAR_OK;
    SAR_TRY(sar_device_blocks_alloc(&exec->blocks, payload.bytes, &payload.memory));
    message->payload = payload.memory;
    return sar_device_exec_encode_in_place(exec, &desc, vec, &payload);
}

enum sar_status sar_task_encode_on_device(struct sar_task *task, const struct sar_msg_key *key,
                                          const struct sar_wire *wire, const struct sar_spvec *vec,
                                          struct sar_msg *message)
{
    struct sar_device_exec *exec = task->device.exec;
    SAR_TRY(sar_msg_begin(key, wire, vec, exec->cuda_aware, exec->msg_arena, message));
    return encode_payload(task, &key->layout, wire->codec_id, vec, message);
}

enum sar_status sar_task_encode_values_on_device(struct sar_task *task, const struct sar_msg_key *key,
                                                 const struct sar_spvec *vec, uint32_t index_hash,
                                                 struct sar_msg *message)
{
    struct sar_device_exec *exec = task->device.exec;
    SAR_TRY(sar_msg_begin_values(key, index_hash, vec->nnz, exec->cuda_aware, exec->msg_arena, message));
    return encode_payload(task, &key->layout, SAR_CODEC_VALUES, vec, message);
}

static enum sar_status decode_payload(struct sar_task *task, const struct sar_wire_layout *layout,
                                      enum sar_codec_id codec_id, const struct sar_msg *message,
                                      struct sar_spvec *vec)
{
    struct sar_device_exec *exec = task->device.exec;
    struct sar_vec_desc desc = part_desc(task, layout);
    struct sar_msg_header header;
    (void)sar_msg_read_header(message->buffer, &header);
    struct sar_encoded payload = { codec_id, sar_msg_payload(message), (size_t)header.bytes,
                                   (size_t)header.nnz };
    return message->payload != NULL ? sar_device_exec_decode_in_place(exec, &desc, &payload, vec)
                                    : sar_device_exec_decode(exec, &desc, &payload, vec);
}

/* Payloads in formats that devices cannot decode are never detached from their headers. */
enum sar_status sar_task_decode_on_device(struct sar_task *task, struct sar_msg_key *key,
                                          const struct sar_msg *message, struct sar_spvec *vec)
{
    struct sar_device_exec *exec = task->device.exec;
    const struct sar_wire_layout *layout = &key->layout;
    struct sar_vec_desc desc = part_desc(task, layout);
    struct sar_msg_content content;
    bool detached = message->payload != NULL;
    SAR_TRY(sar_msg_open(key, message, &content));
    if (content.wire->codec_id == SAR_CODEC_NONE && !detached) {
        SAR_TRY(sar_msg_decode(key, message, exec->msg_arena, vec));
        return sar_device_exec_upload(exec, &desc, vec);
    }
    if (content.wire->codec_id == SAR_CODEC_NONE || content.nnz > layout->slots ||
        content.bytes != content.wire->min_bytes(layout, content.nnz))
        return SAR_CORRUPT;
    SAR_TRY(decode_payload(task, layout, content.wire->codec_id, message, vec));
    key->user_word = content.user_word;
    return SAR_OK;
}

enum sar_status sar_task_decode_values_on_device(struct sar_task *task, struct sar_msg_key *key,
                                                 const struct sar_list_hash *hash,
                                                 const struct sar_msg *message, struct sar_spvec *vec)
{
    struct sar_msg_content content;
    SAR_TRY(sar_msg_open_values(key, message, vec->nnz, &content));
    if (hash->on_device != NULL)
        SAR_TRY(sar_device_exec_expect_hash(task->device.exec, hash->on_device, content.index_hash));
    else if (content.index_hash != hash->value)
        return SAR_CORRUPT;
    SAR_TRY(decode_payload(task, &key->layout, SAR_CODEC_VALUES, message, vec));
    key->user_word = content.user_word;
    return SAR_OK;
}
