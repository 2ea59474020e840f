/* SPDX-License-Identifier: BSD-3-Clause */
#include "device/worker.h"

#include <string.h>

#include "tensor/reduce.h"

struct sar_loan {
    void *memory;
    struct sar_loan *next;
};

struct sar_worker sar_worker_make(const struct sar_memory *memory, struct sar_arena *arena)
{
    return (struct sar_worker){ .memory = memory, .arena = arena };
}

static const struct sar_accelerator *accelerator_of(const struct sar_worker *worker)
{
    return worker->memory->accelerator;
}

static struct sar_vector vector_of(const struct sar_worker *worker, const struct sar_shape *shape)
{
    return (struct sar_vector){ shape, NULL, worker->memory->place, worker->memory->stream };
}

/* Never none, even of no elements. */
static enum sar_status borrow(struct sar_worker *worker, size_t n, size_t size, void **memory)
{
    const struct sar_memory *in = worker->memory;
    void *loan, *borrowed;
    if (n > SIZE_MAX / 2 / size)
        return SAR_NO_MEMORY;
    SAR_TRY(sar_arena_take(worker->arena, 1, sizeof *worker->loans, &loan));
    SAR_TRY(in->accelerator->lanes->take(in->place, n * size + 1, in->stream, &borrowed));
    *(struct sar_loan *)loan = (struct sar_loan){ borrowed, worker->loans };
    worker->loans = loan;
    *memory = borrowed;
    return SAR_OK;
}

static enum sar_status borrow_run(struct sar_worker *worker, const struct sar_shape *shape, size_t nnz,
                                  struct sar_run *run)
{
    SAR_TRY(borrow(worker, nnz, shape->index_size, &run->index));
    SAR_TRY(borrow(worker, nnz, shape->element_size, &run->value));
    run->nnz = nnz;
    return SAR_OK;
}

static enum sar_status copy(struct sar_worker *worker, void *to, const void *from, size_t bytes)
{
    const struct sar_memory *in = worker->memory;
    worker->queued = true;
    return bytes == 0 ? SAR_OK : in->accelerator->copy(in->place, to, from, bytes, in->stream);
}

/* Before the first work that may find something. */
static enum sar_status begin(struct sar_worker *worker)
{
    static const struct sar_findings none;
    void *findings;
    if (worker->findings != NULL)
        return SAR_OK;
    SAR_TRY(borrow(worker, 1, sizeof none, &findings));
    SAR_TRY(copy(worker, findings, &none, sizeof none));
    worker->findings = findings;
    return SAR_OK;
}

static enum sar_status wait(struct sar_worker *worker)
{
    SAR_TRY(accelerator_of(worker)->wait(worker->memory->place, worker->memory->stream));
    worker->queued = false;
    return SAR_OK;
}

static enum sar_status fetch_findings(struct sar_worker *worker)
{
    SAR_TRY(begin(worker));
    SAR_TRY(copy(worker, &worker->found, worker->findings, sizeof worker->found));
    return wait(worker);
}

enum sar_status sar_worker_wait(struct sar_worker *worker)
{
    if (!worker->queued)
        return SAR_OK;
    SAR_TRY(fetch_findings(worker));
    return worker->found.corrupt != 0 ? SAR_CORRUPT : SAR_OK;
}

/* The host's memory that is read and written may be gone thereafter. */
void sar_worker_end(struct sar_worker *worker)
{
    if (worker->queued)
        (void)wait(worker);
    for (struct sar_loan *loan = worker->loans; loan != NULL; loan = loan->next)
        accelerator_of(worker)->lanes->give_back(worker->memory->place, loan->memory, worker->memory->stream);
    worker->loans = NULL;
    worker->findings = NULL;
}

enum sar_status sar_worker_split(struct sar_worker *worker, const struct sar_load *load,
                                 const struct sar_division *split, struct sar_run *run,
                                 unsigned long long first[], bool *minus_zero)
{
    struct sar_vector vector = vector_of(worker, load->shape);
    struct sar_shape slots = *load->shape;
    struct sar_run made;
    vector.buf = load->buf;
    slots.index_size = sizeof(uint32_t);
    SAR_TRY(begin(worker));
    SAR_TRY(borrow_run(worker, &slots, load->marks->nnz, &made));
    SAR_TRY(sar_offload_queue_split(load, split, &made, first));
    SAR_TRY(accelerator_of(worker)->look(&vector, &made, worker->findings));
    SAR_TRY(fetch_findings(worker));
    *minus_zero = worker->found.minus_zero != 0;
    *run = made;
    return SAR_OK;
}

