/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls in the order of a stream: what brings the vector to the host, the call, and what takes the outcome
 * back are queued there, one behind the other. The call itself runs in the thread in which CUDA calls
 * functions of the host; it may call MPI, and no function of CUDA.
 *
 * How many elements there are nobody knows while this is queued. So vectors of the library's own types come
 * and go in parcels: kernels write elements, as many as they find, into the mirror's memory, or all of the
 * vector where these would take more; the outcome is written there by the call, and kernels read it. Other
 * vectors are copied, and so are those that MPI has unseen. */

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "mpi_ext/allreduce.h"
#include "mpi_ext/arguments.h"
#include "mpi_ext/attribute.h"
#include "mpi_ext/error.h"
#include "mpi_ext/memory.h"
#include "plan/forward.h"

static const char function[] = "MPIX_Sparse_allreduce_enqueue";

struct enqueued {
    struct sar_call call;
    struct sar_context *context;
    MPI_Comm comm;
    struct sar_parcel parcel[2]; /* in the mirrors; call.parcel points here */
    struct sar_mirror numbers;   /* of the parcels' elements */
};

enum { APART = 8 /* numbers: a line of the host's, so that it and the device write to different ones */ };

/* Whoever queued the call is told of success, and an error handler may tell nobody. A code without a text of
 * its own has been warned of. */
static void warn(int code)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;
    if (code == MPI_ERR_OP)
        return;
    PMPI_Error_string(code, text, &length);
    SAR_LOG(WARN, MPI, "a call failed in its turn in a stream: %s", text);
}

/* An outcome that there is not is not to be taken for one. */
static void reduce(void *argument)
{
    struct enqueued *e = argument;
    const struct sar_mirror *outcome = &e->call.mirror[1];
    int code = sar_allreduce_dense(e->comm, function, e->context, &e->call);
    atomic_fetch_sub(&e->context->enqueued, 1);
    if (code == MPI_SUCCESS)
        return;
    warn(code);
    if (e->call.parcel[1] == NULL)
        return;
    *e->parcel[1].nnz = SAR_PARCEL_WHOLE;
    memset(outcome->host, 0xff, outcome->bytes);
}

static void drop(struct enqueued *e)
{
    sar_mirror_release(&e->numbers);
    free(e);
}

static void end(void *argument)
{
    struct enqueued *e = argument;
    sar_memory_release(&e->call);
    drop(e);
}

static struct sar_mirror *input_of(struct sar_call *call)
{
    return &call->mirror[call->in_place ? 1 : 0];
}

/* Vectors that MPI does not have unseen whatever happens; these have no gaps. */
static bool suits_parcels(const struct enqueued *e)
{
    const struct sar_call *call = &e->call;
    return call->native && call->verdict.status == SAR_OK && !sar_forward_always(e->context, call) &&
           call->mirror[1].bytes == sar_times(call->shape.count, call->shape.element_size);
}

/* Without memory for the numbers that is pinned, vectors are copied. */
static void make_parcels(struct enqueued *e)
{
    struct sar_call *call = &e->call;
    uint64_t *number;
    if (!suits_parcels(e) ||
        sar_mirror_take_pinned(&call->memory, 2 * APART * sizeof *number, &e->numbers) != SAR_OK)
        return;
    number = e->numbers.host;
    e->parcel[0] = sar_parcel_make(&call->shape, input_of(call)->host, number);
    e->parcel[1] = sar_parcel_make(&call->shape, call->mirror[1].host, number + APART);
    call->parcel[0] = &e->parcel[0];
    call->parcel[1] = &e->parcel[1];
}

/* What a kernel has begun to write is overwritten by the copy behind it. */
static void queue_read(struct enqueued *e)
{
    struct sar_call *call = &e->call;
    if (call->parcel[0] != NULL && sar_offload_queue_pack(&call->memory, &call->shape, input_of(call)->device,
                                                          call->parcel[0]) == SAR_OK)
        return;
    call->parcel[0] = NULL;
    sar_memory_queue_read(call);
}

static enum sar_status queue_write(struct enqueued *e)
{
    const struct sar_call *call = &e->call;
    if (call->parcel[1] == NULL)
        return sar_mirrors_queue_write(&call->memory, call->mirror, 2);
    return sar_offload_queue_unpack(&call->memory, &call->shape, call->mirror[1].device, call->parcel[1]);
}

/* What is behind the call, which takes place whatever happens here. What cannot be given back in its turn is
 * once the stream is done. */
static enum sar_status queue_end(struct enqueued *e)
{
    const struct sar_memory *memory = &e->call.memory;
    const struct sar_accelerator *accelerator = memory->accelerator;
    enum sar_status written = queue_write(e);
    enum sar_status ended = accelerator->call(memory->place, end, e, memory->stream);
    if (ended != SAR_OK && accelerator->wait(memory->place, memory->stream) == SAR_OK)
        end(e);
    return written == SAR_OK ? ended : written;
}

static enum sar_status queue_call(struct enqueued *e)
{
    const struct sar_memory *memory = &e->call.memory;
    atomic_fetch_add(&e->context->enqueued, 1);
    enum sar_status status = memory->accelerator->call(memory->place, reduce, e, memory->stream);
    if (status != SAR_OK)
        atomic_fetch_sub(&e->context->enqueued, 1);
    return status;
}

/* The verdict is what the caller is told. From memory that is not pinned CUDA may copy before the call has
 * written there. Returns whether the call will take place in its turn. */
static bool queue(struct enqueued *e, struct sar_verdict *verdict)
{
    verdict->status = SAR_DEVICE_FAILED;
    if (!sar_mirrors_are_pinned(e->call.mirror, 2))
        return false;
    make_parcels(e);
    queue_read(e);
    struct sar_verdict read = e->call.verdict;
    if (queue_call(e) != SAR_OK)
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
    else
        sar_memory_use_stream(call, call->memory.stream);
}

static struct enqueued *make(const struct sar_call *call, struct sar_context *context, MPI_Comm comm)
{
    struct enqueued *made = malloc(sizeof *made);
    if (made != NULL)
        *made = (struct enqueued){ .call = *call, .context = context, .comm = comm };
    return made;
}

/* Calls that are queued come first. A stream that is captured cannot be waited for, and what was queued there
 * before is done all the same. Returns whether all of it is. */
static bool let_others_pass(const struct sar_context *context, const struct sar_call *call)
{
    const struct sar_memory *memory = &call->memory;
    if (memory->accelerator == NULL)
        return true;
    if (call->verdict.status != SAR_CAPTURED)
        return memory->accelerator->wait(memory->place, memory->stream) == SAR_OK;
    while (atomic_load(&context->enqueued) > 0)
        sched_yield();
    return true;
}

/* A rank that cannot queue its call takes part at once, and tells why. */
static int run_at_once(MPI_Comm comm, struct sar_context *context, struct sar_call *call, struct enqueued *e)
{
    bool over = let_others_pass(context, call);
    if (e != NULL && !over)
        sar_mirror_abandon(&e->numbers);
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
    bool suits = call->mirror[1].host != NULL && call->verdict.status != SAR_CAPTURED;
    if (suits && (e = make(call, context, comm)) == NULL)
        call->verdict.status = SAR_NO_MEMORY;
    if (e != NULL && queue(e, &call->verdict))
        return sar_raise(comm, function, &call->verdict, NULL);
    int code = run_at_once(comm, context, call, e);
    if (e != NULL)
        drop(e);
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
