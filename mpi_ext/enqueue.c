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

/* Once the first function is queued the call takes place, whatever happens then. */
static enum sar_status queue(struct enqueued *e)
{
    const struct sar_memory *memory = &e->call.memory;
    const struct sar_accelerator *accelerator = memory->accelerator;
    SAR_TRY(sar_mirrors_queue_read(memory, e->call.mirror, 2));
    SAR_TRY(accelerator->call(memory->place, reduce, e, memory->stream));
    enum sar_status written = sar_mirrors_queue_write(memory, e->call.mirror, 2);
    enum sar_status ended = accelerator->call(memory->place, end, e, memory->stream);
    return written == SAR_OK ? ended : written;
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

/* A rank that cannot queue its call takes part at once, and tells why. */
static int enqueue(MPI_Comm comm, struct sar_context *context, struct sar_call *call)
{
    struct enqueued *e = NULL;
    look_at_stream(call);
    sar_memory_take(call);
    sar_memory_hold(call);
    if (call->verdict.status == SAR_OK && (e = make(call, context, comm)) == NULL)
        call->verdict.status = SAR_NO_MEMORY;
    if (call->verdict.status == SAR_OK && call->shape.count != 0) {
        struct sar_verdict verdict = { .status = queue(e) };
        return sar_raise(comm, function, &verdict, NULL);
    }
    int code = sar_allreduce_dense(comm, function, context, call);
    sar_memory_release(call);
    free(e);
    return code;
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
