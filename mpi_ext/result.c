/* SPDX-License-Identifier: BSD-3-Clause */
#include "mpi_ext/result.h"

#include <stdlib.h>

#include "mpi_ext/arguments.h"
#include "mpi_ext/error.h"
#include "mpi_ext/memory.h"

static void free_arrays(struct sar_arrays *arrays)
{
    if (arrays->storage != NULL) {
        sar_storage_let_go(arrays->storage);
    } else {
        free(arrays->index);
        free(arrays->value);
    }
    *arrays = (struct sar_arrays){ 0 };
}

static bool allocate(struct sar_arrays *arrays, uint64_t index_bytes, uint64_t value_bytes)
{
    if (index_bytes > SIZE_MAX - 1 || value_bytes > SIZE_MAX - 1)
        return false;
    struct sar_arrays made = { malloc(index_bytes + 1), malloc(value_bytes + 1), index_bytes, value_bytes,
                               NULL };
    if (made.index == NULL || made.value == NULL)
        free_arrays(&made);
    *arrays = made;
    return made.index != NULL;
}

static bool holds(const struct sar_arrays *arrays, uint64_t index_bytes, uint64_t value_bytes)
{
    return arrays->index != NULL && arrays->storage == NULL && arrays->index_bytes >= index_bytes &&
           arrays->value_bytes >= value_bytes;
}

/* Larger arrays in place of `next`, with the elements that the run has so far. */
static enum sar_status enlarge(struct MPIX_Sparse_result_s *result, const struct sar_shape *shape,
                               uint64_t index_bytes, uint64_t value_bytes, const struct sar_run *run)
{
    struct sar_arrays made;
    if (!allocate(&made, index_bytes, value_bytes))
        return SAR_NO_MEMORY;
    sar_run_copy(shape, run, &(struct sar_run){ made.index, made.value, 0 });
    free_arrays(&result->next);
    result->next = made;
    return SAR_OK;
}

/* The scheme writes its own narrow indices at the front of the array; commit widens them. */
static enum sar_status room(struct sar_sink *sink, struct sar_request *request, size_t nnz,
                            struct sar_run *run)
{
    struct MPIX_Sparse_result_s *result = (struct MPIX_Sparse_result_s *)sink;
    const struct sar_shape *shape = &request->agreed->shape;
    uint64_t index_bytes = sar_times(nnz, result->sink.index_size);
    uint64_t value_bytes = sar_times(nnz, shape->element_size);
    bool held = result->next.index == NULL && holds(&result->held, index_bytes, value_bytes);
    if (!held && !holds(&result->next, index_bytes, value_bytes))
        SAR_TRY(enlarge(result, shape, index_bytes, value_bytes, run));
    struct sar_arrays *into = held ? &result->held : &result->next;
    result->spoilt |= held && request->streams;
    *run = (struct sar_run){ into->index, into->value, run->nnz };
    return SAR_OK;
}

static void adopt(struct sar_sink *sink, struct sar_storage *storage, const struct sar_run *run)
{
    struct MPIX_Sparse_result_s *result = (struct MPIX_Sparse_result_s *)sink;
    struct sar_arrays arrays = { run->index, run->value, 0, 0, storage };
    if (result->held.storage == storage) {
        result->held = arrays;
        result->spoilt = true;
        return;
    }
    sar_storage_keep(storage);
    result->next = arrays;
}

static void free_shown(struct MPIX_Sparse_result_s *result)
{
    const struct sar_memory *memory = &result->memory;
    if (memory->accelerator != NULL && result->shown.index != NULL)
        memory->accelerator->release(memory->place, result->shown.index);
    if (memory->accelerator != NULL && result->shown.value != NULL)
        memory->accelerator->release(memory->place, result->shown.value);
    result->shown = (struct sar_arrays){ 0 };
}

/* With some to spare, since the next result is about as large. */
static enum sar_status make_shown(struct MPIX_Sparse_result_s *result, size_t index_bytes, size_t value_bytes)
{
    const struct sar_memory *memory = &result->memory;
    struct sar_arrays *shown = &result->shown;
    if (shown->index != NULL && shown->index_bytes >= index_bytes && shown->value_bytes >= value_bytes)
        return SAR_OK;
    free_shown(result);
    index_bytes += index_bytes / 8 + 1;
    value_bytes += value_bytes / 8 + 1;
    SAR_TRY(memory->accelerator->allocate(memory->place, index_bytes, &shown->index));
    SAR_TRY(memory->accelerator->allocate(memory->place, value_bytes, &shown->value));
    shown->index_bytes = index_bytes;
    shown->value_bytes = value_bytes;
    return SAR_OK;
}

