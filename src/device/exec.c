/* SPDX-License-Identifier: BSD-3-Clause */
/* The ring provides streams and events only; its blocks have 0 bytes. Even blocks are sends, odd blocks are
 * receives, so that each direction has one stream. */

#include "device/exec.h"

#include <string.h>

#include "vector/reduce.h"

struct sar_stream_alloc {
    void *memory;
    struct sar_stream_alloc *next;
};

/* Returns the block of the ring whose stream and event send n uses. */
static size_t send_block(size_t n)
{
    return 2 * n;
}

_Static_assert(2 * SAR_EXEC_SENDS == SAR_PINNED_RING_BLOCKS, "each payload being encoded has an event");

void sar_device_exec_open(struct sar_device_exec *exec, const struct sar_device_ctx *ctx,
                          struct sar_arena *arena, struct sar_arena *arenas, size_t limit)
{
    *exec = (struct sar_device_exec){ .ctx = ctx, .arena = arena, .arenas = arenas, .msg_arena = arenas };
    exec->blocks = sar_device_blocks_make(ctx);
    exec->pinned_allocator = sar_pinned_allocator_make(ctx, limit);
    for (int i = 0; i < SAR_EXEC_ARENAS; i++)
        arenas[i].allocator = &exec->pinned_allocator.allocator;
}

void sar_device_exec_next_arena(struct sar_device_exec *exec, unsigned round)
{
    exec->msg_arena = &exec->arenas[round % SAR_EXEC_ARENAS];
    sar_arena_recycle(exec->msg_arena);
}

/* Allocates memory for work in a stream. *memory is not NULL, even for zero elements. */
static enum sar_status alloc_in_stream(struct sar_device_exec *exec, void *stream, size_t n, size_t size,
                                       void **memory)
{
    const struct sar_device_ctx *in = exec->ctx;
    void *alloc, *allocated;
    if (n > SIZE_MAX / 2 / size)
        return SAR_NO_MEMORY;
    SAR_TRY(sar_arena_alloc(exec->arena, 1, sizeof *exec->allocs, &alloc));
    SAR_TRY(in->accelerator->stream_ops->alloc(in->device_id, n * size + 1, stream, &allocated));
    *(struct sar_stream_alloc *)alloc = (struct sar_stream_alloc){ allocated, exec->allocs };
    exec->allocs = alloc;
    *memory = allocated;
    return SAR_OK;
}

enum sar_status sar_device_exec_alloc(struct sar_device_exec *exec, size_t n, size_t size, void **memory)
{
    return alloc_in_stream(exec, exec->ctx->stream, n, size, memory);
}

static enum sar_status alloc_spvec(struct sar_device_exec *exec, const struct sar_vec_desc *desc, size_t nnz,
                                   struct sar_spvec *vec)
{
    SAR_TRY(sar_device_exec_alloc(exec, nnz, desc->index_size, &vec->index));
    SAR_TRY(sar_device_exec_alloc(exec, nnz, desc->element_size, &vec->value));
    vec->nnz = nnz;
    return SAR_OK;
}

static enum sar_status copy(struct sar_device_exec *exec, void *to, const void *from, size_t bytes)
{
    const struct sar_device_ctx *in = exec->ctx;
    exec->has_queued = true;
    return bytes == 0 ? SAR_OK : in->accelerator->copy(in->device_id, to, from, bytes, in->stream);
}

/* Allocates and zeroes the flags before the first kernel that sets them. */
static enum sar_status open_flags(struct sar_device_exec *exec)
{
    static const struct sar_device_flags none;
    void *flags;
    if (exec->flags != NULL)
        return SAR_OK;
    SAR_TRY(sar_device_exec_alloc(exec, 1, sizeof none, &flags));
    SAR_TRY(copy(exec, flags, &none, sizeof none));
    exec->flags = flags;
    return SAR_OK;
}

static enum sar_status wait(struct sar_device_exec *exec)
{
    SAR_TRY(exec->ctx->accelerator->wait(exec->ctx->device_id, exec->ctx->stream));
    exec->has_queued = false;
    return SAR_OK;
}

