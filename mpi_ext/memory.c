/* SPDX-License-Identifier: BSD-3-Clause */
#include "mpi_ext/memory.h"

#include <string.h>

#include "mpi_ext/error.h"
#include "net/aware.h"

static bool is_array(const void *array)
{
    return array != NULL && array != MPI_IN_PLACE && array != MPIX_SPARSE_STRIDED;
}

/* Where an array is, as far as anybody knows. */
static void find(struct sar_verdict *verdict, const void *array, enum sar_status status,
                 struct sar_memory *memory)
{
    enum sar_status found = sar_accelerator_find(array, &memory->accelerator, &memory->place);
    if (found == SAR_UNSUPPORTED)
        sar_blame(verdict, status, SAR_FAULT_OUT_OF_REACH);
    else
        sar_blame(verdict, found, 0);
}

void sar_memory_look_at(struct sar_verdict *verdict, const struct sar_memory *memory, const void *array,
                        enum sar_status status)
{
    struct sar_memory found;
    if (!is_array(array))
        return;
    find(verdict, array, status, &found);
    if ((found.accelerator != NULL) != (memory->accelerator != NULL))
        sar_blame(verdict, status, found.accelerator != NULL ? SAR_FAULT_ON_DEVICE : SAR_FAULT_ON_HOST);
    else if (found.accelerator != NULL && found.place != memory->place)
        sar_blame(verdict, status, SAR_FAULT_ELSEWHERE);
}

void sar_memory_look(struct sar_call *call, const void *array, enum sar_status status)
{
    if (is_array(array))
        find(&call->verdict, array, status, &call->memory);
}

bool sar_memory_is_on_host(const void *first, const void *second)
{
    return is_array(first) && is_array(second) && sar_accelerator_is_idle(first, second);
}

/* What dense buffers take: from the first byte of the first element to the last of the last one. */
struct footprint {
    MPI_Aint offset;
    size_t bytes;
    bool gaps; /* that belong to the caller */
};

static enum sar_status measure(const struct sar_dense_call *buffers, struct footprint *footprint)
{
    MPI_Aint lower, extent, true_lower, true_extent;
    MPI_Count size;
    SAR_TRY(sar_mpi(PMPI_Type_get_extent(buffers->datatype, &lower, &extent)));
    SAR_TRY(sar_mpi(PMPI_Type_get_true_extent(buffers->datatype, &true_lower, &true_extent)));
    SAR_TRY(sar_mpi(PMPI_Type_size_x(buffers->datatype, &size)));
    if (extent < 0)
        return SAR_BAD_DATATYPE;
    size_t most = (size_t)(buffers->count - 1) * (size_t)extent + (size_t)true_extent;
    *footprint = (struct footprint){ true_lower, most, size != extent };
    return SAR_OK;
}

static struct sar_mirror mirror_of(const void *buffer, const struct footprint *footprint)
{
    char *begin = (char *)(uintptr_t)buffer + footprint->offset;
    return (struct sar_mirror){ .device = begin, .bytes = footprint->bytes };
}

/* Without memory of the host, which most calls need none of. */
static enum sar_status describe_dense(struct sar_call *call)
{
    const struct sar_dense_call *b = &call->buffers;
    struct sar_mirror *send = &call->mirror[0], *receive = &call->mirror[1];
    struct footprint footprint;
    SAR_TRY(measure(b, &footprint));
    if (!call->in_place)
        *send = mirror_of(b->sendbuf, &footprint);
    if (b->recvbuf != NULL)
        *receive = mirror_of(b->recvbuf, &footprint);
    send->in = true;
    receive->in = call->in_place || footprint.gaps;
    receive->out = true;
    return SAR_OK;
}

/* Let the call find in memory of the host what it would find at *buffer. */
static enum sar_status hold_array(const struct sar_call *call, struct sar_mirror *mirror, const void **buffer)
{
    struct sar_mirror taken;
    if (mirror->device == NULL || mirror->host != NULL)
        return SAR_OK;
    SAR_TRY(sar_mirror_take(&call->memory, mirror->device, mirror->bytes, &taken));
    mirror->host = taken.host;
    mirror->block = taken.block;
    *buffer = (const char *)taken.host - ((const char *)mirror->device - (const char *)*buffer);
    return SAR_OK;
}

static enum sar_status hold_dense(struct sar_call *call)
{
    const void *out = call->buffers.recvbuf;
    SAR_TRY(hold_array(call, &call->mirror[0], &call->buffers.sendbuf));
    SAR_TRY(hold_array(call, &call->mirror[1], &out));
    call->buffers.recvbuf = (void *)(uintptr_t)out;
    return SAR_OK;
}

static bool is_on_host(const struct sar_call *call)
{
    return call->memory.accelerator == NULL;
}

