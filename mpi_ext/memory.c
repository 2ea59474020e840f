/* SPDX-License-Identifier: BSD-3-Clause */
#include "mpi_ext/memory.h"

#include "mpi_ext/error.h"
#include "net/aware.h"

static void blame(struct sar_verdict *verdict, enum sar_status status, int64_t value)
{
    if (verdict->status == SAR_OK)
        *verdict = (struct sar_verdict){ .status = status, .value = value };
}

static bool is_array(const void *array)
{
    return array != NULL && array != MPI_IN_PLACE && array != MPIX_SPARSE_STRIDED;
}

void sar_memory_look_at(struct sar_verdict *verdict, const struct sar_memory *memory, const void *array,
                        enum sar_status status)
{
    int place;
    if (!is_array(array))
        return;
    bool on_device = sar_accelerator_of(array, &place) != NULL;
    if (on_device != (memory->accelerator != NULL))
        blame(verdict, status, on_device ? SAR_FAULT_ON_DEVICE : SAR_FAULT_ON_HOST);
}

void sar_memory_look(struct sar_call *call, const void *first, const void *second, enum sar_status status)
{
    struct sar_memory *memory = &call->memory;
    if (!is_array(first))
        return;
    memory->accelerator = sar_accelerator_of(first, &memory->place);
    sar_memory_look_at(&call->verdict, memory, second, status);
}

bool sar_memory_is_on_host(const void *first, const void *second)
{
    return is_array(first) && is_array(second) && sar_accelerator_is_idle(first, second);
}

/* What dense buffers take: from the first byte of the first element to the last of the last one. */
struct stretch {
    MPI_Aint offset;
    size_t bytes;
    bool gaps; /* that belong to the caller */
};

static enum sar_status measure(const struct sar_dense_call *buffers, struct stretch *stretch)
{
    MPI_Aint lower, extent, true_lower, true_extent;
    MPI_Count size;
    SAR_TRY(sar_mpi(PMPI_Type_get_extent(buffers->datatype, &lower, &extent)));
    SAR_TRY(sar_mpi(PMPI_Type_get_true_extent(buffers->datatype, &true_lower, &true_extent)));
    SAR_TRY(sar_mpi(PMPI_Type_size_x(buffers->datatype, &size)));
    if (extent < 0)
        return SAR_BAD_DATATYPE;
    size_t most = (size_t)(buffers->count - 1) * (size_t)extent + (size_t)true_extent;
    *stretch = (struct stretch){ true_lower, most, size != extent };
    return SAR_OK;
}

static struct sar_mirror mirror_of(const void *buffer, const struct stretch *stretch)
{
    char *begin = (char *)(uintptr_t)buffer + stretch->offset;
    return (struct sar_mirror){ .device = begin, .bytes = stretch->bytes };
}

/* Without memory of the host, which most calls need none of. */
static enum sar_status describe_dense(struct sar_call *call)
{
    const struct sar_dense_call *b = &call->buffers;
    struct sar_mirror *send = &call->mirror[0], *receive = &call->mirror[1];
    struct stretch stretch;
    SAR_TRY(measure(b, &stretch));
    if (!call->in_place)
        *send = mirror_of(b->sendbuf, &stretch);
    if (b->recvbuf != NULL)
        *receive = mirror_of(b->recvbuf, &stretch);
    send->in = true;
    receive->in = call->in_place || stretch.gaps;
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

void sar_memory_take(struct sar_call *call)
{
    if (!is_on_host(call) && call->dense_face && call->verdict.status == SAR_OK)
        blame(&call->verdict, describe_dense(call), call->field[SAR_FIELD_DATATYPE]);
}

void sar_memory_hold(struct sar_call *call)
{
    if (!is_on_host(call) && call->dense_face && call->verdict.status == SAR_OK)
        blame(&call->verdict, hold_dense(call), 0);
}

void sar_memory_release(struct sar_call *call)
{
    for (int i = 0; i < 2; i++)
        sar_mirror_release(&call->mirror[i]);
}

void sar_memory_read(struct sar_call *call)
{
    call->remote = false;
    sar_memory_hold(call);
    if (!is_on_host(call) && call->verdict.status == SAR_OK)
        blame(&call->verdict, sar_mirrors_read(&call->memory, call->mirror, 2), 0);
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
    struct sar_memory memory = call->memory;
    memory.stream = context->stream;
    return aware(context, &memory) == SAR_AWARE_YES && sar_mirrors_read(&memory, NULL, 0) == SAR_OK;
}

void sar_memory_defer(struct sar_call *call, struct sar_context *context)
{
    call->remote = !is_on_host(call) && call->native && call->verdict.status == SAR_OK;
    call->direct = call->remote && call->dense_face && aware(context, &call->memory) == SAR_AWARE_YES;
    if (!call->remote)
        sar_memory_read(call);
}

void sar_memory_enter(struct sar_call *call, struct sar_context *context)
{
    call->memory.stream = context->stream;
    sar_memory_take(call);
    sar_memory_defer(call, context);
}

int sar_memory_leave(MPI_Comm comm, const char *function, struct sar_call *call, int code)
{
    code = sar_memory_write(comm, function, call, code);
    sar_memory_release(call);
    return code;
}