static enum sar_status fetch_flags(struct sar_device_exec *exec)
{
    SAR_TRY(open_flags(exec));
    SAR_TRY(copy(exec, &exec->host_flags, exec->flags, sizeof exec->host_flags));
    return wait(exec);
}

static enum sar_status wait_send(struct sar_device_exec *exec, size_t n)
{
    return exec->ring == NULL ? SAR_OK : sar_pinned_ring_wait(exec->ring, send_block(n));
}

/* A payload that is no longer in exec->sent precedes, in the same stream, the oldest one that is. */
enum sar_status sar_device_exec_wait_encoded(struct sar_device_exec *exec, const void *payload)
{
    for (size_t n = exec->sends; n > 0 && n + SAR_EXEC_SENDS > exec->sends; n--)
        if (exec->sent[(n - 1) % SAR_EXEC_SENDS] == payload)
            return wait_send(exec, n - 1);
    return wait_send(exec, exec->sends);
}

enum sar_status sar_device_exec_wait(struct sar_device_exec *exec)
{
    if (!exec->has_queued)
        return SAR_OK;
    SAR_TRY(wait_send(exec, exec->sends + SAR_EXEC_SENDS - 1));
    SAR_TRY(fetch_flags(exec));
    return exec->host_flags.corrupt != 0 ? SAR_CORRUPT : SAR_OK;
}

/* Waits first: the caller may free host memory that copies use after this call. */
void sar_device_exec_close(struct sar_device_exec *exec)
{
    if (exec->ctx == NULL)
        return;
    enum sar_status waited = exec->has_queued ? wait(exec) : SAR_OK;
    enum sar_status arrived = sar_pinned_ring_release(exec->ring);
    for (struct sar_stream_alloc *alloc = exec->allocs; alloc != NULL; alloc = alloc->next)
        exec->ctx->accelerator->stream_ops->release(exec->ctx->device_id, alloc->memory, exec->ctx->stream);
    exec->pinned_allocator.lost = waited != SAR_OK || arrived != SAR_OK;
    sar_device_blocks_release(&exec->blocks, exec->pinned_allocator.lost);
    for (int i = 0; i < SAR_EXEC_ARENAS; i++) {
        sar_arena_release(&exec->arenas[i]);
        exec->arenas[i].allocator = NULL;
    }
    *exec = (struct sar_device_exec){ .ctx = NULL };
}

enum sar_status sar_device_exec_compact_parts(struct sar_device_exec *exec, const struct sar_pack_args *args,
                                              const struct sar_partition_layout *layout,
                                              struct sar_spvec *vec, unsigned long long first[],
                                              bool *minus_zero)
{
    struct sar_device_vec vector = sar_device_vec_of(exec->ctx, args->desc, args->buf);
    struct sar_vec_desc slots = *args->desc;
    struct sar_spvec made;
    slots.index_size = sizeof(uint32_t);
    SAR_TRY(open_flags(exec));
    SAR_TRY(alloc_spvec(exec, &slots, args->mask->nnz, &made));
    SAR_TRY(sar_device_queue_compact_parts(args, layout, &made, first));
    SAR_TRY(exec->ctx->accelerator->find_minus_zero(&vector, &made, exec->flags));
    SAR_TRY(fetch_flags(exec));
    *minus_zero = exec->host_flags.minus_zero != 0;
    *vec = made;
    return SAR_OK;
}

enum sar_status sar_device_exec_partition(struct sar_device_exec *exec, const struct sar_vec_desc *desc,
                                          const struct sar_partition_layout *layout,
                                          const struct sar_spvec *from, struct sar_spvec *vec,
                                          unsigned long long first[])
{
    struct sar_device_vec vector = sar_device_vec_of(exec->ctx, desc, NULL);
    struct sar_vec_desc slots = *desc;
    struct sar_spvec made;
    size_t cells = (size_t)layout->segments * layout->map.parts;
    slots.index_size = sizeof(uint32_t);
    memset(first, 0, cells * sizeof *first);
    first[cells] = from->nnz;
    SAR_TRY(alloc_spvec(exec, &slots, from->nnz, &made));
    exec->has_queued = true;
    if (from->nnz != 0)
        SAR_TRY(exec->ctx->accelerator->partition(&vector, layout, from, &made, first));
    *vec = made;
    return sar_device_exec_wait(exec);
}

