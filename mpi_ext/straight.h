/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls that go straight to MPI, since the thread's last call that went there had the same arguments, but
 * perhaps for buffers, and nothing has come about since that would let this one go another way. It is all
 * that a small call has time for: some forty instructions, and no call of a function. */

#ifndef SAR_MPI_EXT_STRAIGHT_H
#define SAR_MPI_EXT_STRAIGHT_H

#include <mpi.h>

#include "mpi_ext/alive.h"
#include "plan/forward.h"

/* A thread's own variable that is found without a call. glibc has room for some even in libraries that are
 * opened later, so these should be few. */
#ifdef __GLIBC__
#define SAR_NEAR_BY __attribute__((tls_model("initial-exec")))
#else
#define SAR_NEAR_BY
#endif

/** A call that has gone to MPI. Its datatype is one of MPI's own, whose handle is never another's. */
struct sar_straight {
    const void *sendbuf;
    void *recvbuf; /**< nobody's where a device's memory may come to be at either address */
    MPI_Count count;
    MPI_Datatype datatype;
    MPI_Op op;
    MPI_Comm comm;
    uint_fast64_t age; /**< sar_alive_age by then */
    struct sar_precedent precedent;
};

/** The calling thread's last one, or NULL. For the functions below only. */
extern _Thread_local struct sar_straight *sar_straight_last SAR_NEAR_BY;

/** Remember a call that is about to go to MPI as it is, if its like may follow without a look; else none.
 * @param context  or NULL for two groups, whose calls may not */
void sar_straight_keep(MPI_Comm comm, struct sar_context *context, const struct sar_call *call);

/** Whether other buffers do as well as the last call's. */
bool sar_straight_takes(const struct sar_straight *last, const void *sendbuf, const void *recvbuf);

/** The last call if it is like one with these arguments, whose handles need not be valid; else NULL. */
static inline const struct sar_straight *sar_straight_like(const void *sendbuf, const void *recvbuf,
                                                           MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                                                           MPI_Comm comm)
{
    const struct sar_straight *last = sar_straight_last;
    if (last == NULL || count != last->count || datatype != last->datatype || op != last->op ||
        comm != last->comm || sar_alive_age() != last->age)
        return NULL;
    bool same = sendbuf == last->sendbuf && recvbuf == last->recvbuf;
    return same || sar_straight_takes(last, sendbuf, recvbuf) ? last : NULL;
}

/** Whether a call with these arguments goes to MPI_Allreduce as it is, and counted as such. */
static inline bool sar_straight_again(const void *sendbuf, const void *recvbuf, MPI_Count count,
                                      MPI_Datatype datatype, MPI_Op op, MPI_Comm comm)
{
    const struct sar_straight *like = sar_straight_like(sendbuf, recvbuf, count, datatype, op, comm);
    return like != NULL && sar_forward_again(&like->precedent);
}

/** The same for MPI_Iallreduce, which takes only those calls that are always forwarded. */
static inline bool sar_straight_start(const void *sendbuf, const void *recvbuf, MPI_Count count,
                                      MPI_Datatype datatype, MPI_Op op, MPI_Comm comm)
{
    const struct sar_straight *like = sar_straight_like(sendbuf, recvbuf, count, datatype, op, comm);
    return like != NULL && like->precedent.record == NULL && sar_forward_again(&like->precedent);
}

#endif