enum sar_status sar_memory_ready(const struct sar_memory *memory)
{
    return memory->accelerator == NULL ? SAR_OK : memory->accelerator->ready(memory->place, memory->stream);
}

void sar_memory_use_stream(struct sar_call *call, void *stream)
{
    call->memory.stream = stream;
    if (call->verdict.status == SAR_OK)
        sar_blame(&call->verdict, sar_memory_ready(&call->memory), (int64_t)(uintptr_t)stream);
}

/* Where no argument is wrong; but it may be that the vector cannot be read. */
static bool needs_mirrors(const struct sar_call *call)
{
    return !is_on_host(call) && (call->verdict.status == SAR_OK || sar_memory_is_out_of_reach(call));
}

void sar_memory_take(struct sar_call *call)
{
    if (needs_mirrors(call) && call->dense_face)
        sar_blame(&call->verdict, describe_dense(call), call->field[SAR_FIELD_DATATYPE]);
}

void sar_memory_hold(struct sar_call *call)
{
    if (needs_mirrors(call) && call->dense_face)
        sar_blame(&call->verdict, hold_dense(call), 0);
}

void sar_memory_release(struct sar_call *call)
{
    for (int i = 0; i < 2; i++)
        sar_mirror_release(&call->mirror[i]);
}

void sar_memory_spoil(struct sar_call *call)
{
    for (int i = 0; i < 2; i++)
        if (call->mirror[i].in && call->mirror[i].host != NULL)
            memset(call->mirror[i].host, 0xff, call->mirror[i].bytes);
}

/* At once, or when its turn comes. */
typedef enum sar_status read_fn(const struct sar_memory *memory, const struct sar_mirror mirrors[], size_t n);

static void read_by(struct sar_call *call, read_fn *read)
{
    if (!needs_mirrors(call))
        return;
    if (call->verdict.status != SAR_CAPTURED)
        sar_blame(&call->verdict, read(&call->memory, call->mirror, 2), 0);
    if (call->verdict.status != SAR_OK)
        sar_memory_spoil(call);
}

void sar_memory_read(struct sar_call *call)
{
    call->remote = false;
    sar_memory_hold(call);
    read_by(call, sar_mirrors_read);
}

void sar_memory_queue_read(struct sar_call *call)
{
    read_by(call, sar_mirrors_queue_read);
}

int sar_memory_write(MPI_Comm comm, const char *function, const struct sar_call *call, int code)
{
    if (is_on_host(call) || call->remote || code != MPI_SUCCESS)
        return code;
    struct sar_verdict verdict = { .status = sar_mirrors_write(&call->memory, call->mirror, 2) };
    return sar_raise(comm, function, &verdict, NULL);
}

/* Found out once for a communicator. */
static enum sar_aware aware(struct sar_context *context, const struct sar_memory *memory)
{
    int asked = context->policy.config.cuda_aware;
    if (asked != SAR_AWARE_AUTO)
        return (enum sar_aware)asked;
    if (context->aware == SAR_AWARE_AUTO)
        context->aware = sar_net_takes(&context->net, memory) ? SAR_AWARE_YES : SAR_AWARE_NO;
    return context->aware;
}

bool sar_memory_suits_mpi(const struct sar_call *call, struct sar_context *context)
{
    if (is_on_host(call))
        return true;
    if (context == NULL || call->verdict.status != SAR_OK)
        return false;
    return aware(context, &call->memory) == SAR_AWARE_YES &&
           sar_mirrors_read(&call->memory, NULL, 0) == SAR_OK;
}

void sar_memory_give_mpi(struct sar_call *call, const struct sar_context *context)
{
    if (is_on_host(call))
        return;
    sar_memory_use_stream(call, context->stream);
    if (call->verdict.status == SAR_OK)
        sar_blame(&call->verdict, sar_mirrors_read(&call->memory, NULL, 0), 0);
    if (call->verdict.status == SAR_OK)
        return;
    sar_memory_take(call);
    sar_memory_read(call);
}

void sar_memory_defer(struct sar_call *call, struct sar_context *context)
{
    call->remote = !is_on_host(call) && call->native && call->verdict.status == SAR_OK;
    call->aware = call->remote && aware(context, &call->memory) == SAR_AWARE_YES;
    call->direct = call->aware && call->dense_face;
    if (!call->remote)
        sar_memory_read(call);
}

void sar_memory_enter(struct sar_call *call, struct sar_context *context)
{
    sar_memory_use_stream(call, context->stream);
    sar_memory_take(call);
    sar_memory_defer(call, context);
}

int sar_memory_leave(MPI_Comm comm, const char *function, struct sar_call *call, int code)
{
    code = sar_memory_write(comm, function, call, code);
    sar_memory_release(call);
    return code;
}