enum sar_status sar_worker_partition(struct sar_worker *worker, const struct sar_shape *shape,
                                     const struct sar_division *how, const struct sar_run *from,
                                     struct sar_run *run, unsigned long long first[])
{
    struct sar_vector vector = vector_of(worker, shape);
    struct sar_shape slots = *shape;
    struct sar_run made;
    size_t cells = (size_t)how->segments * how->map.parts;
    slots.index_size = sizeof(uint32_t);
    memset(first, 0, cells * sizeof *first);
    first[cells] = from->nnz;
    SAR_TRY(borrow_run(worker, &slots, from->nnz, &made));
    worker->queued = true;
    if (from->nnz != 0)
        SAR_TRY(accelerator_of(worker)->partition(&vector, how, from, &made, first));
    *run = made;
    return sar_worker_wait(worker);
}

enum sar_status sar_worker_encode(struct sar_worker *worker, const struct sar_shape *shape,
                                  const struct sar_run *run, const struct sar_payload *payload)
{
    struct sar_vector vector = vector_of(worker, shape);
    struct sar_payload there = *payload;
    if (payload->bytes == 0)
        return SAR_OK;
    SAR_TRY(borrow(worker, payload->bytes, 1, &there.memory));
    SAR_TRY(accelerator_of(worker)->encode(&vector, run, &there));
    return copy(worker, payload->memory, there.memory, payload->bytes);
}

enum sar_status sar_worker_decode(struct sar_worker *worker, const struct sar_shape *shape,
                                  const struct sar_payload *payload, struct sar_run *run)
{
    struct sar_vector vector = vector_of(worker, shape);
    struct sar_payload there = *payload;
    struct sar_run made = { NULL, NULL, payload->nnz };
    SAR_TRY(begin(worker));
    SAR_TRY(borrow(worker, payload->bytes, 1, &there.memory));
    SAR_TRY(borrow(worker, payload->nnz, shape->index_size, &made.index));
    SAR_TRY(copy(worker, there.memory, payload->memory, payload->bytes));
    SAR_TRY(accelerator_of(worker)->decode(&vector, &there, &made, worker->findings));
    *run = made;
    return SAR_OK;
}

enum sar_status sar_worker_send(struct sar_worker *worker, const struct sar_shape *shape, struct sar_run *run)
{
    struct sar_run made;
    SAR_TRY(borrow_run(worker, shape, run->nnz, &made));
    SAR_TRY(copy(worker, made.index, run->index, run->nnz * shape->index_size));
    SAR_TRY(copy(worker, made.value, run->value, run->nnz * shape->element_size));
    *run = made;
    return SAR_OK;
}

enum sar_status sar_worker_reduce(struct sar_worker *worker, const struct sar_shape *shape,
                                  const struct sar_run runs[], size_t n, struct sar_run *out)
{
    struct sar_run made;
    SAR_TRY(borrow_run(worker, shape, sar_reduce_bound(shape, runs, n), &made));
    SAR_TRY(sar_worker_reduce_into(worker, shape, runs, n, &made));
    *out = made;
    return SAR_OK;
}

enum sar_status sar_worker_reduce_into(struct sar_worker *worker, const struct sar_shape *shape,
                                       const struct sar_run runs[], size_t n, struct sar_run *out)
{
    struct sar_vector vector = vector_of(worker, shape);
    worker->queued = true;
    return accelerator_of(worker)->reduce(&vector, runs, n, out);
}

enum sar_status sar_worker_unsplit(struct sar_worker *worker, const struct sar_shape *shape,
                                   const struct sar_part *part, struct sar_run *run)
{
    struct sar_vector vector = vector_of(worker, shape);
    void *index;
    SAR_TRY(borrow(worker, run->nnz, shape->index_size, &index));
    worker->queued = true;
    SAR_TRY(accelerator_of(worker)->unsplit(&vector, part, run, index));
    run->index = index;
    return SAR_OK;
}
