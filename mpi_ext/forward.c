/* SPDX-License-Identifier: BSD-3-Clause */
#include "mpi_ext/forward.h"

#include <limits.h>

#include "mpi_ext/error.h"

bool sar_forward_fits(const struct sar_call *call)
{
    const struct sar_shape *shape = &call->shape;
    return sar_times(shape->count, shape->element_size) <= SAR_DENSE_PIECE && call->buffers.count <= INT_MAX;
}

int sar_forward(MPI_Comm comm, const char *function, const struct sar_call *call)
{
    const struct sar_dense_call *b = &call->buffers;
    if (call->verdict.status != SAR_OK)
        return sar_raise(comm, function, &call->verdict, NULL);
    if (!sar_forward_fits(call))
        return sar_dense_reduce(comm, b);
    return PMPI_Allreduce(b->sendbuf, b->recvbuf, (int)b->count, b->datatype, b->op, comm);
}

int sar_forward_start(MPI_Comm comm, const char *function, const struct sar_call *call, MPI_Request *request)
{
    const struct sar_dense_call *b = &call->buffers;
    struct sar_verdict verdict = call->verdict;
    if (verdict.status == SAR_OK && request == NULL)
        verdict.status = SAR_BAD_REQUEST;
    if (verdict.status != SAR_OK)
        return sar_raise(comm, function, &verdict, NULL);
    return PMPI_Iallreduce(b->sendbuf, b->recvbuf, (int)b->count, b->datatype, b->op, comm, request);
}
