/* SPDX-License-Identifier: BSD-3-Clause */
/* Results of coordinate calls, and the output that a scheme writes them through. A scheme writes 4-byte
 * indices if they suffice; commit widens them in place to the caller's index type. A result in device
 * memory is either written there by the call or copied from host memory after it. */

#include "mpi_ext/result.h"

#include <stdlib.h>

#include "mpi_ext/arguments.h"
#include "mpi_ext/error.h"
#include "mpi_ext/user_buffers.h"
#include "vector/dense.h"

static void free_arrays(struct sar_result_arrays *arrays)
{
    if (arrays->shm != NULL) {
        sar_shm_result_release(arrays->shm);
    } else {
        free(arrays->index);
        free(arrays->value);
    }
    *arrays = (struct sar_result_arrays){ 0 };
}

static bool allocate(struct sar_result_arrays *arrays, uint64_t index_bytes, uint64_t value_bytes)
{
    if (index_bytes > SIZE_MAX - 1 || value_bytes > SIZE_MAX - 1)
        return false;
    struct sar_result_arrays made = { malloc(index_bytes + 1), malloc(value_bytes + 1), index_bytes,
                                      value_bytes, NULL };
    if (made.index == NULL || made.value == NULL)
        free_arrays(&made);
    *arrays = made;
    return made.index != NULL;
}

static bool fits(const struct sar_result_arrays *arrays, uint64_t index_bytes, uint64_t value_bytes)
{
    return arrays->index != NULL && arrays->shm == NULL && arrays->index_bytes >= index_bytes &&
           arrays->value_bytes >= value_bytes;
}

/* Replace `next` by larger arrays, and keep the elements that the vector has so far. */
static enum sar_status grow_next(struct MPIX_Sparse_result_s *result, const struct sar_vec_desc *desc,
                                 uint64_t index_bytes, uint64_t value_bytes, const struct sar_spvec *vec)
{
    struct sar_result_arrays made;
    if (!allocate(&made, index_bytes, value_bytes))
        return SAR_NO_MEMORY;
    sar_spvec_copy(desc, vec, &(struct sar_spvec){ made.index, made.value, 0 });
    free_arrays(&result->next);
    result->next = made;
    return SAR_OK;
}

/* Implements sar_output_dest.reserve. */
static enum sar_status reserve_output(struct sar_output_dest *output, const struct sar_output_need *need,
                                      struct sar_spvec *vec)
{
    struct MPIX_Sparse_result_s *result = (struct MPIX_Sparse_result_s *)output;
    const struct sar_vec_desc *desc = need->desc;
    uint64_t index_bytes = sar_mul_saturate(need->nnz, result->output.index_size);
    uint64_t value_bytes = sar_mul_saturate(need->nnz, desc->element_size);
    bool in_current = result->next.index == NULL && fits(&result->current, index_bytes, value_bytes);
    if (!in_current && !fits(&result->next, index_bytes, value_bytes))
        SAR_TRY(grow_next(result, desc, index_bytes, value_bytes, vec));
    struct sar_result_arrays *arrays = in_current ? &result->current : &result->next;
    result->overwritten |= in_current && need->early_write;
    *vec = (struct sar_spvec){ arrays->index, arrays->value, vec->nnz };
    return SAR_OK;
}

/* Implements sar_output_dest.use_shared. */
static void use_shared(struct sar_output_dest *output, struct sar_shm_result *shm,
                       const struct sar_spvec *vec)
{
    struct MPIX_Sparse_result_s *result = (struct MPIX_Sparse_result_s *)output;
    struct sar_result_arrays arrays = { vec->index, vec->value, 0, 0, shm };
    if (result->current.shm == shm) {
        result->current = arrays;
        result->overwritten = true;
        return;
    }
    sar_shm_result_retain(shm);
    result->next = arrays;
}

static void free_device_copy(struct MPIX_Sparse_result_s *result)
{
    const struct sar_device_ctx *memory = &result->location;
    if (memory->accelerator != NULL && result->device_copy.index != NULL)
        memory->accelerator->release(memory->device_id, result->device_copy.index);
    if (memory->accelerator != NULL && result->device_copy.value != NULL)
        memory->accelerator->release(memory->device_id, result->device_copy.value);
    result->device_copy = (struct sar_result_arrays){ 0 };
}

/* Allocate 1/8 more than needed, since the next result is about as large. */
static enum sar_status alloc_device_copy(struct MPIX_Sparse_result_s *result, size_t index_bytes,
                                         size_t value_bytes)
{
    const struct sar_device_ctx *memory = &result->location;
    struct sar_result_arrays *copy = &result->device_copy;
    if (copy->index != NULL && copy->index_bytes >= index_bytes && copy->value_bytes >= value_bytes)
        return SAR_OK;
    free_device_copy(result);
    index_bytes += index_bytes / 8 + 1;
    value_bytes += value_bytes / 8 + 1;
    SAR_TRY(memory->accelerator->allocate(memory->device_id, index_bytes, &copy->index));
    SAR_TRY(memory->accelerator->allocate(memory->device_id, value_bytes, &copy->value));
    copy->index_bytes = index_bytes;
    copy->value_bytes = value_bytes;
    return SAR_OK;
}

