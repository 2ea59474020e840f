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
    struct sar_plan *plan; /**< whose flight it is; or NULL */
    const char *function;
    int place;     /**< of the plan in an array of the function's, which errors name; from 1 on, or 0 */
    size_t others; /**< plans that fly with it */
    MPI_Request request;
    int code;  /**< of the outcome */
    bool kept; /**< by a plan, for the next call */
    atomic_bool taken;
    atomic_bool done, abandoned; /**< nobody will wait for it */
};

/** Begin a call whose end an MPI_Request tells. Collective. What is wrong with arguments comes out of the
 * request, or at once where there can be none.
 * @param call    copied
 * @param result  address of the caller's argument, or NULL for dense buffers */
int sar_request_post(MPI_Comm comm, const char *function, struct sar_context *context,
                     const struct sar_call *call, MPIX_Sparse_result **result, MPI_Request *request);

/** The same of a plan, which keeps the flight: flight->comm, plan, function and call are set. The call's
 * elements and verdict, too. */
int sar_request_restart(struct sar_flight *flight, MPIX_Sparse_result **result, MPI_Request *request);

/** Whether a plan's flight is in use by a call that is not done. */
bool sar_flight_is_taken(struct sar_flight *flight);

/** The steps of a restart, for plans that start together. Take a plan's flight, unless it is taken or its
 * communicator is gone, and make its request. */
struct sar_verdict sar_flight_take(struct sar_flight *flight);

/** Give back a flight that was taken and shall not leave. */
void sar_flight_drop(struct sar_flight *flight);

/** Begin flight->call, with what `plan` knows. */
void sar_flight_leave(struct sar_flight *flight, struct sar_plan *plan,
                      void (*finished)(struct sar_pending *pending));

/** Let a flight end with another's call: whoever waits for it waits for that. */
void sar_flight_join(struct sar_flight *flight, struct sar_context *context);

/** Raise what went wrong with a flight that is over; returns its code. */
int sar_flight_judge(const struct sar_flight *flight);

/** Tell MPI that a flight is over. The last thing done with one that has none to wait for it: MPI may
 * release it at once. */
void sar_flight_end(struct sar_flight *flight, int code);

/** The end of a flight that nobody else ends with. */
void sar_flight_land(struct sar_pending *pending);

#endif
