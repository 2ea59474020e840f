/* SPDX-License-Identifier: BSD-3-Clause */
#include "scheme/sink.h"

#include "scheme/scheme.h"

/* More than is asked for where it was asked before: who asks twice may ask again. */
static enum sar_status room_in_buffers(struct sar_sink *sink, struct sar_request *request, size_t nnz,
                                       struct sar_run *run)
{
    struct sar_sink_in_buffers *of = (struct sar_sink_in_buffers *)sink;
    const struct sar_shape *shape = &request->agreed->shape;
    if (run->index != NULL && nnz <= of->nnz)
        return SAR_OK;
    size_t ample = run->index == NULL ? nnz : nnz + nnz / 8;
    SAR_TRY(sar_buffer_grow(of->index, ample, shape->index_size));
    run->index = of->index->memory;
    SAR_TRY(sar_buffer_grow(of->value, ample, shape->element_size));
    run->value = of->value->memory;
    of->nnz = ample;
    return SAR_OK;
}

struct sar_sink_in_buffers sar_sink_in_buffers(struct sar_buffer *index, struct sar_buffer *value)
{
    return (struct sar_sink_in_buffers){ .sink.room = room_in_buffers, .index = index, .value = value };
}