static enum sar_status open_ring(struct sar_device_exec *exec)
{
    return exec->ring != NULL ? SAR_OK : sar_pinned_ring_acquire(exec->ctx, 0, &exec->ring);
}

/* Queues the kernel, and makes the stream of sends wait for it. */
static enum sar_status encode(struct sar_device_exec *exec, const struct sar_vec_desc *desc,
                              const struct sar_spvec *vec, const struct sar_encoded *on_device)
{
    struct sar_device_vec vector = sar_device_vec_of(exec->ctx, desc, NULL);
    SAR_TRY(open_ring(exec));
    exec->has_queued = true;
    SAR_TRY(exec->ctx->accelerator->encode(&vector, vec, on_device));
    return sar_pinned_ring_after_stream(exec->ring, send_block(exec->sends));
}

/* Records that all work of a payload is queued. */
static enum sar_status record_send(struct sar_device_exec *exec, const void *payload)
{
    SAR_TRY(sar_pinned_ring_record(exec->ring, send_block(exec->sends)));
    exec->sent[exec->sends % SAR_EXEC_SENDS] = payload;
    exec->sends++;
    return SAR_OK;
}

enum sar_status sar_device_exec_encode(struct sar_device_exec *exec, const struct sar_vec_desc *desc,
                                       const struct sar_spvec *vec, const struct sar_encoded *payload)
{
    struct sar_encoded on_device = *payload;
    if (payload->bytes == 0)
        return SAR_OK;
    SAR_TRY(sar_device_exec_alloc(exec, payload->bytes, 1, &on_device.memory));
    SAR_TRY(encode(exec, desc, vec, &on_device));
    SAR_TRY(sar_pinned_ring_queue_copy(exec->ring, send_block(exec->sends), payload->memory, on_device.memory,
                                       payload->bytes));
    return record_send(exec, payload->memory);
}

enum sar_status sar_device_exec_encode_in_place(struct sar_device_exec *exec, const struct sar_vec_desc *desc,
                                                const struct sar_spvec *vec,
                                                const struct sar_encoded *payload)
{
    SAR_TRY(encode(exec, desc, vec, payload));
    return record_send(exec, payload->memory);
}

/* Copies a payload to memory of the receive stream, so that the copy overlaps with kernels on earlier
 * payloads. */
static enum sar_status fetch(struct sar_device_exec *exec, const struct sar_encoded *payload,
                             void **on_device)
{
    size_t k = 2 * exec->receives++ + 1;
    SAR_TRY(open_ring(exec));
    SAR_TRY(alloc_in_stream(exec, sar_pinned_ring_stream(exec->ring, k), payload->bytes, 1, on_device));
    exec->has_queued = true;
    SAR_TRY(sar_pinned_ring_queue_copy(exec->ring, k, *on_device, payload->memory, payload->bytes));
    SAR_TRY(sar_pinned_ring_record(exec->ring, k));
    return sar_pinned_ring_before_stream(exec->ring, k);
}

enum sar_status sar_device_exec_decode_in_place(struct sar_device_exec *exec, const struct sar_vec_desc *desc,
                                                const struct sar_encoded *payload, struct sar_spvec *vec)
{
    struct sar_device_vec vector = sar_device_vec_of(exec->ctx, desc, NULL);
    struct sar_spvec made = { vec->index, NULL, payload->nnz };
    SAR_TRY(open_flags(exec));
    if (payload->codec_id != SAR_CODEC_VALUES)
        SAR_TRY(sar_device_exec_alloc(exec, payload->nnz, desc->index_size, &made.index));
    exec->has_queued = true;
    SAR_TRY(exec->ctx->accelerator->decode(&vector, payload, &made, exec->flags));
    *vec = made;
    return SAR_OK;
}

