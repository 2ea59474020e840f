/* SPDX-License-Identifier: BSD-3-Clause */
/* Locates the caller's arrays, and moves vectors in device memory to and from host copies. */

#include "mpi_ext/user_buffers.h"

#include <string.h>

#include "mpi_ext/error.h"
#include "comm/cuda_aware.h"

static bool is_array(const void *array)
{
    return array != NULL && array != MPI_IN_PLACE && array != MPIX_SPARSE_STRIDED;
}

/* Set *memory to the accelerator and device of an array. */
static void find(struct sar_error *error, const void *array, enum sar_status status,
                 struct sar_device_ctx *memory)
{
    enum sar_status found = sar_accelerator_find(array, &memory->accelerator, &memory->device_id);
    if (found == SAR_UNSUPPORTED)
        sar_error_set(error, status, SAR_FAULT_NO_PLUGIN);
    else
        sar_error_set(error, found, 0);
}

void sar_user_buffers_check(struct sar_error *error, const struct sar_device_ctx *memory, const void *array,
                            enum sar_status status)
{
    struct sar_device_ctx found;
    if (!is_array(array))
        return;
    find(error, array, status, &found);
    if ((found.accelerator != NULL) != (memory->accelerator != NULL))
        sar_error_set(error, status, found.accelerator != NULL ? SAR_FAULT_ON_DEVICE : SAR_FAULT_ON_HOST);
    else if (found.accelerator != NULL && found.device_id != memory->device_id)
        sar_error_set(error, status, SAR_FAULT_OTHER_DEVICE);
}

void sar_user_buffers_locate(struct sar_call_args *call, const void *array, enum sar_status status)
{
    if (is_array(array))
        find(&call->result.error, array, status, &call->device.memory);
}

bool sar_user_buffers_on_host(const void *first, const void *second)
{
    return is_array(first) && is_array(second) && sar_accelerator_both_on_host(first, second);
}

/* Memory of a dense buffer: from the first byte of the first element to the last byte of the last one. */
struct footprint {
    MPI_Aint offset; /* from the buffer's address */
    size_t bytes;
    bool has_gaps; /* bytes between elements, which the call must not change */
};

static enum sar_status measure_footprint(const struct sar_dense_args *buffers, uint64_t count,
                                         struct footprint *footprint)
{
    MPI_Aint lower, extent, true_lower, true_extent;
    MPI_Count size;
    SAR_TRY(sar_mpi(PMPI_Type_get_extent(buffers->datatype, &lower, &extent)));
    SAR_TRY(sar_mpi(PMPI_Type_get_true_extent(buffers->datatype, &true_lower, &true_extent)));
    SAR_TRY(sar_mpi(PMPI_Type_size_x(buffers->datatype, &size)));
    if (extent < 0)
        return SAR_BAD_DATATYPE;
    size_t bytes = (size_t)(count - 1) * (size_t)extent + (size_t)true_extent;
    *footprint = (struct footprint){ true_lower, bytes, size != extent };
    return SAR_OK;
}

static struct sar_host_copy host_copy_of(const void *buffer, const struct footprint *footprint)
{
    char *begin = (char *)(uintptr_t)buffer + footprint->offset;
    return (struct sar_host_copy){ .device = begin, .bytes = footprint->bytes };
}

/* No memory yet: most calls need no host copies. */
static enum sar_status describe_dense(struct sar_call_args *call)
{
    const struct sar_dense_args *b = &call->data.buffers;
    struct sar_host_copy *send = &call->device.copy[0], *receive = &call->device.copy[1];
    struct footprint whole, footprint;
    SAR_TRY(measure_footprint(b, sar_dense_args_total(b), &whole));
    SAR_TRY(measure_footprint(b, call->sig.in_place ? sar_dense_args_total(b) : b->count, &footprint));
    if (!call->sig.in_place)
        *send = host_copy_of(b->sendbuf, &whole);
    if (b->recvbuf != NULL)
        *receive = host_copy_of(b->recvbuf, &footprint);
    send->copy_in = true;
    receive->copy_in = call->sig.in_place || footprint.has_gaps;
    receive->copy_out = true;
    return SAR_OK;
}

/* Allocate a host copy, and point *buffer at it. The offset of the first element is kept. */
static enum sar_status alloc_array(const struct sar_call_args *call, struct sar_host_copy *copy,
                                   const void **buffer)
{
    struct sar_host_copy allocated;
    if (copy->device == NULL || copy->host != NULL)
        return SAR_OK;
    SAR_TRY(sar_host_copy_alloc(&call->device.memory, copy->device, copy->bytes, &allocated));
    copy->host = allocated.host;
    copy->block = allocated.block;
    *buffer = (const char *)allocated.host - ((const char *)copy->device - (const char *)*buffer);
    return SAR_OK;
}

static enum sar_status alloc_dense(struct sar_call_args *call)
{
    const void *out = call->data.buffers.recvbuf;
    SAR_TRY(alloc_array(call, &call->device.copy[0], &call->data.buffers.sendbuf));
    SAR_TRY(alloc_array(call, &call->device.copy[1], &out));
    call->data.buffers.recvbuf = (void *)(uintptr_t)out;
    return SAR_OK;
}

static bool is_on_host(const struct sar_call_args *call)
{
    return call->device.memory.accelerator == NULL;
}

enum sar_status sar_user_buffers_stream_ready(const struct sar_device_ctx *memory)
{
    return memory->accelerator == NULL
               ? SAR_OK
               : memory->accelerator->check_capture(memory->device_id, memory->stream);
}