/* Memory that what was shown before need not be in. */
static void show_in(struct MPIX_Sparse_result_s *result, const struct sar_memory *memory)
{
    if (memory->accelerator != result->memory.accelerator || memory->place != result->memory.place)
        free_shown(result);
    result->memory = *memory;
}

static enum sar_status lend(struct sar_sink *sink, const struct sar_memory *memory,
                            const struct sar_shape *shape, size_t nnz, struct sar_run *run)
{
    struct MPIX_Sparse_result_s *result = (struct MPIX_Sparse_result_s *)sink;
    result->spoilt = result->lent = true;
    show_in(result, memory);
    SAR_TRY(make_shown(result, nnz * sink->index_size, nnz * shape->element_size));
    *run = (struct sar_run){ result->shown.index, result->shown.value, nnz };
    return SAR_OK;
}

static struct MPIX_Sparse_result_s *make(void)
{
    struct MPIX_Sparse_result_s *result = calloc(1, sizeof *result);
    if (result != NULL)
        result->sink = (struct sar_sink){ .room = room, .adopt = adopt, .lend = lend };
    return result;
}

/* From the back, so that no index is overwritten before it is read. */
static void widen(void *index, size_t n)
{
    const uint32_t *narrow = index;
    uint64_t *wide = index;
    for (size_t i = n; i-- > 0;)
        wide[i] = narrow[i];
}

static void commit(struct MPIX_Sparse_result_s *result, const struct sar_call *call)
{
    if (result->next.index != NULL) {
        free_arrays(&result->held);
        result->held = result->next;
        result->next = (struct sar_arrays){ 0 };
    }
    if (!result->lent && result->held.storage == NULL && result->sink.index_size > call->shape.index_size)
        widen(result->held.index, call->nnz_out);
    result->spoilt = false;
    result->nnz = call->nnz_out;
    result->shape = call->shape;
    result->index_size = result->sink.index_size;
}

/* Copy what is held to where the caller is shown it, through blocks of so many bytes. */
static enum sar_status show(struct MPIX_Sparse_result_s *result, size_t room)
{
    const struct sar_memory *memory = &result->memory;
    size_t index_bytes = result->nnz * result->index_size;
    size_t value_bytes = result->nnz * result->shape.element_size;
    if (memory->accelerator == NULL)
        return SAR_OK;
    SAR_TRY(sar_memory_ready(memory));
    SAR_TRY(make_shown(result, index_bytes, value_bytes));
    const struct sar_shipment arrays[] = { { result->shown.index, result->held.index, index_bytes },
                                           { result->shown.value, result->held.value, value_bytes } };
    return sar_offload_send(memory, room, arrays, 2);
}

/* A rank without elements, that has no arrays to tell by, is shown its result where the last one was. */
static void place(struct MPIX_Sparse_result_s *result, const struct sar_call *call)
{
    bool known = call->coo.indices != NULL || call->coo.values != NULL || result->memory.accelerator == NULL;
    if (known)
        show_in(result, &call->memory);
}

static void abandon(struct MPIX_Sparse_result_s *result)
{
    free_arrays(&result->next);
    if (result->spoilt)
        result->nnz = 0;
    result->spoilt = result->lent = false;
}

void sar_result_open(struct sar_into *into, MPIX_Sparse_result *result, struct sar_call *call)
{
    bool known = result != NULL && *result != MPIX_SPARSE_RESULT_NULL, taken = known && (*result)->taken;
    *into = (struct sar_into){ result, known && !taken ? *result : make(), !known || taken };
    enum sar_status status = into->made == NULL ? SAR_NO_MEMORY : SAR_OK;
    if (result == NULL || taken)
        status = SAR_BAD_RESULT;
    sar_blame(&call->verdict, status, taken ? SAR_FAULT_IN_USE : SAR_FAULT_NULL);
    if (into->made == NULL)
        return;
    into->made->taken = true;
    into->made->sink.index_size = sar_index_type_size(call->coo.type);
    into->made->sink.back = into->made->held.storage;
    call->sink = &into->made->sink;
}

/* What cannot be shown is lost. */
static enum sar_status settle(struct MPIX_Sparse_result_s *result, const struct sar_call *call)
{
    bool lent = result->lent;
    commit(result, call);
    result->lent = false;
    if (lent)
        return SAR_OK;
    place(result, call);
    enum sar_status status = show(result, call->room);
    if (status != SAR_OK)
        result->nnz = 0;
    return status;
}

