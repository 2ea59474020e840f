/* SPDX-License-Identifier: BSD-3-Clause */
/* Payloads on a device: which format, and the format coo, whose indices and values are where they are in the
 * host's (wire/coo.c). One thread an element. */

#include "cuda/codec.h"

#include "cuda/bitmap.h"
#include "cuda/codec.cuh"
#include "cuda/elias_fano.h"
#include "cuda/parallel.cuh"

static cudaStream_t stream_of(const struct sar_vector *vector)
{
    return (cudaStream_t)vector->stream;
}

static struct sar_layout layout_of(const struct sar_vector *vector)
{
    struct sar_layout layout = {};
    layout.span = vector->shape->count;
    layout.element_size = vector->shape->element_size;
    layout.index_size = vector->shape->index_size;
    return layout;
}

/* Where the two arrays of a payload of coordinates are. */
static struct sar_run arrays_of(const struct sar_layout *layout, void *payload, size_t nnz)
{
    bool values_first = layout->element_size % layout->index_size == 0;
    char *index = (char *)payload + (values_first ? nnz * layout->element_size : 0);
    char *value = (char *)payload + (values_first ? 0 : nnz * layout->index_size);
    return { index, value, nnz };
}

static enum sar_status encode_coo(const struct sar_layout *layout, const struct sar_run *run, void *payload,
                                  cudaStream_t stream)
{
    struct sar_run to = arrays_of(layout, payload, run->nnz);
    SAR_TRY(sar_copy(to.index, run->index, run->nnz * layout->index_size, stream));
    return sar_copy(to.value, run->value, run->nnz * layout->element_size, stream);
}

template <class Index>
static enum sar_status check(const struct sar_layout *layout, const struct sar_run *from, void *index,
                             uint32_t *corrupt, cudaStream_t stream)
{
    sar_check_body<Index> body = { (const Index *)from->index, layout->span, (Index *)index, corrupt };
    SAR_TRY(each(from->nnz, body, stream));
    return each(from->nnz, sar_ascent_body<Index>{ (const Index *)from->index, corrupt }, stream);
}

static enum sar_status decode_coo(const struct sar_layout *layout, void *payload, struct sar_run *run,
                                  struct sar_findings *findings, cudaStream_t stream)
{
    struct sar_run from = arrays_of(layout, payload, run->nnz);
    run->value = from.value;
    if (layout->index_size == 4)
        return check<uint32_t>(layout, &from, run->index, &findings->corrupt, stream);
    return check<uint64_t>(layout, &from, run->index, &findings->corrupt, stream);
}

enum sar_status sar_cuda_encode(const struct sar_vector *vector, const struct sar_run *run,
                                const struct sar_payload *payload)
{
    struct sar_layout layout = layout_of(vector);
    switch (payload->packing) {
    case SAR_PACKING_COO: return encode_coo(&layout, run, payload->memory, stream_of(vector));
    case SAR_PACKING_ELIAS_FANO:
        return sar_cuda_elias_fano_encode(&layout, run, payload->memory, stream_of(vector));
    case SAR_PACKING_HASH_BITMAP:
        return sar_cuda_bitmap_encode(&layout, run, payload->memory, stream_of(vector));
    default: return SAR_UNSUPPORTED;
    }
}

enum sar_status sar_cuda_decode(const struct sar_vector *vector, const struct sar_payload *payload,
                                struct sar_run *run, struct sar_findings *findings)
{
    struct sar_layout layout = layout_of(vector);
    run->value = payload->memory;
    switch (payload->packing) {
    case SAR_PACKING_COO: return decode_coo(&layout, payload->memory, run, findings, stream_of(vector));
    case SAR_PACKING_ELIAS_FANO:
        return sar_cuda_elias_fano_decode(&layout, payload->memory, run, findings, stream_of(vector));
    case SAR_PACKING_HASH_BITMAP:
        return sar_cuda_bitmap_decode(&layout, payload->memory, run, findings, stream_of(vector));
    default: return SAR_UNSUPPORTED;
    }
}

template <class Bits>
static enum sar_status look(const struct sar_vector *vector, const struct sar_run *run, uint32_t *found)
{
    sar_minus_zero_body<Bits> body = { (const Bits *)run->value, found };
    return each(run->nnz * vector->shape->row, body, stream_of(vector));
}

enum sar_status sar_cuda_look(const struct sar_vector *vector, const struct sar_run *run,
                              struct sar_findings *findings)
{
    switch (vector->shape->base) {
    case SAR_FLOAT: return look<uint32_t>(vector, run, &findings->minus_zero);
    case SAR_DOUBLE: return look<uint64_t>(vector, run, &findings->minus_zero);
    case SAR_BF16:
    case SAR_FP16: return look<uint16_t>(vector, run, &findings->minus_zero);
    default: return SAR_OK;
    }
}

template <class Index>
static enum sar_status unsplit(const struct sar_vector *vector, const struct sar_part *part,
                               const struct sar_run *run, void *index)
{
    sar_unsplit_body<Index> body = { part->map, part->number, (const uint32_t *)run->index, (Index *)index };
    return each(run->nnz, body, stream_of(vector));
}

enum sar_status sar_cuda_unsplit(const struct sar_vector *vector, const struct sar_part *part,
                                 const struct sar_run *run, void *index)
{
    if (vector->shape->index_size == 4)
        return unsplit<uint32_t>(vector, part, run, index);
    return unsplit<uint64_t>(vector, part, run, index);
}
