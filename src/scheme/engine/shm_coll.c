/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives in the shared memory of a node: messages at barriers, vectors in buffers, shared results. */

#include "scheme/engine/shm_coll.h"

#include <string.h>

_Static_assert(sizeof(struct sar_shm_coll_msg) <= SAR_SHM_MSG_BYTES, "a barrier carries the message");

void sar_shm_coll_post(struct sar_task *task, const char *name, struct sar_shm_coll_msg *msg)
{
    if (task->exchange.status != SAR_OK)
        msg->status = (int64_t)task->exchange.status;
    msg->fingerprint = task->args.fingerprint;
    sar_shm_barrier_arrive(task->comm->shm_group, SAR_SHM_BARRIER_SCHEME, name, msg, sizeof *msg);
}

const struct sar_shm_coll_msg *sar_shm_coll_msg_of(const struct sar_task *task, int rank)
{
    return sar_shm_barrier_msg(task->comm->shm_group, rank);
}

enum sar_status sar_shm_coll_defer_error(const struct sar_task *task, struct sar_shm_coll_msg *msg,
                                         enum sar_status status)
{
    if (!sar_shm_region_is_unavailable(status) || !task->args.can_retry)
        return status;
    msg->status = (int64_t)status;
    return SAR_OK;
}

bool sar_shm_coll_calls_differ(const struct sar_task *task)
{
    const struct sar_shm_group *group = task->comm->shm_group;
    if (!sar_shm_barrier_kinds_match(group))
        return true;
    for (int r = 0; r < group->ranks; r++)
        if (sar_shm_coll_msg_of(task, r)->fingerprint != task->args.fingerprint)
            return true;
    return false;
}

/* Returns the failure of the call by the statuses of all ranks. */
static enum sar_status resolve_failure(const struct sar_task *task)
{
    enum sar_status failure = SAR_OK;
    for (int r = 0; r < task->comm->ranks; r++) {
        enum sar_status peer_status = (enum sar_status)sar_shm_coll_msg_of(task, r)->status;
        if (peer_status == SAR_OK)
            continue;
        if (!sar_shm_region_is_unavailable(peer_status) || !task->args.can_retry)
            return SAR_PEER_FAILED;
        sar_shm_group_set_error(task->comm->shm_group, peer_status);
        failure = SAR_SHM_RETRY;
    }
    return failure;
}

enum sar_status sar_shm_coll_check_peers(const struct sar_task *task)
{
    if (sar_shm_coll_calls_differ(task))
        return SAR_CORRUPT;
    SAR_TRY(resolve_failure(task));
    if (task->comm->shm_group->announcing)
        sar_shm_group_close_announced(task->comm->shm_group);
    return SAR_OK;
}

bool sar_shm_coll_needs_mapping(const struct sar_task *task)
{
    for (int r = 0; r < task->comm->ranks; r++)
        if (sar_shm_coll_msg_of(task, r)->needs_mapping)
            return true;
    return false;
}

uint64_t sar_shm_coll_vec_bytes(const struct sar_vec_desc *desc, unsigned index_size, uint64_t nnz)
{
    return sar_add_saturate(sar_align_up(sar_mul_saturate(nnz, index_size)),
                            sar_mul_saturate(nnz, desc->element_size));
}

/* Returns the vector with these indices and values. */
static struct sar_spvec vec_at(void *memory, unsigned index_size, uint64_t nnz)
{
    return (struct sar_spvec){ memory, (unsigned char *)memory + sar_align_up(nnz * index_size),
                               (size_t)nnz };
}

bool sar_shm_coll_can_share_output(const struct sar_task *task)
{
    const struct sar_shm_coll_msg *own = sar_shm_coll_msg_of(task, task->comm->rank);
    for (int r = 0; r < task->comm->ranks; r++)
        if (sar_shm_coll_msg_of(task, r)->index_size != own->index_size)
            return false;
    return own->index_size != 0;
}

static bool all_returned_same(const struct sar_task *task)
{
    const struct sar_shm_coll_msg *own = sar_shm_coll_msg_of(task, task->comm->rank);
    for (int r = 0; r < task->comm->ranks; r++)
        if (!sar_shm_handle_equal(&sar_shm_coll_msg_of(task, r)->result, &own->result))
            return false;
    return task->output->returned != NULL;
}

enum sar_status sar_shm_coll_choose_result(const struct sar_task *task, struct sar_shm_coll_msg *msg,
                                           size_t nnz, struct sar_shm_result **result)
{
    struct sar_shm_result *returned = all_returned_same(task) ? task->output->returned : NULL;
    size_t bytes = sar_shm_coll_vec_bytes(&task->agreed->desc, task->output->index_size, nnz);
    SAR_TRY(sar_shm_result_acquire(task->comm->shm_group, returned, bytes, result));
    msg->result = sar_shm_result_handle(*result);
    return SAR_OK;
}

enum sar_status sar_shm_coll_attach_result(struct sar_task *task, size_t nnz, struct sar_shm_result **result)
{
    const struct sar_shm_coll_msg *first = sar_shm_coll_msg_of(task, 0);
    struct sar_output_dest *output = task->output;
    if (task->comm->rank != 0)
        SAR_TRY(sar_shm_result_attach(task->comm->shm_group, output->returned, &first->result, result));
    task->result.vec = vec_at(sar_shm_result_memory(*result), output->index_size, nnz);
    output->use_shared(output, *result, &task->result.vec);
    return SAR_OK;
}

/* Moves the values first: in a buffer that keeps its memory they move up, and the indices do not move. */
enum sar_status sar_shm_coll_grow(const struct sar_task *task, const struct sar_vec_desc *desc,
                                  struct sar_shm_coll_msg *msg, struct sar_shm_buffer *buffer, size_t nnz,
                                  struct sar_spvec *vec)
{
    struct sar_shm_region before;
    uint64_t bytes = sar_add_saturate(sar_shm_coll_vec_bytes(desc, desc->index_size, nnz), 1);
    SAR_TRY(sar_shm_buffer_grow(buffer, bytes, &before));
    msg->buffer = buffer->handle;
    msg->capacity = nnz;
    msg->needs_mapping |= sar_shm_buffer_announce(task->comm->shm_group, buffer);
    struct sar_spvec grown = vec_at(buffer->own.memory, desc->index_size, nnz);
    if (vec->nnz != 0) {
        memmove(grown.value, vec->value, vec->nnz * desc->element_size);
        memmove(grown.index, vec->index, vec->nnz * desc->index_size);
    }
    sar_shm_region_unmap(&before);
    vec->index = grown.index;
    vec->value = grown.value;
    return SAR_OK;
}

enum sar_status sar_shm_coll_peer_vec(const struct sar_task *task, struct sar_shm_buffer *buffer, int rank,
                                      struct sar_spvec *vec)
{
    const struct sar_shm_coll_msg *msg = sar_shm_coll_msg_of(task, rank);
    void *memory;
    *vec = (struct sar_spvec){ NULL, NULL, 0 };
    if (msg->nnz == 0 && !msg->needs_mapping)
        return SAR_OK;
    SAR_TRY(sar_shm_buffer_attach(buffer, rank, &msg->buffer, &memory));
    if (msg->nnz == 0)
        return SAR_OK;
    *vec = vec_at(memory, task->agreed->desc.index_size, msg->capacity);
    vec->nnz = msg->nnz;
    return SAR_OK;
}
