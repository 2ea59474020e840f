/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_NET_DENSE_H
#define SAR_NET_DENSE_H

#include <stdbool.h>
#include <stddef.h>

#include "net/net.h"

/** Arguments of an MPI_Allreduce on buffers that may have more elements than int can count. */
struct sar_dense_call {
    const void *sendbuf; /**< or MPI_IN_PLACE */
    void *recvbuf;
    uint64_t count;
    MPI_Datatype datatype;
    MPI_Op op;
};

/** One such call under way, in pieces where the count asks for it. */
struct sar_dense {
    const struct sar_net *net;
    struct sar_dense_call call;
    MPI_Aint extent; /**< of the datatype */
    uint64_t done;   /**< elements reduced or posted */
    struct sar_collective collective;
};

/** Bytes that one call of MPI is given, at most, unless an element alone has more: MPI libraries compute with
 * int inside. */
enum { SAR_DENSE_PIECE = 1 << 30 };

/** Elements of so many bytes that the next call of MPI is given, of those that are left. */
uint64_t sar_dense_piece(uint64_t left, MPI_Aint extent);

/** Carry out a call by the MPI library's blocking allreduce, in pieces; returns MPI's code. */
int sar_dense_reduce(MPI_Comm comm, const struct sar_dense_call *call);

/** Start. Where `block`, the MPI library's blocking allreduce is used, which is often the faster one, and all
 * is done on return. Collective. */
enum sar_status sar_dense_start(const struct sar_net *net, const struct sar_dense_call *call, bool block,
                                struct sar_dense *dense);

/** Make progress. */
enum sar_status sar_dense_advance(struct sar_dense *dense, bool block, bool *done);

#endif
