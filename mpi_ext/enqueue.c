/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls in the order of a stream: copies to the host, the call, and copies back are queued there, one
 * behind the other. The call itself runs in the thread in which CUDA calls functions of the host; it may
 * call MPI, and no function of CUDA. */

#include <stdlib.h>

#include "mpi_ext/allreduce.h"
#include "mpi_ext/arguments.h"
#include "mpi_ext/attribute.h"
#include "mpi_ext/error.h"
#include "mpi_ext/memory.h"
#include "plan/progress.h"

static const char function[] = "MPIX_Sparse_allreduce_enqueue";

struct enqueued {
    struct sar_call call;
    struct sar_context *context;
    MPI_Comm comm;
};

static void reduce(void *argument)
{
    struct enqueued *e = argument;
    sar_allreduce_dense(e->comm, function, e->context, &e->call);
}

static void end(void *argument)
{
    struct enqueued *e = argument;
    sar_memory_release(&e->call);
    free(e);
}

/* What is behind the call, which takes place whatever happens here. What cannot be given back in its turn is
 * once the stream is done. */
static enum sar_status queue_end(struct enqueued *e)
{
    const struct sar_memory *memory = &e->call.memory;
    const struct sar_accelerator *accelerator = memory->accelerator;
    enum sar_status written = sar_mirrors_queue_write(memory, e->call.mirror, 2);
    enum sar_status ended = accelerator->call(memory->place, end, e, memory->stream);
    if (ended != SAR_OK && accelerator->wait(memory->place, memory->stream) == SAR_OK)
        end(e);
    return written == SAR_OK ? ended : written;
}

/* The verdict is what the caller is told. From memory that is not pinned CUDA may copy before the call has
 * written there. Returns whether the call will take place in its turn. */
static bool queue(struct enqueued *e, struct sar_verdict *verdict)
{
    const struct sar_memory *memory = &e->call.memory;
    verdict->status = SAR_DEVICE_FAILED;
    if (!sar_mirrors_are_pinned(e->call.mirror, 2))
        return false;
    sar_memory_queue_read(&e->call);
    struct sar_verdict read = e->call.verdict;
    if (memory->accelerator->call(memory->place, reduce, e, memory->stream) != SAR_OK)
        return false;
    *verdict = read;
    enum sar_status ended = queue_end(e);
    if (verdict->status == SAR_OK)
        verdict->status = ended;
    return true;
}

/* The thread of CUDA is one more that calls MPI. */
static void look_at_stream(struct sar_call *call)
{
    int level = MPI_THREAD_SINGLE;
    PMPI_Query_thread(&level);
    if (call->verdict.status != SAR_OK || call->shape.count == 0)
        return;
    if (call->memory.accelerator == NULL)
        call->verdict = (struct sar_verdict){ .status = SAR_BAD_RECVBUF, .value = SAR_FAULT_ON_HOST };
    else if (level != MPI_THREAD_MULTIPLE)
        call->verdict.status = SAR_NO_THREADS;
}

static struct enqueued *make(const struct sar_call *call, struct sar_context *context, MPI_Comm comm)
{
    struct enqueued *made = malloc(sizeof *made);
    if (made != NULL)
        *made = (struct enqueued){ *call, context, comm };
    return made;
}

/* A rank that cannot queue its call takes part at once, and tells why; calls that are queued come first. */
static int run_at_once(MPI_Comm comm, struct sar_context *context, struct sar_call *call)
{
    if (call->memory.accelerator != NULL)
        (void)call->memory.accelerator->wait(call->memory.place, call->memory.stream);
    if (call->mirror[1].host != NULL)
        sar_memory_read(call);
    int code = sar_allreduce_dense(comm, function, context, call);
    sar_memory_release(call);
    return code;
}

static int enqueue(MPI_Comm comm, struct sar_context *context, struct sar_call *call)
{
    struct enqueued *e = NULL;
    look_at_stream(call);
    sar_memory_take(call);
    sar_memory_hold(call);
    if (call->mirror[1].host != NULL && (e = make(call, context, comm)) == NULL)
        call->verdict.status = SAR_NO_MEMORY;
    if (e != NULL && queue(e, &call->verdict))
        return sar_raise(comm, function, &call->verdict, NULL);
    free(e);
    return run_at_once(comm, context, call);
}

int PMPIX_Sparse_allreduce_enqueue(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype,
                                   MPI_Op op, MPI_Comm comm, void *stream)
{
    struct sar_context *context;
    struct sar_call call;
    sar_look_at_dense(&call, sendbuf, recvbuf, count, datatype, op);
    int code = sar_attribute_need(comm, function, &context);
    if (code != MPI_SUCCESS)
        return code;
    sar_call_interpret(&call, &context->policy);
    call.memory.stream = stream;
    return enqueue(comm, context, &call);
}

#pragma weak MPIX_Sparse_allreduce_enqueue = PMPIX_Sparse_allreduce_enqueue
