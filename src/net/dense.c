/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/dense.h"

#include "net/roll.h"

uint64_t sar_dense_piece(uint64_t left, MPI_Aint extent)
{
    uint64_t size = extent < 0 ? -(uint64_t)extent : (uint64_t)extent;
    uint64_t most = size > SAR_DENSE_PIECE ? 1 : SAR_DENSE_PIECE / (size > 0 ? size : 1);
    return left < most ? left : most;
}

/* Types of its own that an MPI has no ops for it alone knows. */
static enum sar_status status_of(int code)
{
    int class = MPI_SUCCESS;
    if (code != MPI_SUCCESS)
        PMPI_Error_class(code, &class);
    return class == MPI_ERR_OP ? SAR_UNDEFINED_OP : sar_mpi(code);
}

static enum sar_status run_piece(struct sar_dense *dense, bool block)
{
    const struct sar_dense_call *call = &dense->call;
    MPI_Aint offset = (MPI_Aint)dense->done * dense->extent;
    const void *in = call->sendbuf == MPI_IN_PLACE ? MPI_IN_PLACE : (const char *)call->sendbuf + offset;
    void *out = (char *)call->recvbuf + offset;
    int n = (int)sar_dense_piece(call->count - dense->done, dense->extent), code;
    sar_roll_begin(dense->net, &dense->collective, "dense allreduce");
    if (block)
        code = PMPI_Allreduce(in, out, n, call->datatype, call->op, dense->net->comm);
    else
        code = PMPI_Iallreduce(in, out, n, call->datatype, call->op, dense->net->comm,
                               &dense->collective.request);
    dense->done += (uint64_t)n;
    return status_of(code);
}

enum sar_status sar_dense_start(const struct sar_net *net, const struct sar_dense_call *call, bool block,
                                struct sar_dense *dense)
{
    MPI_Aint low;
    *dense = (struct sar_dense){ .net = net, .call = *call, .collective.request = MPI_REQUEST_NULL };
    SAR_TRY(sar_mpi(PMPI_Type_get_extent(call->datatype, &low, &dense->extent)));
    do
        SAR_TRY(run_piece(dense, block));
    while (block && dense->done < call->count);
    return SAR_OK;
}

enum sar_status sar_dense_advance(struct sar_dense *dense, bool block, bool *done)
{
    bool over = true;
    *done = false;
    if (dense->collective.request != MPI_REQUEST_NULL)
        SAR_TRY(sar_net_test(dense->net, &dense->collective, block, &over));
    if (over && dense->done < dense->call.count)
        return run_piece(dense, block);
    *done = over;
    return SAR_OK;
}
