/* SPDX-License-Identifier: BSD-3-Clause */
#include "device/ops.h"

#include <string.h>

#include "vector/spvec.h"

enum sar_status sar_device_canonicalize(const struct sar_device_ctx *ctx, const struct sar_vec_desc *desc,
                                        const struct sar_coo_args *coo, struct sar_d2h_copy *copy,
                                        bool *ascends)
{
    struct sar_device_vec vector = sar_device_vec_of(ctx, desc, NULL);
    *copy = (struct sar_d2h_copy){ .index_size = sar_index_type_size(coo->type),
                                   .element_size = desc->element_size };
    SAR_TRY(sar_d2h_copy_open(copy, ctx, coo->nnz));
    return ctx->accelerator->canonicalize(&vector, coo, &copy->device, ascends);
}

void sar_device_free_mask(const struct sar_device_ctx *ctx, struct sar_nonzero_mask *mask)
{
    struct sar_device_vec vector = sar_device_vec_of(ctx, NULL, NULL);
    if (mask->bits != NULL)
        ctx->accelerator->free_mask(&vector, mask);
}

static enum sar_status open_copy(const struct sar_pack_args *args, unsigned index_size,
                                 struct sar_d2h_copy *to)
{
    *to = (struct sar_d2h_copy){ .index_size = index_size, .element_size = args->desc->element_size };
    return sar_d2h_copy_open(to, args->ctx, args->mask->nnz);
}

enum sar_status sar_device_compact(const struct sar_pack_args *args, struct sar_d2h_copy *copy)
{
    struct sar_device_vec vector = sar_device_vec_of(args->ctx, args->desc, args->buf);
    SAR_TRY(open_copy(args, args->desc->index_size, copy));
    if (copy->device.nnz != 0)
        SAR_TRY(args->ctx->accelerator->compact(&vector, args->mask, &copy->device));
    SAR_TRY(sar_d2h_copy_start(copy, args->block_bytes, args->arena));
    return sar_d2h_copy_wait(copy, copy->device.nnz);
}

enum sar_status sar_device_queue_compact_parts(const struct sar_pack_args *args,
                                               const struct sar_partition_layout *layout,
                                               const struct sar_spvec *vec, unsigned long long first[])
{
    struct sar_device_vec vector = sar_device_vec_of(args->ctx, args->desc, args->buf);
    size_t cells = (size_t)layout->segments * layout->map.parts;
    memset(first, 0, cells * sizeof *first);
    first[cells] = vec->nnz;
    return vec->nnz == 0 ? SAR_OK
                         : args->ctx->accelerator->compact_parts(&vector, args->mask, layout, vec, first);
}

enum sar_status sar_device_compact_parts(const struct sar_pack_args *args,
                                         const struct sar_partition_layout *layout, struct sar_d2h_copy *copy,
                                         unsigned long long first[])
{
    SAR_TRY(open_copy(args, sizeof(uint32_t), copy));
    SAR_TRY(sar_device_queue_compact_parts(args, layout, &copy->device, first));
    SAR_TRY(sar_d2h_copy_start(copy, args->block_bytes, args->arena));
    if (copy->device.nnz != 0)
        SAR_TRY(args->ctx->accelerator->wait(args->ctx->device_id, args->ctx->stream));
    return SAR_OK;
}

/* State of a scatter of sparse vectors from host memory. */
struct upload {
    struct sar_device_vec vector;
    const struct sar_accelerator *accelerator;
    struct sar_pinned_ring *ring;
    size_t block_elements, blocks_sent;
};

/* Copies a block and scatters it in the block's own stream. Blocks need no order, since their indices are
 * disjoint. */
static enum sar_status send_block(struct upload *upload, const struct sar_spvec *vec)
{
    size_t k = upload->blocks_sent++, value_bytes = vec->nnz * upload->vector.desc->element_size;
    struct sar_spvec piece = { .nnz = vec->nnz };
    SAR_TRY(sar_pinned_ring_block(upload->ring, k, &piece.value));
    piece.index = (char *)piece.value + upload->block_elements * upload->vector.desc->element_size;
    memcpy(piece.value, vec->value, value_bytes);
    memcpy(piece.index, vec->index, vec->nnz * upload->vector.desc->index_size);
    upload->vector.stream = sar_pinned_ring_stream(upload->ring, k);
    SAR_TRY(upload->accelerator->scatter(&upload->vector, &piece, 1, false));
    return sar_pinned_ring_record(upload->ring, k);
}

static enum sar_status send_vec(struct upload *upload, const struct sar_spvec *vec)
{
    for (size_t from = 0; from < vec->nnz; from += upload->block_elements) {
        size_t to = vec->nnz - from < upload->block_elements ? vec->nnz : from + upload->block_elements;
        struct sar_spvec piece = sar_spvec_slice(upload->vector.desc, vec, from, to);
        SAR_TRY(send_block(upload, &piece));
    }
    return SAR_OK;
}

