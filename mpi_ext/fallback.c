/* SPDX-License-Identifier: BSD-3-Clause */
/* Passes calls to MPI, and stores allreduces in the thread's fallback cache. */

#include "mpi_ext/fallback.h"

#include <limits.h>

#include "device/accelerator.h"
#include "mpi_ext/datatypes.h"
#include "mpi_ext/error.h"
#include "mpi_ext/user_buffers.h"

bool sar_fallback_fits_int(const struct sar_call_args *call)
{
    const struct sar_vec_desc *desc = &call->sig.desc;
    return sar_mul_saturate(desc->count, desc->element_size) <= sar_dense_allreduce_chunk_bytes &&
           call->data.buffers.count <= INT_MAX;
}

static bool is_poisoned(const struct sar_call_args *call)
{
    return sar_user_buffers_unreadable(call) && call->device.copy[1].host != NULL;
}

static int reduce(MPI_Comm comm, const struct sar_call_args *call)
{
    const struct sar_dense_args *b = &call->data.buffers;
    if (!sar_fallback_fits_int(call))
        return sar_dense_allreduce_blocking(comm, b);
    if (b->parts > 0)
        return PMPI_Reduce_scatter_block(b->sendbuf, b->recvbuf, (int)b->count, b->datatype, b->op, comm);
    return PMPI_Allreduce(b->sendbuf, b->recvbuf, (int)b->count, b->datatype, b->op, comm);
}

int sar_fallback_run(MPI_Comm comm, const char *function, const struct sar_call_args *call)
{
    if (call->result.error.status == SAR_OK)
        return reduce(comm, call);
    if (is_poisoned(call))
        (void)reduce(comm, call);
    return sar_error_raise(comm, function, &call->result.error, NULL);
}

static int start(MPI_Comm comm, const struct sar_call_args *call, MPI_Request *request)
{
    const struct sar_dense_args *b = &call->data.buffers;
    if (b->parts > 0)
        return PMPI_Ireduce_scatter_block(b->sendbuf, b->recvbuf, (int)b->count, b->datatype, b->op, comm,
                                          request);
    return PMPI_Iallreduce(b->sendbuf, b->recvbuf, (int)b->count, b->datatype, b->op, comm, request);
}

int sar_fallback_start(MPI_Comm comm, const char *function, const struct sar_call_args *call,
                       MPI_Request *request)
{
    struct sar_error error = call->result.error;
    MPI_Request own_request;
    if (error.status == SAR_OK && request == NULL)
        error.status = SAR_BAD_REQUEST;
    if (error.status == SAR_OK)
        return start(comm, call, request);
    if (is_poisoned(call) && start(comm, call, &own_request) == MPI_SUCCESS)
        PMPI_Wait(&own_request, MPI_STATUS_IGNORE);
    return sar_error_raise(comm, function, &error, NULL);
}

_Thread_local struct sar_fallback_cache *sar_fallback_cache_last SAR_TLS_INITIAL_EXEC;

/* Not for 2-byte integers: settings may declare them floats. */
static bool is_cacheable(const struct sar_call_args *call)
{
    return call->result.error.status == SAR_OK && call->device.memory.accelerator == NULL &&
           !call->sig.int16_as_float && call->sig.desc.row_len == 1 &&
           sar_predefined_find(call->data.buffers.datatype) != NULL && sar_fallback_fits_int(call);
}

static bool is_host_memory(const struct sar_call_args *call)
{
    const struct sar_dense_args *b = &call->data.buffers;
    return sar_host_address_is_certain(b->recvbuf) &&
           (call->sig.in_place || sar_host_address_is_certain(b->sendbuf));
}

void sar_fallback_cache_store(MPI_Comm comm, struct sar_comm_state *comm_state,
                              const struct sar_call_args *call)
{
    static _Thread_local struct sar_fallback_cache stored;
    const struct sar_dense_args *b = &call->data.buffers;
    if (b->parts > 0)
        return;
    sar_fallback_cache_clear();
    if (comm_state == NULL || !is_cacheable(call))
        return;
    stored = (struct sar_fallback_cache){
        .sendbuf = b->sendbuf,
        .recvbuf = is_host_memory(call) ? b->recvbuf : (void *)&stored, /* never a caller's buffer */
        .count = (MPI_Count)b->count,
        .datatype = b->datatype,
        .op = b->op,
        .comm = comm,
        .generation = sar_lifecycle_generation(),
        .entry = sar_fallback_entry_make(comm_state, call),
    };
    sar_fallback_cache_last = &stored;
}

bool sar_fallback_cache_accepts(const struct sar_fallback_cache *last, const void *sendbuf,
                                const void *recvbuf)
{
    bool in_place = sendbuf == MPI_IN_PLACE;
    return in_place == (last->sendbuf == MPI_IN_PLACE) && sendbuf != recvbuf &&
           sar_user_buffers_on_host(in_place ? recvbuf : sendbuf, recvbuf);
}
