/* SPDX-License-Identifier: BSD-3-Clause */
#include "mpi_ext/straight.h"

#include "device/ordinary.h"
#include "mpi_ext/forward.h"
#include "mpi_ext/memory.h"
#include "mpi_ext/predefined.h"

_Thread_local struct sar_straight *sar_straight_last SAR_NEAR_BY;

/* What knobs make of integers of 2 bytes is not MPI's business. */
static bool is_plain(const struct sar_call *call)
{
    return call->verdict.status == SAR_OK && call->memory.accelerator == NULL && !call->narrow &&
           call->shape.row == 1 && sar_predefined_find(call->buffers.datatype) != NULL &&
           sar_forward_fits(call);
}

static bool is_at_home(const struct sar_call *call)
{
    const struct sar_dense_call *b = &call->buffers;
    return sar_memory_is_ordinary(b->recvbuf) && (call->in_place || sar_memory_is_ordinary(b->sendbuf));
}

void sar_straight_keep(MPI_Comm comm, struct sar_context *context, const struct sar_call *call)
{
    static _Thread_local struct sar_straight kept;
    const struct sar_dense_call *b = &call->buffers;
    sar_straight_last = NULL;
    if (context == NULL || !is_plain(call))
        return;
    kept = (struct sar_straight){
        .sendbuf = b->sendbuf,
        .recvbuf = is_at_home(call) ? b->recvbuf : (void *)&kept, /* which is no caller's */
        .count = (MPI_Count)b->count,
        .datatype = b->datatype,
        .op = b->op,
        .comm = comm,
        .age = sar_alive_age(),
        .precedent = sar_forward_precedent(context, call),
    };
    sar_straight_last = &kept;
}

bool sar_straight_takes(const struct sar_straight *last, const void *sendbuf, const void *recvbuf)
{
    bool in_place = sendbuf == MPI_IN_PLACE;
    return in_place == (last->sendbuf == MPI_IN_PLACE) && sendbuf != recvbuf &&
           sar_memory_is_on_host(in_place ? recvbuf : sendbuf, recvbuf);
}
