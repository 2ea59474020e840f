/* SPDX-License-Identifier: BSD-3-Clause */
#include "device/offload.h"

#include <string.h>

#include "tensor/stretch.h"

static struct sar_vector vector_of(const struct sar_memory *memory, const struct sar_shape *shape, void *buf)
{
    return (struct sar_vector){ shape, buf, memory->place, memory->stream };
}

static struct sar_vector vector_in(const struct sar_load *load)
{
    return vector_of(load->memory, load->shape, load->buf);
}

enum sar_status sar_offload_ingest(const struct sar_memory *memory, const struct sar_shape *shape,
                                   const struct sar_coo *coo, struct sar_arrival *arrival, bool *ascends)
{
    struct sar_vector vector = vector_of(memory, shape, NULL);
    *arrival = (struct sar_arrival){ .index_size = sar_index_type_size(coo->type),
                                     .element_size = shape->element_size };
    SAR_TRY(sar_arrival_open(arrival, memory, coo->nnz));
    return memory->accelerator->ingest(&vector, coo, &arrival->from, ascends);
}

enum sar_status sar_offload_mark(const struct sar_memory *memory, const struct sar_shape *shape, void *buf,
                                 struct sar_marks *marks)
{
    struct sar_vector vector = vector_of(memory, shape, buf);
    return memory->accelerator->mark(&vector, marks);
}

void sar_offload_unmark(const struct sar_memory *memory, struct sar_marks *marks)
{
    struct sar_vector vector = vector_of(memory, NULL, NULL);
    if (marks->bits != NULL)
        memory->accelerator->unmark(&vector, marks);
}

/* As struct sar_accelerator tells: what has no elements has no arrays. */
static enum sar_status open_arrival(const struct sar_load *load, unsigned index_size, struct sar_arrival *to)
{
    *to = (struct sar_arrival){ .index_size = index_size, .element_size = load->shape->element_size };
    return sar_arrival_open(to, load->memory, load->marks->nnz);
}

enum sar_status sar_offload_compact(const struct sar_load *load, struct sar_arrival *arrival)
{
    struct sar_vector vector = vector_in(load);
    SAR_TRY(open_arrival(load, load->shape->index_size, arrival));
    if (arrival->from.nnz != 0)
        SAR_TRY(load->memory->accelerator->compact(&vector, load->marks, &arrival->from));
    SAR_TRY(sar_arrival_begin(arrival, load->room, load->arena));
    return sar_arrival_until(arrival, arrival->from.nnz);
}

enum sar_status sar_offload_queue_split(const struct sar_load *load, const struct sar_division *split,
                                        const struct sar_run *run, unsigned long long first[])
{
    struct sar_vector vector = vector_in(load);
    size_t cells = (size_t)split->segments * split->map.parts;
    memset(first, 0, cells * sizeof *first);
    first[cells] = run->nnz;
    return run->nnz == 0 ? SAR_OK : load->memory->accelerator->split(&vector, load->marks, split, run, first);
}

enum sar_status sar_offload_split(const struct sar_load *load, const struct sar_division *split,
                                  struct sar_arrival *arrival, unsigned long long first[])
{
    SAR_TRY(open_arrival(load, sizeof(uint32_t), arrival));
    SAR_TRY(sar_offload_queue_split(load, split, &arrival->from, first));
    SAR_TRY(sar_arrival_begin(arrival, load->room, load->arena));
    if (arrival->from.nnz != 0)
        SAR_TRY(load->memory->accelerator->wait(load->memory->place, load->memory->stream));
    return SAR_OK;
}

enum sar_status sar_offload_queue_pack(const struct sar_memory *memory, const struct sar_shape *shape,
                                       void *buf, const struct sar_parcel *parcel)
{
    struct sar_vector vector = vector_of(memory, shape, buf);
    return memory->accelerator->pack(&vector, parcel);
}

enum sar_status sar_offload_queue_unpack(const struct sar_memory *memory, const struct sar_shape *shape,
                                         void *buf, const struct sar_parcel *parcel)
{
    struct sar_vector vector = vector_of(memory, shape, buf);
    return memory->accelerator->unpack(&vector, parcel);
}

/* Elements on their way to a vector, and how many blocks of them there were. */
struct departure {
    struct sar_vector vector;
    const struct sar_accelerator *accelerator;
    struct sar_staging *staging;
    size_t each, blocks;
};

/* Copied to the device, and written to their places there, in the block's own stream: no two blocks have a
 * place in common. */
static enum sar_status send_block(struct departure *d, const struct sar_run *run)
{
    size_t k = d->blocks++, value_bytes = run->nnz * d->vector.shape->element_size;
    struct sar_run piece = { .nnz = run->nnz };
    SAR_TRY(sar_staging_block(d->staging, k, &piece.value));
    piece.index = (char *)piece.value + d->each * d->vector.shape->element_size;
    memcpy(piece.value, run->value, value_bytes);
    memcpy(piece.index, run->index, run->nnz * d->vector.shape->index_size);
    d->vector.stream = sar_staging_lane(d->staging, k);
    SAR_TRY(d->accelerator->scatter(&d->vector, &piece, 1, false));
    return sar_staging_mark(d->staging, k);
}

