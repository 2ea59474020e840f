/* SPDX-License-Identifier: BSD-3-Clause */
/* MPIX_Sparse_allreduce_enqueue queues three operations on the stream: read the vector to the host, run the
 * call, write the result to the device. CUDA's callback waits while a thread of the library makes the
 * call (callback_thread.h), which calls no CUDA function itself.
 *
 * The number of elements is unknown when the operations are queued. So native vectors are packed: a kernel
 * writes the elements it finds into the host copy, or the dense vector if that is smaller; the call writes
 * its result there, and another kernel unpacks it. Other vectors, and those passed to MPI_Allreduce, are
 * copied. */

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "mpi_ext/allreduce.h"
#include "mpi_ext/arguments.h"
#include "mpi_ext/attribute.h"
#include "mpi_ext/callback_thread.h"
#include "mpi_ext/error.h"
#include "mpi_ext/user_buffers.h"
#include "core/fallback.h"
#include "core/prepare.h"

static const char function[] = "MPIX_Sparse_allreduce_enqueue";

/* A call on a stream. Freed by the last operation on the stream. */
struct enqueued {
    struct sar_call_args args;
    struct sar_comm_state *comm_state;
    MPI_Comm comm;
    struct sar_packed_vec packed[2]; /* in the host copies; args.device.packed points here */
    struct sar_host_copy counters;   /* element counts of the packed vectors, in pinned memory */
};

enum {
    LINE_COUNTERS = 8 /* counters in a cache line: host and device write to different lines */
};

/* The caller has already got MPI_SUCCESS and the error handler may be silent, so log a warning.
 * sar_error_raise has logged MPI_ERR_OP, whose code has no text. */
static void warn(int code)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;
    if (code == MPI_ERR_OP)
        return;
    PMPI_Error_string(code, text, &length);
    SAR_LOG(WARN, MPI, "a call failed in its turn in a stream: %s", text);
}

/* If the call fails, poison the result so that it cannot be mistaken for valid data. */
static void run_call(void *argument)
{
    struct enqueued *e = argument;
    const struct sar_host_copy *result = &e->args.device.copy[1];
    int code = sar_allreduce_dense(e->comm, function, e->comm_state, &e->args);
    atomic_fetch_sub(&e->comm_state->device.enqueued, 1);
    if (code == MPI_SUCCESS)
        return;
    warn(code);
    if (e->args.device.packed[1] == NULL)
        return;
    *e->packed[1].nnz = SAR_PACKED_VEC_DENSE;
    memset(result->host, 0xff, result->bytes);
}

static void run_in_stream(void *argument)
{
    sar_callback_thread_run(run_call, argument);
}

static void free_enqueued(struct enqueued *e)
{
    sar_host_copy_release(&e->counters);
    free(e);
}

static void end_in_stream(void *argument)
{
    struct enqueued *e = argument;
    sar_user_buffers_release(&e->args);
    free_enqueued(e);
}

static struct sar_host_copy *input_of(struct sar_call_args *call)
{
    return &call->device.copy[call->sig.in_place ? 1 : 0];
}

/* Vectors without gaps that are not always passed to MPI_Allreduce. */
static bool suits_packed(const struct enqueued *e)
{
    const struct sar_call_args *call = &e->args;
    return call->sig.native && call->result.error.status == SAR_OK &&
           !sar_fallback_always(e->comm_state, call) &&
           call->device.copy[1].bytes == sar_mul_saturate(call->sig.desc.count, call->sig.desc.element_size);
}

/* Without pinned memory for the counters, vectors are copied instead. */
static void make_packed(struct enqueued *e)
{
    struct sar_call_args *call = &e->args;
    uint64_t *counter;
    if (!suits_packed(e) ||
        sar_host_copy_alloc_pinned(&call->device.memory, 2 * LINE_COUNTERS * sizeof *counter, &e->counters) !=
            SAR_OK)
        return;
    counter = e->counters.host;
    e->packed[0] = sar_packed_vec_layout(&call->sig.desc, input_of(call)->host, counter);
    e->packed[1] = sar_packed_vec_layout(&call->sig.desc, call->device.copy[1].host, counter + LINE_COUNTERS);
    call->device.packed[0] = &e->packed[0];
    call->device.packed[1] = &e->packed[1];
}

/* If packing fails, the copy that is queued next overwrites the partial output. */
static void queue_read(struct enqueued *e)
{
    struct sar_call_args *call = &e->args;
    struct sar_device_vec vector =
        sar_device_vec_of(&call->device.memory, &call->sig.desc, input_of(call)->device);
    if (call->device.packed[0] != NULL &&
        call->device.memory.accelerator->pack(&vector, call->device.packed[0]) == SAR_OK)
        return;
    call->device.packed[0] = NULL;
    sar_user_buffers_queue_read(call);
}

static enum sar_status queue_write(struct enqueued *e)
{
    const struct sar_call_args *call = &e->args;
    const struct sar_device_ctx *memory = &call->device.memory;
    struct sar_device_vec vector = sar_device_vec_of(memory, &call->sig.desc, call->device.copy[1].device);
    if (call->device.packed[1] == NULL)
        return sar_host_copies_queue_write(memory, call->device.copy, 2);
    return memory->accelerator->unpack(&vector, call->device.packed[1]);
}

