/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_MPI_EXT_REQUEST_H
#define SAR_MPI_EXT_REQUEST_H

#include "mpi_ext/result.h"
#include "plan/call.h"

/** A nonblocking call of a user. */
struct sar_flight {
    struct sar_pending pending; /**< first */
    struct sar_call call;
    struct sar_into into;
    MPI_Comm comm;
    const char *function;
    MPI_Request request;
    int code;  /**< of the outcome */
    bool kept; /**< by a plan, for the next call */
    bool taken;
    atomic_bool done;
};

/** Begin a call whose end an MPI_Request tells. Collective, and blocking where the communicator has no
 * context yet. What is wrong with arguments comes out of the request, or at once where there can be none.
 * @param call    copied
 * @param result  address of the caller's argument, or NULL for dense buffers */
int sar_request_post(MPI_Comm comm, const char *function, const struct sar_call *call,
                     MPIX_Sparse_result **result, MPI_Request *request);

/** The same of a plan, which keeps the flight: flight->comm, function, call and pending.plan are set. The
 * call's elements and verdict, too. */
int sar_request_restart(struct sar_flight *flight, MPIX_Sparse_result **result, MPI_Request *request);

#endif
