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

/* What one call of MPI is given, from some element on. */
struct piece {
    const void *in;
    void *out;
    int n;
};

static struct piece piece_at(const struct sar_dense_call *call, MPI_Aint extent, uint64_t done)
{
    MPI_Aint offset = (MPI_Aint)done * extent;
    bool in_place = call->sendbuf == MPI_IN_PLACE;
    return (struct piece){ in_place ? MPI_IN_PLACE : (const char *)call->sendbuf + offset,
                           (char *)call->recvbuf + offset, (int)sar_dense_piece(call->count - done, extent) };
}

int sar_dense_reduce(MPI_Comm comm, const struct sar_dense_call *call)
{
    MPI_Aint low, extent;
    uint64_t done = 0;
    int code = PMPI_Type_get_extent(call->datatype, &low, &extent);
    if (code != MPI_SUCCESS)
        return code;
    do {
        struct piece piece = piece_at(call, extent, done);
        code = PMPI_Allreduce(piece.in, piece.out, piece.n, call->datatype, call->op, comm);
        done += (uint64_t)piece.n;
    } while (code == MPI_SUCCESS && done < call->count);
    return code;
}

static enum sar_status post_piece(struct sar_dense *dense)
{
    const struct sar_dense_call *call = &dense->call;
    struct piece piece = piece_at(call, dense->extent, dense->done);
    sar_roll_begin(dense->net, &dense->collective, "dense allreduce");
    dense->done += (uint64_t)piece.n;
    return status_of(PMPI_Iallreduce(piece.in, piece.out, piece.n, call->datatype, call->op, dense->net->comm,
                                     &dense->collective.request));
}

enum sar_status sar_dense_start(const struct sar_net *net, const struct sar_dense_call *call, bool block,
                                struct sar_dense *dense)
{
    MPI_Aint low;
    *dense = (struct sar_dense){ .net = net, .call = *call, .collective.request = MPI_REQUEST_NULL };
    if (block) {
        dense->done = call->count;
        return status_of(sar_dense_reduce(net->comm, call));
    }
    SAR_TRY(sar_mpi(PMPI_Type_get_extent(call->datatype, &low, &dense->extent)));
    return post_piece(dense);
}

enum sar_status sar_dense_advance(struct sar_dense *dense, bool block, bool *done)
{
    bool over = true;
    *done = false;
    if (dense->collective.request != MPI_REQUEST_NULL)
        SAR_TRY(sar_net_test(dense->net, &dense->collective, block, &over));
    if (over && dense->done < dense->call.count)
        return post_piece(dense);
    *done = over;
    return SAR_OK;
}