/* The call runs whether or not this succeeds. If the cleanup cannot be queued, wait for the stream and do
 * it here. */
static enum sar_status queue_end(struct enqueued *e)
{
    const struct sar_device_ctx *memory = &e->args.device.memory;
    const struct sar_accelerator *accelerator = memory->accelerator;
    enum sar_status written = queue_write(e);
    enum sar_status ended = accelerator->host_callback(memory->device_id, end_in_stream, e, memory->stream);
    if (ended != SAR_OK && accelerator->wait(memory->device_id, memory->stream) == SAR_OK)
        end_in_stream(e);
    return written == SAR_OK ? ended : written;
}

static enum sar_status queue_call(struct enqueued *e)
{
    const struct sar_device_ctx *memory = &e->args.device.memory;
    atomic_fetch_add(&e->comm_state->device.enqueued, 1);
    enum sar_status status =
        memory->accelerator->host_callback(memory->device_id, run_in_stream, e, memory->stream);
    if (status != SAR_OK)
        atomic_fetch_sub(&e->comm_state->device.enqueued, 1);
    return status;
}

/* Returns true if the call is queued; *error is the error for the caller. Host copies must be pinned: CUDA
 * may read other memory before the call has written there. */
static bool queue_all(struct enqueued *e, struct sar_error *error)
{
    error->status = SAR_DEVICE_FAILED;
    if (!sar_host_copies_are_pinned(e->args.device.copy, 2))
        return false;
    make_packed(e);
    queue_read(e);
    struct sar_error read = e->args.result.error;
    if (queue_call(e) != SAR_OK)
        return false;
    *error = read;
    enum sar_status ended = queue_end(e);
    if (error->status == SAR_OK)
        error->status = ended;
    return true;
}

/* Another thread calls MPI, which needs MPI_THREAD_MULTIPLE. */
static void check_stream(struct sar_call_args *call)
{
    int level = MPI_THREAD_SINGLE;
    PMPI_Query_thread(&level);
    if (call->result.error.status != SAR_OK || call->sig.desc.count == 0)
        return;
    if (call->device.memory.accelerator == NULL)
        call->result.error = (struct sar_error){ .status = SAR_BAD_RECVBUF, .value = SAR_FAULT_ON_HOST };
    else if (level != MPI_THREAD_MULTIPLE)
        call->result.error.status = SAR_NO_THREADS;
    else
        sar_user_buffers_set_stream(call, call->device.memory.stream);
}

/* Wait for the calls queued before. A stream that is being captured cannot be waited for, but its earlier
 * calls run all the same. Returns true if all are complete. */
static bool wait_for_queued(const struct sar_comm_state *comm_state, const struct sar_call_args *call)
{
    const struct sar_device_ctx *memory = &call->device.memory;
    if (memory->accelerator == NULL)
        return true;
    if (call->result.error.status != SAR_CAPTURED)
        return memory->accelerator->wait(memory->device_id, memory->stream) == SAR_OK;
    while (atomic_load(&comm_state->device.enqueued) > 0)
        sched_yield();
    return true;
}

/* A rank that cannot queue its call takes part in the collective at once, and returns the error. */
static int run_at_once(MPI_Comm comm, struct sar_comm_state *comm_state, struct sar_call_args *call,
                       struct enqueued *e)
{
    bool drained = wait_for_queued(comm_state, call);
    if (e != NULL && !drained)
        sar_host_copy_abandon(&e->counters);
    if (call->device.copy[1].host != NULL)
        sar_user_buffers_read(call);
    int code = sar_allreduce_dense(comm, function, comm_state, call);
    sar_user_buffers_release(call);
    return code;
}

static int enqueue(MPI_Comm comm, struct sar_comm_state *comm_state, struct sar_call_args *call)
{
    struct enqueued *e = NULL;
    check_stream(call);
    sar_user_buffers_describe(call);
    sar_user_buffers_alloc(call);
    bool suits = call->device.copy[1].host != NULL && call->result.error.status != SAR_CAPTURED;
    if (suits && (e = malloc(sizeof *e)) == NULL)
        call->result.error.status = SAR_NO_MEMORY;
    if (e != NULL) {
        *e = (struct enqueued){ .args = *call, .comm_state = comm_state, .comm = comm };
        if (queue_all(e, &call->result.error))
            return sar_error_raise(comm, function, &call->result.error, NULL);
    }
    int code = run_at_once(comm, comm_state, call, e);
    if (e != NULL)
        free_enqueued(e);
    return code;
}

int PMPIX_Sparse_allreduce_enqueue(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype,
                                   MPI_Op op, MPI_Comm comm, void *stream)
{
    struct sar_comm_state *comm_state;
    struct sar_call_args call;
    sar_args_check_dense(&call, sendbuf, recvbuf, count, datatype, op);
    int code = sar_comm_state_get(comm, function, &comm_state);
    if (code != MPI_SUCCESS)
        return code;
    sar_call_args_resolve_types(&call, &comm_state->settings.policy);
    call.device.memory.stream = stream;
    return enqueue(comm, comm_state, &call);
}

#pragma weak MPIX_Sparse_allreduce_enqueue = PMPIX_Sparse_allreduce_enqueue