/* The device copy is freed if the new location is on another device. */
static void set_location(struct MPIX_Sparse_result_s *result, const struct sar_device_ctx *memory)
{
    if (memory->accelerator != result->location.accelerator ||
        memory->device_id != result->location.device_id)
        free_device_copy(result);
    result->location = *memory;
}

/* Implements sar_output_dest.alloc_device. */
static enum sar_status alloc_device(struct sar_output_dest *output, const struct sar_device_ctx *memory,
                                    const struct sar_vec_desc *desc, size_t nnz, struct sar_spvec *vec)
{
    struct MPIX_Sparse_result_s *result = (struct MPIX_Sparse_result_s *)output;
    result->overwritten = result->on_device = true;
    set_location(result, memory);
    SAR_TRY(alloc_device_copy(result, nnz * output->index_size, nnz * desc->element_size));
    *vec = (struct sar_spvec){ result->device_copy.index, result->device_copy.value, nnz };
    return SAR_OK;
}

static struct MPIX_Sparse_result_s *make_result(void)
{
    struct MPIX_Sparse_result_s *result = calloc(1, sizeof *result);
    if (result != NULL)
        result->output = (struct sar_output_dest){ .reserve = reserve_output,
                                                   .use_shared = use_shared,
                                                   .alloc_device = alloc_device };
    return result;
}

/* Convert 4-byte indices to 8 bytes in place; backwards, so that no index is overwritten before it is
 * read. */
static void widen(void *index, size_t n)
{
    const uint32_t *narrow = index;
    uint64_t *wide = index;
    for (size_t i = n; i-- > 0;)
        wide[i] = narrow[i];
}

static void commit(struct MPIX_Sparse_result_s *result, const struct sar_call_args *call)
{
    if (result->next.index != NULL) {
        free_arrays(&result->current);
        result->current = result->next;
        result->next = (struct sar_result_arrays){ 0 };
    }
    if (!result->on_device && result->current.shm == NULL &&
        result->output.index_size > call->sig.desc.index_size)
        widen(result->current.index, call->result.nnz);
    result->overwritten = false;
    result->nnz = call->result.nnz;
    result->desc = call->sig.desc;
    result->index_size = result->output.index_size;
}

/* Copy the current arrays to the device through pinned blocks of block_bytes. */
static enum sar_status copy_to_device(struct MPIX_Sparse_result_s *result, size_t block_bytes)
{
    const struct sar_device_ctx *memory = &result->location;
    size_t index_bytes = result->nnz * result->index_size;
    size_t value_bytes = result->nnz * result->desc.element_size;
    if (memory->accelerator == NULL)
        return SAR_OK;
    SAR_TRY(sar_user_buffers_stream_ready(memory));
    SAR_TRY(alloc_device_copy(result, index_bytes, value_bytes));
    const struct sar_h2d_copy arrays[] = { { result->device_copy.index, result->current.index, index_bytes },
                                           { result->device_copy.value, result->current.value,
                                             value_bytes } };
    return sar_device_upload(memory, block_bytes, arrays, 2);
}

static void discard(struct MPIX_Sparse_result_s *result)
{
    free_arrays(&result->next);
    if (result->overwritten)
        result->nnz = 0;
    result->overwritten = result->on_device = false;
}

void sar_result_guard_open(struct sar_result_guard *guard, MPIX_Sparse_result *result,
                           struct sar_call_args *call)
{
    bool exists = result != NULL && *result != MPIX_SPARSE_RESULT_NULL;
    bool taken = exists && (*result)->in_use;
    *guard =
        (struct sar_result_guard){ result, exists && !taken ? *result : make_result(), !exists || taken };
    enum sar_status status = guard->result == NULL ? SAR_NO_MEMORY : SAR_OK;
    if (result == NULL || taken)
        status = SAR_BAD_RESULT;
    sar_error_set(&call->result.error, status, taken ? SAR_FAULT_IN_USE : SAR_FAULT_NULL);
    if (guard->result == NULL)
        return;
    guard->result->in_use = true;
    guard->result->output.index_size = sar_index_type_size(call->data.coo.type);
    guard->result->output.returned = guard->result->current.shm;
    call->data.output = &guard->result->output;
}

/* The result is in the same memory as the call's arrays; a rank without arrays keeps the last location. The
 * result becomes empty if it cannot be copied to the device. */