static enum sar_status send_run(struct departure *d, const struct sar_run *run)
{
    for (size_t from = 0; from < run->nnz; from += d->each) {
        size_t to = run->nnz - from < d->each ? run->nnz : from + d->each;
        struct sar_run piece = sar_run_slice(d->vector.shape, run, from, to);
        SAR_TRY(send_block(d, &piece));
    }
    return SAR_OK;
}

static enum sar_status send_all(const struct sar_destination *to, const struct sar_delivery *delivery,
                                size_t most)
{
    const struct sar_shape *shape = to->shape;
    size_t size = shape->element_size + shape->index_size, each = to->room / size > 0 ? to->room / size : 1;
    struct departure d = { vector_of(to->memory, shape, to->buf), to->memory->accelerator, NULL,
                           each < most ? each : most, 0 };
    SAR_TRY(sar_staging_take(to->memory, d.each * size, &d.staging));
    enum sar_status status = SAR_OK;
    for (size_t i = 0; i < delivery->n && status == SAR_OK; i++)
        status = send_run(&d, &delivery->runs[i]);
    enum sar_status ended = sar_staging_give_back(d.staging);
    return status == SAR_OK ? ended : status;
}

enum sar_status sar_offload_write(const struct sar_destination *to, const struct sar_delivery *delivery)
{
    const struct sar_memory *memory = to->memory;
    struct sar_vector vector = vector_of(memory, to->shape, to->buf);
    size_t there = delivery->there ? delivery->n : 0, most = 0;
    if (delivery->clear || there != 0)
        SAR_TRY(memory->accelerator->scatter(&vector, delivery->runs, there, delivery->clear));
    for (size_t i = there; i < delivery->n; i++)
        most = delivery->runs[i].nnz > most ? delivery->runs[i].nnz : most;
    if (most != 0)
        return send_all(to, delivery, most);
    return memory->accelerator->wait(memory->place, memory->stream);
}

/* From block *k on. */
static enum sar_status send_array(struct sar_staging *staging, size_t room, const struct sar_shipment *array,
                                  size_t *k)
{
    for (size_t at = 0; at < array->bytes; at += room, ++*k) {
        size_t n = array->bytes - at < room ? array->bytes - at : room;
        void *block;
        SAR_TRY(sar_staging_block(staging, *k, &block));
        memcpy(block, (const char *)array->from + at, n);
        SAR_TRY(sar_staging_copy(staging, *k, (char *)array->to + at, block, n));
        SAR_TRY(sar_staging_mark(staging, *k));
    }
    return SAR_OK;
}

enum sar_status sar_offload_send(const struct sar_memory *memory, size_t room,
                                 const struct sar_shipment arrays[], size_t n)
{
    struct sar_staging *staging;
    enum sar_status status = SAR_OK;
    size_t most = 0, k = 0;
    for (size_t i = 0; i < n; i++)
        most = arrays[i].bytes > most ? arrays[i].bytes : most;
    if (most == 0)
        return SAR_OK;
    room = room == 0 || most < room ? most : room;
    SAR_TRY(sar_staging_take(memory, room, &staging));
    for (size_t i = 0; i < n && status == SAR_OK; i++)
        status = send_array(staging, room, &arrays[i], &k);
    enum sar_status ended = sar_staging_give_back(staging);
    return status == SAR_OK ? ended : status;
}

enum sar_status sar_offload_sample(const struct sar_memory *memory, const struct sar_shape *shape,
                                   const struct sar_dgc *of, size_t n, uint32_t seed, uint64_t *magnitudes)
{
    struct sar_vector vector = vector_of(memory, shape, of->values);
    return memory->accelerator->sample(&vector, of, n, seed, magnitudes);
}

/* Bring marked elements to the run's arrays, and zero them where that is asked for. */
static enum sar_status take_out(const struct sar_vector *vector, const struct sar_memory *memory,
                                const struct sar_dgc *of, const struct sar_marks *marks, struct sar_run *run)
{
    const struct sar_accelerator *accelerator = memory->accelerator;
    run->nnz = marks->nnz;
    if (run->nnz == 0)
        return SAR_OK;
    SAR_TRY(accelerator->compact(vector, marks, run));
    if (of->gradient != NULL)
        SAR_TRY(accelerator->clear(vector, of, sar_dgc_masked(of), marks));
    return accelerator->wait(memory->place, memory->stream);
}

enum sar_status sar_offload_select(const struct sar_memory *memory, const struct sar_shape *shape,
                                   const struct sar_dgc *of, const struct sar_cutoff *cutoff,
                                   struct sar_run *run)
{
    struct sar_vector vector = vector_of(memory, shape, of->values);
    struct sar_marks marks;
    SAR_TRY(memory->accelerator->select(&vector, of, cutoff, &marks));
    enum sar_status status = take_out(&vector, memory, of, &marks, run);
    sar_offload_unmark(memory, &marks);
    return status;
}