void sar_user_buffers_set_stream(struct sar_call_args *call, void *stream)
{
    call->device.memory.stream = stream;
    if (call->result.error.status == SAR_OK)
        sar_error_set(&call->result.error, sar_user_buffers_stream_ready(&call->device.memory),
                      (int64_t)(uintptr_t)stream);
}

/* Calls with an invalid argument need no copies; calls that cannot read the vector do, for poisoned data. */
static bool needs_host_copies(const struct sar_call_args *call)
{
    return !is_on_host(call) && (call->result.error.status == SAR_OK || sar_user_buffers_unreadable(call));
}

void sar_user_buffers_describe(struct sar_call_args *call)
{
    if (needs_host_copies(call) && call->sig.dense_face)
        sar_error_set(&call->result.error, describe_dense(call), call->sig.field[SAR_AGREE_DATATYPE]);
}

void sar_user_buffers_alloc(struct sar_call_args *call)
{
    if (needs_host_copies(call) && call->sig.dense_face)
        sar_error_set(&call->result.error, alloc_dense(call), 0);
}

void sar_user_buffers_release(struct sar_call_args *call)
{
    for (int i = 0; i < 2; i++)
        sar_host_copy_release(&call->device.copy[i]);
}

void sar_user_buffers_poison(struct sar_call_args *call)
{
    for (int i = 0; i < 2; i++)
        if (call->device.copy[i].copy_in && call->device.copy[i].host != NULL)
            memset(call->device.copy[i].host, 0xff, call->device.copy[i].bytes);
}

/* Reads host copies now, or queues the reads on the stream. */
typedef enum sar_status read_fn(const struct sar_device_ctx *memory, const struct sar_host_copy copies[],
                                size_t n);

static void read_with(struct sar_call_args *call, read_fn *read)
{
    if (!needs_host_copies(call))
        return;
    if (call->result.error.status != SAR_CAPTURED)
        sar_error_set(&call->result.error, read(&call->device.memory, call->device.copy, 2), 0);
    if (call->result.error.status != SAR_OK)
        sar_user_buffers_poison(call);
}

void sar_user_buffers_read(struct sar_call_args *call)
{
    call->device.resident = false;
    sar_user_buffers_alloc(call);
    read_with(call, sar_host_copies_read);
}

void sar_user_buffers_queue_read(struct sar_call_args *call)
{
    read_with(call, sar_host_copies_queue_read);
}

int sar_user_buffers_write(MPI_Comm comm, const char *function, const struct sar_call_args *call, int code)
{
    if (is_on_host(call) || call->device.resident || code != MPI_SUCCESS)
        return code;
    struct sar_error error = { .status = sar_host_copies_write(&call->device.memory, call->device.copy, 2) };
    return sar_error_raise(comm, function, &error, NULL);
}

/* The test is made once per communicator. */
static enum sar_cuda_aware_mode aware(struct sar_comm_state *comm_state, const struct sar_device_ctx *memory)
{
    int setting = comm_state->settings.policy.config.cuda_aware;
    if (setting != SAR_CUDA_AWARE_AUTO)
        return (enum sar_cuda_aware_mode)setting;
    if (comm_state->device.cuda_aware == SAR_CUDA_AWARE_AUTO)
        comm_state->device.cuda_aware =
            sar_comm_is_cuda_aware(&comm_state->comm, memory) ? SAR_CUDA_AWARE_YES : SAR_CUDA_AWARE_NO;
    return comm_state->device.cuda_aware;
}

bool sar_user_buffers_mpi_accepts(const struct sar_call_args *call, struct sar_comm_state *comm_state)
{
    if (is_on_host(call))
        return true;
    if (comm_state == NULL || call->result.error.status != SAR_OK || !call->sig.native)
        return false;
    return aware(comm_state, &call->device.memory) == SAR_CUDA_AWARE_YES &&
           sar_host_copies_read(&call->device.memory, NULL, 0) == SAR_OK;
}

void sar_user_buffers_prepare_mpi(struct sar_call_args *call, const struct sar_comm_state *comm_state)
{
    if (is_on_host(call))
        return;
    sar_user_buffers_set_stream(call, comm_state->device.stream);
    if (call->result.error.status == SAR_OK)
        sar_error_set(&call->result.error, sar_host_copies_read(&call->device.memory, NULL, 0), 0);
    if (call->result.error.status == SAR_OK)
        return;
    sar_user_buffers_describe(call);
    sar_user_buffers_read(call);
}

void sar_user_buffers_classify(struct sar_call_args *call, struct sar_comm_state *comm_state)
{
    bool scatters = call->data.buffers.parts > 0; /* its buffers differ in length */
    call->device.resident =
        !is_on_host(call) && call->sig.native && !scatters && call->result.error.status == SAR_OK;
    call->device.cuda_aware =
        call->device.resident && aware(comm_state, &call->device.memory) == SAR_CUDA_AWARE_YES;
    call->device.direct = call->device.cuda_aware && call->sig.dense_face;
    if (!call->device.resident)
        sar_user_buffers_read(call);
}

void sar_user_buffers_open(struct sar_call_args *call, struct sar_comm_state *comm_state)
{
    sar_user_buffers_set_stream(call, comm_state->device.stream);
    sar_user_buffers_describe(call);
    sar_user_buffers_classify(call, comm_state);
}

int sar_user_buffers_close(MPI_Comm comm, const char *function, struct sar_call_args *call, int code)
{
    code = sar_user_buffers_write(comm, function, call, code);
    sar_user_buffers_release(call);
    return code;
}