static enum sar_status commit_and_copy(struct MPIX_Sparse_result_s *result, const struct sar_call_args *call)
{
    bool on_device = result->on_device;
    commit(result, call);
    result->on_device = false;
    if (on_device)
        return SAR_OK;
    if (call->data.coo.indices != NULL || call->data.coo.values != NULL ||
        result->location.accelerator == NULL)
        set_location(result, &call->device.memory);
    enum sar_status status = copy_to_device(result, call->device.block_bytes);
    if (status != SAR_OK)
        result->nnz = 0;
    return status;
}

int sar_result_guard_close(MPI_Comm comm, const char *function, struct sar_result_guard *guard,
                           const struct sar_call_args *call, int code)
{
    if (guard->result == NULL)
        return code;
    guard->result->in_use = false;
    if (code == MPI_SUCCESS) {
        struct sar_error error = { .status = commit_and_copy(guard->result, call) };
        error.value = (int64_t)(uintptr_t)guard->result->location.stream;
        code = sar_error_raise(comm, function, &error, NULL);
    }
    if (code == MPI_SUCCESS) {
        *guard->handle = guard->result;
        return MPI_SUCCESS;
    }
    discard(guard->result);
    if (guard->is_new)
        PMPIX_Sparse_result_free(&guard->result);
    return code;
}

/* The arrays that the caller gets. */
static const struct sar_result_arrays *arrays_of(MPIX_Sparse_result result)
{
    return result->location.accelerator == NULL ? &result->current : &result->device_copy;
}

int PMPIX_Sparse_result_get(MPIX_Sparse_result result, MPI_Count *nnz, const void **indices,
                            const void **values)
{
    if (result == MPIX_SPARSE_RESULT_NULL)
        return sar_error_code("MPIX_Sparse_result_get", SAR_BAD_RESULT, SAR_FAULT_NULL);
    const struct sar_result_arrays *arrays = arrays_of(result);
    if (nnz != NULL)
        *nnz = (MPI_Count)result->nnz;
    if (indices != NULL)
        *indices = arrays->index;
    if (values != NULL)
        *values = arrays->value;
    return MPI_SUCCESS;
}

/* On a device this uses the default stream: the stream that the result was made in may no longer exist. */
static enum sar_status write_dense(MPIX_Sparse_result result, void *to)
{
    struct sar_device_ctx memory = { result->location.accelerator, result->location.device_id, NULL };
    const struct sar_result_arrays *arrays = arrays_of(result);
    struct sar_vec_desc desc = result->desc;
    struct sar_spvec vec = { arrays->index, arrays->value, result->nnz };
    struct sar_scatter_dst target = { &memory, &desc, to, 0 };
    desc.index_size = result->index_size;
    if (memory.accelerator == NULL) {
        sar_dense_expand(&desc, &vec, 1, to);
        return SAR_OK;
    }
    SAR_TRY(sar_user_buffers_stream_ready(&memory));
    return sar_device_scatter(&target, &(struct sar_scatter_src){ &vec, 1, true, true });
}

int PMPIX_Sparse_result_dense(MPIX_Sparse_result result, void *recvbuf)
{
    if (result == MPIX_SPARSE_RESULT_NULL)
        return sar_error_code("MPIX_Sparse_result_dense", SAR_BAD_RESULT, SAR_FAULT_NULL);
    if (result->desc.count == 0)
        return MPI_SUCCESS;
    struct sar_error error = { .status = SAR_OK };
    sar_args_check_array(&error, recvbuf, SAR_BAD_RECVBUF);
    sar_user_buffers_check(&error, &result->location, recvbuf, SAR_BAD_RECVBUF);
    if (error.status == SAR_OK)
        error.status = write_dense(result, recvbuf);
    return error.status == SAR_OK ? MPI_SUCCESS
                                  : sar_error_code("MPIX_Sparse_result_dense", error.status, error.value);
}

int PMPIX_Sparse_result_free(MPIX_Sparse_result *result)
{
    if (result == NULL)
        return sar_error_code("MPIX_Sparse_result_free", SAR_BAD_RESULT, SAR_FAULT_NULL);
    if (*result != MPIX_SPARSE_RESULT_NULL && (*result)->in_use)
        return sar_error_code("MPIX_Sparse_result_free", SAR_BAD_RESULT, SAR_FAULT_IN_USE);
    if (*result != MPIX_SPARSE_RESULT_NULL) {
        free_arrays(&(*result)->current);
        free_arrays(&(*result)->next);
        free_device_copy(*result);
        free(*result);
    }
    *result = MPIX_SPARSE_RESULT_NULL;
    return MPI_SUCCESS;
}

#pragma weak MPIX_Sparse_result_get = PMPIX_Sparse_result_get
#pragma weak MPIX_Sparse_result_dense = PMPIX_Sparse_result_dense
#pragma weak MPIX_Sparse_result_free = PMPIX_Sparse_result_free
