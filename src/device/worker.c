/* SPDX-License-Identifier: BSD-3-Clause */
#include "device/worker.h"

#include <string.h>

#include "tensor/reduce.h"

struct sar_loan {
    void *memory;
    struct sar_loan *next;
};

/* Blocks of the ring whose lanes are used, each for one direction. */
static size_t departure(size_t n)
{
    return 2 * n;
}

static size_t arrival(size_t n)
{
    return 2 * n + 1;
}

_Static_assert(2 * SAR_WORKER_LEAVING == SAR_STAGING_BLOCKS, "each payload that leaves has an event");

void sar_worker_open(struct sar_worker *worker, const struct sar_memory *memory, struct sar_arena *arena,
                     struct sar_arena *turns, size_t most)
{
    *worker = (struct sar_worker){ .memory = memory, .arena = arena, .turns = turns, .messages = turns };
    worker->berths = sar_berths_make(memory);
    worker->pinned = sar_pinned_make(memory, most);
    for (int i = 0; i < SAR_WORKER_TURNS; i++)
        turns[i].supply = &worker->pinned.supply;
}

void sar_worker_turn(struct sar_worker *worker, unsigned turn)
{
    worker->messages = &worker->turns[turn % SAR_WORKER_TURNS];
    sar_arena_recycle(worker->messages);
}

static const struct sar_accelerator *accelerator_of(const struct sar_worker *worker)
{
    return worker->memory->accelerator;
}

static struct sar_vector vector_of(const struct sar_worker *worker, const struct sar_shape *shape)
{
    return (struct sar_vector){ shape, NULL, worker->memory->place, worker->memory->stream };
}

/* For work in a stream; never none, even of no elements. */
static enum sar_status borrow_in(struct sar_worker *worker, void *stream, size_t n, size_t size,
                                 void **memory)
{
    const struct sar_memory *in = worker->memory;
    void *loan, *borrowed;
    if (n > SIZE_MAX / 2 / size)
        return SAR_NO_MEMORY;
    SAR_TRY(sar_arena_take(worker->arena, 1, sizeof *worker->loans, &loan));
    SAR_TRY(in->accelerator->lanes->take(in->place, n * size + 1, stream, &borrowed));
    *(struct sar_loan *)loan = (struct sar_loan){ borrowed, worker->loans };
    worker->loans = loan;
    *memory = borrowed;
    return SAR_OK;
}

