/* SPDX-License-Identifier: BSD-3-Clause */
#include "mpi_ext/forward.h"

#include <limits.h>

#include "mpi_ext/error.h"
#include "mpi_ext/memory.h"

bool sar_forward_fits(const struct sar_call *call)
{
    const struct sar_shape *shape = &call->shape;
    return sar_times(shape->count, shape->element_size) <= SAR_DENSE_PIECE && call->buffers.count <= INT_MAX;
}

static bool has_no_vector(const struct sar_call *call)
{
    return sar_memory_is_out_of_reach(call) && call->mirror[1].host != NULL;
}

static int reduce(MPI_Comm comm, const struct sar_call *call)
{
    const struct sar_dense_call *b = &call->buffers;
    if (!sar_forward_fits(call))
        return sar_dense_reduce(comm, b);
    return PMPI_Allreduce(b->sendbuf, b->recvbuf, (int)b->count, b->datatype, b->op, comm);
}

int sar_forward(MPI_Comm comm, const char *function, const struct sar_call *call)
{
    if (call->verdict.status == SAR_OK)
        return reduce(comm, call);
    if (has_no_vector(call))
        (void)reduce(comm, call);
    return sar_raise(comm, function, &call->verdict, NULL);
}

static int start(MPI_Comm comm, const struct sar_call *call, MPI_Request *request)
{
    const struct sar_dense_call *b = &call->buffers;
    return PMPI_Iallreduce(b->sendbuf, b->recvbuf, (int)b->count, b->datatype, b->op, comm, request);
}

int sar_forward_start(MPI_Comm comm, const char *function, const struct sar_call *call, MPI_Request *request)
{
    struct sar_verdict verdict = call->verdict;
    MPI_Request alone;
    if (verdict.status == SAR_OK && request == NULL)
        verdict.status = SAR_BAD_REQUEST;
    if (verdict.status == SAR_OK)
        return start(comm, call, request);
    if (has_no_vector(call) && start(comm, call, &alone) == MPI_SUCCESS)
        PMPI_Wait(&alone, MPI_STATUS_IGNORE);
    return sar_raise(comm, function, &verdict, NULL);
}
