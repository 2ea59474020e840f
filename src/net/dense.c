/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/dense.h"

#include "net/roll.h"

enum { PIECE = 1 << 30 /* elements that one call of MPI can take */ };

static uint64_t piece_of(const struct sar_dense *dense)
{
    uint64_t left = dense->call.count - dense->done;
    return left < PIECE ? left : PIECE;
}

static enum sar_status run_piece(struct sar_dense *dense, bool block)
{
    const struct sar_dense_call *call = &dense->call;
    MPI_Aint offset = (MPI_Aint)dense->done * dense->extent;
    const void *in = call->sendbuf == MPI_IN_PLACE ? MPI_IN_PLACE : (const char *)call->sendbuf + offset;
    void *out = (char *)call->recvbuf + offset;
    int n = (int)piece_of(dense), code;
    sar_roll_begin(dense->net, &dense->collective, "dense allreduce");
    if (block)
        code = PMPI_Allreduce(in, out, n, call->datatype, call->op, dense->net->comm);
    else
        code = PMPI_Iallreduce(in, out, n, call->datatype, call->op, dense->net->comm,
                               &dense->collective.request);
    dense->done += (uint64_t)n;
    return sar_mpi(code);
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
