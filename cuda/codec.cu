/* SPDX-License-Identifier: BSD-3-Clause */
/* Encoding and decoding of payloads on a device: dispatches by format, and implements the format coo with
 * the layout of wire/coo.c. One thread per element. */

#include "cuda/launch.h"

#include "cuda/codec.cuh"
#include "cuda/parallel.cuh"

static cudaStream_t stream_of(const struct sar_device_vec *vector)
{
    return (cudaStream_t)vector->stream;
}

static struct sar_wire_layout layout_of(const struct sar_device_vec *vector)
{
    struct sar_wire_layout layout = {};
    layout.slots = vector->desc->count;
    layout.element_size = vector->desc->element_size;
    layout.index_size = vector->desc->index_size;
    return layout;
}

/* The two arrays of a payload of the format coo. */
static struct sar_spvec arrays_of(const struct sar_wire_layout *layout, void *payload, size_t nnz)
{
    bool values_first = layout->element_size % layout->index_size == 0;
    char *index = (char *)payload + (values_first ? nnz * layout->element_size : 0);
    char *value = (char *)payload + (values_first ? 0 : nnz * layout->index_size);
    return { index, value, nnz };
}

static enum sar_status encode_coo(const struct sar_wire_layout *layout, const struct sar_spvec *vec,
                                  void *payload, cudaStream_t stream)
{
    struct sar_spvec to = arrays_of(layout, payload, vec->nnz);
    SAR_TRY(sar_copy_async(to.index, vec->index, vec->nnz * layout->index_size, stream));
    return sar_copy_async(to.value, vec->value, vec->nnz * layout->element_size, stream);
}

template <class Index>
static enum sar_status check_indices(const struct sar_wire_layout *layout, const struct sar_spvec *from,
                                     void *index, uint32_t *corrupt, cudaStream_t stream)
{
    sar_decode_indices_functor<Index> functor = { (const Index *)from->index, layout->slots, (Index *)index,
                                                  corrupt };
    SAR_TRY(for_each(from->nnz, functor, stream));
    return for_each(from->nnz, sar_is_sorted_functor<Index>{ (const Index *)from->index, corrupt }, stream);
}

static enum sar_status decode_coo(const struct sar_wire_layout *layout, void *payload, struct sar_spvec *vec,
                                  struct sar_device_flags *flags, cudaStream_t stream)
{
    struct sar_spvec from = arrays_of(layout, payload, vec->nnz);
    vec->value = from.value;
    if (layout->index_size == 4)
        return check_indices<uint32_t>(layout, &from, vec->index, &flags->corrupt, stream);
    return check_indices<uint64_t>(layout, &from, vec->index, &flags->corrupt, stream);
}

enum sar_status sar_cuda_encode(const struct sar_device_vec *vector, const struct sar_spvec *vec,
                                const struct sar_encoded *payload)
{
    struct sar_wire_layout layout = layout_of(vector);
    switch (payload->codec_id) {
    case SAR_CODEC_COO: return encode_coo(&layout, vec, payload->memory, stream_of(vector));
    case SAR_CODEC_ELIAS_FANO:
        return sar_cuda_elias_fano_encode(&layout, vec, payload->memory, stream_of(vector));
    case SAR_CODEC_HASH_BITMAP:
        return sar_cuda_bitmap_encode(&layout, vec, payload->memory, stream_of(vector));
    default: return SAR_UNSUPPORTED;
    }
}

enum sar_status sar_cuda_decode(const struct sar_device_vec *vector, const struct sar_encoded *payload,
                                struct sar_spvec *vec, struct sar_device_flags *flags)
{
    struct sar_wire_layout layout = layout_of(vector);
    vec->value = payload->memory;
    switch (payload->codec_id) {
    case SAR_CODEC_COO: return decode_coo(&layout, payload->memory, vec, flags, stream_of(vector));
    case SAR_CODEC_ELIAS_FANO:
        return sar_cuda_elias_fano_decode(&layout, payload->memory, vec, flags, stream_of(vector));
    case SAR_CODEC_HASH_BITMAP:
        return sar_cuda_bitmap_decode(&layout, payload->memory, vec, flags, stream_of(vector));
    default: return SAR_UNSUPPORTED;
    }
}

template <class Bits>
static enum sar_status find_minus_zero(const struct sar_device_vec *vector, const struct sar_spvec *vec,
                                       uint32_t *found)
{
    sar_find_minus_zero_functor<Bits> functor = { (const Bits *)vec->value, found };
    return for_each(vec->nnz * vector->desc->row_len, functor, stream_of(vector));
}

enum sar_status sar_cuda_find_minus_zero(const struct sar_device_vec *vector, const struct sar_spvec *vec,
                                         struct sar_device_flags *flags)
{
    switch (vector->desc->dtype) {
    case SAR_FLOAT: return find_minus_zero<uint32_t>(vector, vec, &flags->minus_zero);
    case SAR_DOUBLE: return find_minus_zero<uint64_t>(vector, vec, &flags->minus_zero);
    case SAR_BF16:
    case SAR_FP16: return find_minus_zero<uint16_t>(vector, vec, &flags->minus_zero);
    default: return SAR_OK;
    }
}

template <class Index>
static enum sar_status slots_to_indices(const struct sar_device_vec *vector, const struct sar_map_part *part,
                                        const struct sar_spvec *vec, void *index)
{
    sar_slots_to_indices_functor<Index> functor = { part->map, part->part, (const uint32_t *)vec->index,
                                                    (Index *)index };
    return for_each(vec->nnz, functor, stream_of(vector));
}

enum sar_status sar_cuda_slots_to_indices(const struct sar_device_vec *vector,
                                          const struct sar_map_part *part, const struct sar_spvec *vec,
                                          void *index)
{
    if (vector->desc->index_size == 4)
        return slots_to_indices<uint32_t>(vector, part, vec, index);
    return slots_to_indices<uint64_t>(vector, part, vec, index);
}
