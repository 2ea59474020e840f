/* SPDX-License-Identifier: BSD-3-Clause */
#include "device/offload.h"

#include <string.h>

static struct sar_vector vector_of(const struct sar_memory *memory, const struct sar_shape *shape, void *buf)
{
    return (struct sar_vector){ shape, buf, memory->place, memory->stream };
}

static struct sar_vector vector_in(const struct sar_load *load)
{
    return vector_of(load->memory, load->shape, load->buf);
}

enum sar_status sar_offload_ingest(const struct sar_memory *memory, const struct sar_shape *shape,
                                   const struct sar_coo *coo, struct sar_run *run)
{
    struct sar_vector vector = vector_of(memory, shape, NULL);
    return memory->accelerator->ingest(&vector, coo, run);
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

static enum sar_status wait(const struct sar_load *load)
{
    return load->memory->accelerator->wait(load->memory->place, load->memory->stream);
}

static enum sar_status take_room(const struct sar_load *load, unsigned index_size, struct sar_mirror room[2],
                                 struct sar_run *run)
{
    size_t nnz = load->marks->nnz;
    SAR_TRY(sar_mirror_take(load->memory, NULL, nnz * index_size, &room[0]));
    SAR_TRY(sar_mirror_take(load->memory, NULL, nnz * load->shape->element_size, &room[1]));
    *run = (struct sar_run){ room[0].host, room[1].host, nnz };
    return SAR_OK;
}

enum sar_status sar_offload_compact(const struct sar_load *load, struct sar_mirror room[2],
                                    struct sar_run *run)
{
    struct sar_vector vector = vector_in(load);
    struct sar_run made;
    SAR_TRY(take_room(load, load->shape->index_size, room, &made));
    SAR_TRY(load->memory->accelerator->compact(&vector, load->marks, &made));
    SAR_TRY(wait(load));
    *run = made;
    return SAR_OK;
}

enum sar_status sar_offload_split(const struct sar_load *load, const struct sar_division *split,
                                  struct sar_mirror room[2], struct sar_run *run, unsigned long long first[])
{
    struct sar_vector vector = vector_in(load);
    struct sar_run made;
    size_t cells = (size_t)split->segments * split->map.parts;
    SAR_TRY(take_room(load, sizeof(uint32_t), room, &made));
    memset(first, 0, (cells + 1) * sizeof *first);
    if (made.nnz != 0) {
        SAR_TRY(load->memory->accelerator->split(&vector, load->marks, split, &made, first));
        SAR_TRY(wait(load));
    }
    first[cells] = made.nnz;
    *run = made;
    return SAR_OK;
}

enum sar_status sar_offload_write(const struct sar_memory *memory, const struct sar_shape *shape, void *buf,
                                  const struct sar_delivery *delivery)
{
    struct sar_vector vector = vector_of(memory, shape, buf);
    SAR_TRY(memory->accelerator->scatter(&vector, delivery->runs, delivery->n, delivery->clear));
    return memory->accelerator->wait(memory->place, memory->stream);
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
    struct sar_vector velocity = *vector;
    velocity.buf = of->velocity;
    run->nnz = marks->nnz;
    if (run->nnz == 0)
        return SAR_OK;
    SAR_TRY(accelerator->compact(vector, marks, run));
    if (of->gradient != NULL)
        SAR_TRY(accelerator->clear(vector, marks));
    if (of->gradient != NULL && of->masking)
        SAR_TRY(accelerator->clear(&velocity, marks));
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
