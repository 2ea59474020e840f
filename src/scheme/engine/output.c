/* SPDX-License-Identifier: BSD-3-Clause */
/* The output in two buffers of the communicator's state. */

#include "scheme/engine/output.h"

/* Reserves an eighth more from the second time on, because a scheme that has grown its output may grow it
 * again. */
static enum sar_status reserve_in_buffers(struct sar_output_dest *output, const struct sar_output_need *need,
                                          struct sar_spvec *vec)
{
    struct sar_output_in_buffers *buffers = (struct sar_output_in_buffers *)output;
    if (vec->index != NULL && need->nnz <= buffers->capacity)
        return SAR_OK;
    size_t capacity = vec->index == NULL ? need->nnz : need->nnz + need->nnz / 8;
    SAR_TRY(sar_buffer_reserve(buffers->index, capacity, need->desc->index_size));
    vec->index = buffers->index->memory;
    SAR_TRY(sar_buffer_reserve(buffers->value, capacity, need->desc->element_size));
    vec->value = buffers->value->memory;
    buffers->capacity = capacity;
    return SAR_OK;
}

struct sar_output_in_buffers sar_output_in_buffers(struct sar_buffer *index, struct sar_buffer *value)
{
    struct sar_output_dest output = { .reserve = reserve_in_buffers };
    return (struct sar_output_in_buffers){ .output = output, .index = index, .value = value };
}