static enum sar_status send_all(const struct sar_scatter_dst *dst, const struct sar_scatter_src *src,
                                size_t most)
{
    const struct sar_vec_desc *desc = dst->desc;
    size_t size = desc->element_size + desc->index_size;
    size_t block_elements = dst->block_bytes / size > 0 ? dst->block_bytes / size : 1;
    struct upload d = { sar_device_vec_of(dst->ctx, desc, dst->buf), dst->ctx->accelerator, NULL,
                        block_elements < most ? block_elements : most, 0 };
    SAR_TRY(sar_pinned_ring_acquire(dst->ctx, d.block_elements * size, &d.ring));
    enum sar_status status = SAR_OK;
    for (size_t i = 0; i < src->n && status == SAR_OK; i++)
        status = send_vec(&d, &src->vecs[i]);
    enum sar_status released = sar_pinned_ring_release(d.ring);
    return status == SAR_OK ? released : status;
}

enum sar_status sar_device_scatter(const struct sar_scatter_dst *dst, const struct sar_scatter_src *src)
{
    const struct sar_device_ctx *ctx = dst->ctx;
    struct sar_device_vec vector = sar_device_vec_of(ctx, dst->desc, dst->buf);
    size_t resident = src->on_device ? src->n : 0, most = 0;
    if (src->clear || resident != 0)
        SAR_TRY(ctx->accelerator->scatter(&vector, src->vecs, resident, src->clear));
    for (size_t i = resident; i < src->n; i++)
        most = src->vecs[i].nnz > most ? src->vecs[i].nnz : most;
    if (most != 0)
        return send_all(dst, src, most);
    return ctx->accelerator->wait(ctx->device_id, ctx->stream);
}

/* Copies one array through the ring, from block *k on. */
static enum sar_status send_array(struct sar_pinned_ring *ring, size_t block_bytes,
                                  const struct sar_h2d_copy *array, size_t *k)
{
    for (size_t at = 0; at < array->bytes; at += block_bytes, ++*k) {
        size_t n = array->bytes - at < block_bytes ? array->bytes - at : block_bytes;
        void *block;
        SAR_TRY(sar_pinned_ring_block(ring, *k, &block));
        memcpy(block, (const char *)array->src + at, n);
        SAR_TRY(sar_pinned_ring_queue_copy(ring, *k, (char *)array->dst + at, block, n));
        SAR_TRY(sar_pinned_ring_record(ring, *k));
    }
    return SAR_OK;
}

enum sar_status sar_device_upload(const struct sar_device_ctx *ctx, size_t block_bytes,
                                  const struct sar_h2d_copy arrays[], size_t n)
{
    struct sar_pinned_ring *ring;
    enum sar_status status = SAR_OK;
    size_t most = 0, k = 0;
    for (size_t i = 0; i < n; i++)
        most = arrays[i].bytes > most ? arrays[i].bytes : most;
    if (most == 0)
        return SAR_OK;
    block_bytes = block_bytes == 0 || most < block_bytes ? most : block_bytes;
    SAR_TRY(sar_pinned_ring_acquire(ctx, block_bytes, &ring));
    for (size_t i = 0; i < n && status == SAR_OK; i++)
        status = send_array(ring, block_bytes, &arrays[i], &k);
    enum sar_status released = sar_pinned_ring_release(ring);
    return status == SAR_OK ? released : status;
}

/* Copies the marked elements to vec, and zeroes them if there is a gradient. */
static enum sar_status extract(const struct sar_device_vec *vector, const struct sar_device_ctx *ctx,
                               const struct sar_dgc *dgc, const struct sar_nonzero_mask *mask,
                               struct sar_spvec *vec)
{
    const struct sar_accelerator *accelerator = ctx->accelerator;
    vec->nnz = mask->nnz;
    if (vec->nnz == 0)
        return SAR_OK;
    SAR_TRY(accelerator->compact(vector, mask, vec));
    if (dgc->gradient != NULL)
        SAR_TRY(accelerator->clear_selected(vector, dgc, sar_dgc_mask_threshold(dgc), mask));
    return accelerator->wait(ctx->device_id, ctx->stream);
}

enum sar_status sar_device_select(const struct sar_device_ctx *ctx, const struct sar_vec_desc *desc,
                                  const struct sar_dgc *dgc, const struct sar_topk_limit *limit,
                                  struct sar_spvec *vec)
{
    struct sar_device_vec vector = sar_device_vec_of(ctx, desc, dgc->values);
    struct sar_nonzero_mask mask;
    SAR_TRY(ctx->accelerator->select(&vector, dgc, limit, &mask));
    enum sar_status status = extract(&vector, ctx, dgc, &mask, vec);
    sar_device_free_mask(ctx, &mask);
    return status;
}