static enum sar_status borrow(struct sar_worker *worker, size_t n, size_t size, void **memory)
{
    return borrow_in(worker, worker->memory->stream, n, size, memory);
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

static enum sar_status await(struct sar_worker *worker, size_t n)
{
    return worker->lanes == NULL ? SAR_OK : sar_staging_await(worker->lanes, departure(n));
}

/* What left before the last ones did so in the same lane as the first of these. */
enum sar_status sar_worker_await(struct sar_worker *worker, const void *payload)
{
    for (size_t n = worker->left; n > 0 && n + SAR_WORKER_LEAVING > worker->left; n--)
        if (worker->leaving[(n - 1) % SAR_WORKER_LEAVING] == payload)
            return await(worker, n - 1);
    return await(worker, worker->left);
}

enum sar_status sar_worker_wait(struct sar_worker *worker)
{
    if (!worker->queued)
        return SAR_OK;
    SAR_TRY(await(worker, worker->left + SAR_WORKER_LEAVING - 1));
    SAR_TRY(fetch_findings(worker));
    return worker->found.corrupt != 0 ? SAR_CORRUPT : SAR_OK;
}

/* The host's memory that is read and written may be gone thereafter, or somebody else's. */
void sar_worker_end(struct sar_worker *worker)
{
    if (worker->memory == NULL)
        return;
    enum sar_status waited = worker->queued ? wait(worker) : SAR_OK;
    enum sar_status arrived = sar_staging_give_back(worker->lanes);
    for (struct sar_loan *loan = worker->loans; loan != NULL; loan = loan->next)
        accelerator_of(worker)->lanes->give_back(worker->memory->place, loan->memory, worker->memory->stream);
    worker->pinned.lost = waited != SAR_OK || arrived != SAR_OK;
    sar_berths_end(&worker->berths, worker->pinned.lost);
    for (int i = 0; i < SAR_WORKER_TURNS; i++) {
        sar_arena_leave(&worker->turns[i]);
        worker->turns[i].supply = NULL;
    }
    *worker = (struct sar_worker){ .memory = NULL };
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

static enum sar_status open_lanes(struct sar_worker *worker)
{
    return worker->lanes != NULL ? SAR_OK : sar_staging_take(worker->memory, 0, &worker->lanes);
}

/* Queue it, and for its lane to have what is in the stream by then. */
static enum sar_status encode(struct sar_worker *worker, const struct sar_shape *shape,
                              const struct sar_run *run, const struct sar_payload *there)
{
    struct sar_vector vector = vector_of(worker, shape);
    SAR_TRY(open_lanes(worker));
    worker->queued = true;
    SAR_TRY(accelerator_of(worker)->encode(&vector, run, there));
    return sar_staging_follow(worker->lanes, departure(worker->left));
}

/* All is queued for a payload. */
static enum sar_status let_leave(struct sar_worker *worker, const void *payload)
{
    SAR_TRY(sar_staging_mark(worker->lanes, departure(worker->left)));
    worker->leaving[worker->left % SAR_WORKER_LEAVING] = payload;
    worker->left++;
    return SAR_OK;
}

enum sar_status sar_worker_encode(struct sar_worker *worker, const struct sar_shape *shape,
                                  const struct sar_run *run, const struct sar_payload *payload)
{
    struct sar_payload there = *payload;
    if (payload->bytes == 0)
        return SAR_OK;
    SAR_TRY(borrow(worker, payload->bytes, 1, &there.memory));
    SAR_TRY(encode(worker, shape, run, &there));
    SAR_TRY(sar_staging_copy(worker->lanes, departure(worker->left), payload->memory, there.memory,
                             payload->bytes));
    return let_leave(worker, payload->memory);
}

enum sar_status sar_worker_encode_there(struct sar_worker *worker, const struct sar_shape *shape,
                                        const struct sar_run *run, const struct sar_payload *payload)
{
    SAR_TRY(encode(worker, shape, run, payload));
    return let_leave(worker, payload->memory);
}

/* Copied while kernels work on the payload before: its memory is the lane's. */
static enum sar_status fetch(struct sar_worker *worker, const struct sar_payload *payload, void **there)
{
    size_t k = arrival(worker->came++);
    SAR_TRY(open_lanes(worker));
    SAR_TRY(borrow_in(worker, sar_staging_lane(worker->lanes, k), payload->bytes, 1, there));
    worker->queued = true;
    SAR_TRY(sar_staging_copy(worker->lanes, k, *there, payload->memory, payload->bytes));
    SAR_TRY(sar_staging_mark(worker->lanes, k));
    return sar_staging_join(worker->lanes, k);
}

enum sar_status sar_worker_decode_there(struct sar_worker *worker, const struct sar_shape *shape,
                                        const struct sar_payload *payload, struct sar_run *run)
{
    struct sar_vector vector = vector_of(worker, shape);
    struct sar_run made = { NULL, NULL, payload->nnz };
    SAR_TRY(begin(worker));
    SAR_TRY(borrow(worker, payload->nnz, shape->index_size, &made.index));
    worker->queued = true;
    SAR_TRY(accelerator_of(worker)->decode(&vector, payload, &made, worker->findings));
    *run = made;
    return SAR_OK;
}

enum sar_status sar_worker_decode(struct sar_worker *worker, const struct sar_shape *shape,
                                  const struct sar_payload *payload, struct sar_run *run)
{
    struct sar_payload there = *payload;
    SAR_TRY(begin(worker));
    SAR_TRY(fetch(worker, payload, &there.memory));
    return sar_worker_decode_there(worker, shape, &there, run);
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