enum sar_status sar_device_exec_decode(struct sar_device_exec *exec, const struct sar_vec_desc *desc,
                                       const struct sar_encoded *payload, struct sar_spvec *vec)
{
    struct sar_encoded on_device = *payload;
    SAR_TRY(open_flags(exec));
    SAR_TRY(fetch(exec, payload, &on_device.memory));
    return sar_device_exec_decode_in_place(exec, desc, &on_device, vec);
}

enum sar_status sar_device_exec_copy_strided(struct sar_device_exec *exec,
                                             const struct sar_strided_copy *copy)
{
    const struct sar_device_ctx *in = exec->ctx;
    exec->has_queued = true;
    return copy->pieces == 0 ? SAR_OK : in->accelerator->copy_strided(in->device_id, copy, in->stream);
}

enum sar_status sar_device_exec_hash_indices(struct sar_device_exec *exec, const struct sar_spvec *vec,
                                             uint32_t **hash)
{
    struct sar_device_vec vector = sar_device_vec_of(exec->ctx, NULL, NULL);
    void *memory;
    SAR_TRY(sar_device_exec_alloc(exec, 1, sizeof **hash, &memory));
    exec->has_queued = true;
    SAR_TRY(exec->ctx->accelerator->hash_indices(&vector, vec, memory));
    *hash = memory;
    return SAR_OK;
}

enum sar_status sar_device_exec_fetch_hash(struct sar_device_exec *exec, const uint32_t *hash,
                                           uint32_t *value)
{
    SAR_TRY(copy(exec, &exec->host_hash, hash, sizeof exec->host_hash));
    SAR_TRY(exec->ctx->accelerator->wait(exec->ctx->device_id, exec->ctx->stream));
    *value = exec->host_hash;
    return SAR_OK;
}

enum sar_status sar_device_exec_expect_hash(struct sar_device_exec *exec, const uint32_t *hash,
                                            uint32_t expected)
{
    struct sar_device_vec vector = sar_device_vec_of(exec->ctx, NULL, NULL);
    SAR_TRY(open_flags(exec));
    exec->has_queued = true;
    return exec->ctx->accelerator->expect_hash(&vector, hash, expected, exec->flags);
}

enum sar_status sar_device_exec_upload(struct sar_device_exec *exec, const struct sar_vec_desc *desc,
                                       struct sar_spvec *vec)
{
    struct sar_spvec made;
    SAR_TRY(alloc_spvec(exec, desc, vec->nnz, &made));
    SAR_TRY(copy(exec, made.index, vec->index, vec->nnz * desc->index_size));
    SAR_TRY(copy(exec, made.value, vec->value, vec->nnz * desc->element_size));
    *vec = made;
    return SAR_OK;
}

enum sar_status sar_device_exec_reduce(struct sar_device_exec *exec, const struct sar_vec_desc *desc,
                                       const struct sar_spvec vecs[], size_t n, struct sar_spvec *out)
{
    struct sar_spvec made;
    SAR_TRY(alloc_spvec(exec, desc, sar_reduce_max_nnz(desc, vecs, n), &made));
    SAR_TRY(sar_device_exec_reduce_into(exec, desc, vecs, n, &made));
    *out = made;
    return SAR_OK;
}

enum sar_status sar_device_exec_reduce_into(struct sar_device_exec *exec, const struct sar_vec_desc *desc,
                                            const struct sar_spvec vecs[], size_t n, struct sar_spvec *out)
{
    struct sar_device_vec vector = sar_device_vec_of(exec->ctx, desc, NULL);
    exec->has_queued = true;
    return exec->ctx->accelerator->reduce(&vector, vecs, n, out);
}

enum sar_status sar_device_exec_slots_to_indices(struct sar_device_exec *exec,
                                                 const struct sar_vec_desc *desc,
                                                 const struct sar_map_part *part, struct sar_spvec *vec)
{
    struct sar_device_vec vector = sar_device_vec_of(exec->ctx, desc, NULL);
    void *index;
    SAR_TRY(sar_device_exec_alloc(exec, vec->nnz, desc->index_size, &index));
    exec->has_queued = true;
    SAR_TRY(exec->ctx->accelerator->slots_to_indices(&vector, part, vec, index));
    vec->index = index;
    return SAR_OK;
}
