/* SPDX-License-Identifier: BSD-3-Clause */
#include "scheme/outsource.h"

/* Slots are elements to a device. */
static struct sar_shape shape_of(const struct sar_request *request, const struct sar_layout *layout)
{
    struct sar_shape shape = request->agreed->shape;
    shape.count = layout->span;
    shape.index_size = layout->index_size;
    return shape;
}

/* Where MPI takes the device's memory. */
static enum sar_status encode_apart(struct sar_request *request, const struct sar_envelope *envelope,
                                    const struct sar_wire *wire, const struct sar_run *run,
                                    struct sar_message *message)
{
    struct sar_worker *worker = request->worker;
    struct sar_shape shape = shape_of(request, &envelope->layout);
    SAR_TRY(sar_message_begin_apart(envelope, wire, run, worker->messages, message));
    struct sar_payload payload = { wire->packing, NULL, (size_t)message->bytes - SAR_HEADER_BYTES, run->nnz };
    if (payload.bytes == 0)
        return SAR_OK;
    SAR_TRY(sar_berths_take(&worker->berths, payload.bytes, &payload.memory));
    message->payload = payload.memory;
    return sar_worker_encode_there(worker, &shape, run, &payload);
}

enum sar_status sar_outsource_encode(struct sar_request *request, bool pull, struct sar_layout layout,
                                     const struct sar_run *run, struct sar_message *message,
                                     const struct sar_wire **wire)
{
    const struct sar_wire *chosen = sar_agreed_device_wire(request->agreed, pull, &layout, run->nnz);
    struct sar_envelope envelope = sar_request_envelope(request, layout);
    struct sar_shape shape = shape_of(request, &layout);
    *wire = chosen;
    if (request->worker->direct)
        return encode_apart(request, &envelope, chosen, run, message);
    SAR_TRY(sar_message_begin(&envelope, chosen, run, request->worker->messages, message));
    struct sar_payload payload = { chosen->packing, sar_message_payload(message),
                                   (size_t)message->bytes - SAR_HEADER_BYTES, run->nnz };
    return sar_worker_encode(request->worker, &shape, run, &payload);
}

enum sar_status sar_outsource_await(struct sar_request *request, const struct sar_message *message)
{
    return sar_worker_await(request->worker, sar_message_payload(message));
}

/* No rank sends others apart from their headers. */
static enum sar_status read_host_format(struct sar_request *request, struct sar_envelope *envelope,
                                        const struct sar_message *message, struct sar_run *run)
{
    struct sar_shape shape = shape_of(request, &envelope->layout);
    if (message->payload != NULL)
        return SAR_CORRUPT;
    SAR_TRY(sar_message_decode(envelope, message, request->worker->messages, run));
    return sar_worker_send(request->worker, &shape, run);
}

enum sar_status sar_outsource_read(struct sar_request *request, struct sar_envelope *envelope,
                                   const struct sar_message *message, struct sar_run *run)
{
    const struct sar_layout *layout = &envelope->layout;
    struct sar_shape shape = shape_of(request, layout);
    struct sar_content content;
    SAR_TRY(sar_message_open(envelope, message, &content));
    if (content.wire->packing == SAR_PACKING_NONE)
        return read_host_format(request, envelope, message, run);
    if (content.nnz > layout->span || content.bytes != content.wire->least(layout, content.nnz))
        return SAR_CORRUPT;
    struct sar_payload payload = { content.wire->packing, content.payload, (size_t)content.bytes,
                                   (size_t)content.nnz };
    SAR_TRY(message->payload != NULL ? sar_worker_decode_there(request->worker, &shape, &payload, run)
                                     : sar_worker_decode(request->worker, &shape, &payload, run));
    envelope->note = content.note;
    return SAR_OK;
}

struct sar_shape sar_outsource_shape(const struct sar_request *request)
{
    struct sar_shape shape = request->agreed->shape;
    if (!request->agreed->dense_face)
        shape.index_size = request->sink->index_size;
    return shape;
}

enum sar_status sar_outsource_deliver(struct sar_request *request, size_t times, const struct sar_map *map,
                                      const struct sar_run parts[])
{
    struct sar_worker *worker = request->worker;
    struct sar_shape shape = sar_outsource_shape(request);
    if (worker->pieces == NULL)
        SAR_TRY(sar_request_take(request, times * map->parts, sizeof *worker->pieces, &worker->pieces));
    request->pieces = worker->pieces;
    for (uint32_t p = 0; p < map->parts; p++) {
        struct sar_part part = { *map, p };
        struct sar_run run = parts[p];
        if (run.nnz == 0)
            continue;
        SAR_TRY(sar_worker_unsplit(worker, &shape, &part, &run));
        worker->pieces[request->pieces_n++] = run;
        request->output.nnz += run.nnz;
    }
    return SAR_OK;
}