int sar_result_close(MPI_Comm comm, const char *function, struct sar_into *into, const struct sar_call *call,
                     int code)
{
    if (into->made == NULL)
        return code;
    into->made->taken = false;
    if (code == MPI_SUCCESS) {
        struct sar_verdict verdict = { .status = settle(into->made, call) };
        verdict.value = (int64_t)(uintptr_t)into->made->memory.stream;
        code = sar_raise(comm, function, &verdict, NULL);
    }
    if (code == MPI_SUCCESS) {
        *into->result = into->made;
        return MPI_SUCCESS;
    }
    abandon(into->made);
    if (into->fresh)
        PMPIX_Sparse_result_free(&into->made);
    return code;
}

int PMPIX_Sparse_result_get(MPIX_Sparse_result result, MPI_Count *nnz, const void **indices,
                            const void **values)
{
    if (result == MPIX_SPARSE_RESULT_NULL)
        return sar_error_code("MPIX_Sparse_result_get", SAR_BAD_RESULT, SAR_FAULT_NULL);
    const struct sar_arrays *arrays = result->memory.accelerator == NULL ? &result->held : &result->shown;
    if (nnz != NULL)
        *nnz = (MPI_Count)result->nnz;
    if (indices != NULL)
        *indices = arrays->index;
    if (values != NULL)
        *values = arrays->value;
    return MPI_SUCCESS;
}

static void write_here(MPIX_Sparse_result result, void *to)
{
    struct sar_shape shape = result->shape;
    struct sar_run run = { result->held.index, result->held.value, result->nnz };
    shape.index_size = result->index_size;
    sar_dense_expand(&shape, &run, 1, to);
}

/* In the default stream: the one that the result was made in may be gone. */
static enum sar_status write_there(MPIX_Sparse_result result, void *to)
{
    struct sar_memory memory = { result->memory.accelerator, result->memory.place, NULL };
    struct sar_shape shape = result->shape;
    struct sar_run run = { result->shown.index, result->shown.value, result->nnz };
    struct sar_destination vector = { &memory, &shape, to, 0 };
    shape.index_size = result->index_size;
    SAR_TRY(sar_memory_ready(&memory));
    return sar_offload_write(&vector, &(struct sar_delivery){ &run, 1, true, true });
}

int PMPIX_Sparse_result_dense(MPIX_Sparse_result result, void *recvbuf)
{
    if (result == MPIX_SPARSE_RESULT_NULL)
        return sar_error_code("MPIX_Sparse_result_dense", SAR_BAD_RESULT, SAR_FAULT_NULL);
    struct sar_verdict verdict = { .status = SAR_OK };
    if (result->shape.count != 0)
        sar_look_at_array(&verdict, recvbuf, SAR_BAD_RECVBUF);
    if (result->shape.count != 0)
        sar_memory_look_at(&verdict, &result->memory, recvbuf, SAR_BAD_RECVBUF);
    if (verdict.status == SAR_OK && result->shape.count != 0 && result->memory.accelerator != NULL)
        verdict.status = write_there(result, recvbuf);
    else if (verdict.status == SAR_OK && result->shape.count != 0)
        write_here(result, recvbuf);
    if (verdict.status != SAR_OK)
        return sar_error_code("MPIX_Sparse_result_dense", verdict.status, verdict.value);
    return MPI_SUCCESS;
}

int PMPIX_Sparse_result_free(MPIX_Sparse_result *result)
{
    if (result == NULL)
        return sar_error_code("MPIX_Sparse_result_free", SAR_BAD_RESULT, SAR_FAULT_NULL);
    if (*result != MPIX_SPARSE_RESULT_NULL && (*result)->taken)
        return sar_error_code("MPIX_Sparse_result_free", SAR_BAD_RESULT, SAR_FAULT_IN_USE);
    if (*result != MPIX_SPARSE_RESULT_NULL) {
        free_arrays(&(*result)->held);
        free_arrays(&(*result)->next);
        free_shown(*result);
        free(*result);
    }
    *result = MPIX_SPARSE_RESULT_NULL;
    return MPI_SUCCESS;
}

#pragma weak MPIX_Sparse_result_get = PMPIX_Sparse_result_get
#pragma weak MPIX_Sparse_result_dense = PMPIX_Sparse_result_dense
#pragma weak MPIX_Sparse_result_free = PMPIX_Sparse_result_free
