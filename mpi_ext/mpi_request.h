/* SPDX-License-Identifier: BSD-3-Clause */
/* Nonblocking calls: an active call together with the MPI request that completes with it. A request of
 * MPIX_Isparse_allreduce is allocated per call; the request of a plan belongs to the plan and is reused. */

#ifndef SAR_MPI_EXT_MPI_REQUEST_H
#define SAR_MPI_EXT_MPI_REQUEST_H

#include "mpi_ext/result.h"
#include "core/active_call.h"

/** A nonblocking call and its MPI request. */
struct sar_mpi_request {
    struct sar_active_call active; /**< first, so that an active call can be cast to its request */
    struct sar_call_args args;     /**< of the active call */
    struct sar_result_guard guard; /**< of a coordinate call */
    MPI_Comm comm;                 /**< the caller's */
    struct sar_plan *plan;         /**< the plan that owns the request, or NULL */
    const char *function;          /**< public function that started the call, for errors */
    int plan_number;     /**< 1 + index of the plan in MPIX_Sparse_plan_start_all, for errors; or 0 */
    uint64_t group;      /**< active.group of the next start */
    size_t fused_count;  /**< other plans fused with this one */
    MPI_Request request; /**< generalized request */
    int code;            /**< MPI error code of the call, once it is done */
    bool persistent;     /**< owned by a plan, not freed with the MPI request */
    atomic_bool in_use;  /**< from the start until MPI has freed the MPI request */
    atomic_bool done;    /**< the call is complete, and `code` is set */
    atomic_bool freed;   /**< MPI_Request_free was called before the call was complete */
};

/** Starts a nonblocking call and sets *request. Errors in arguments are raised when the request completes; if
 * there is no request, the call runs blocking and the error is returned. Collective over comm.
 * @param call    arguments; copied
 * @param result  address of the caller's result argument; NULL for dense buffers */
int sar_mpi_request_post(MPI_Comm comm, const char *function, struct sar_comm_state *comm_state,
                         const struct sar_call_args *call, MPIX_Sparse_result **result, MPI_Request *request);

/** Starts the call of a plan's request; comm, plan, function and args are set. Returns an error, on this rank
 * only, if the plan cannot be started. Collective over the plan's communicator.
 * @param result  as in sar_mpi_request_post */
int sar_mpi_request_restart(struct sar_mpi_request *req, MPIX_Sparse_result **result, MPI_Request *request);

/** True if a plan's request is in use by a call that is not complete. Local. */
bool sar_mpi_request_in_use(struct sar_mpi_request *req);

/** Reserves a plan's request and creates its MPI request, without starting a call. Returns the error if the
 * request is in use, the communicator was freed or MPI fails. Local. */
struct sar_error sar_mpi_request_acquire(struct sar_mpi_request *req);

/** Frees the MPI request of an acquired request that is not started. Local. */
void sar_mpi_request_drop(struct sar_mpi_request *req);

/** Starts the call in req->args on an acquired request. Collective over the plan's communicator.
 * @param plan      plan whose tensor state the call uses; NULL for none
 * @param finished  called when the call is complete */
void sar_mpi_request_start(struct sar_mpi_request *req, struct sar_plan *plan,
                           void (*finished)(struct sar_active_call *active));

/** Raises the error of a complete call on its communicator; returns its code. Local. */
int sar_mpi_request_raise(const struct sar_mpi_request *req);

/** Completes the MPI request with `code`. Do not touch req afterwards: MPI may free it at once. Local. */
void sar_mpi_request_finish(struct sar_mpi_request *req, int code);

/** The usual `finished` function: raise the error, deliver the output, complete the MPI request. Local. */
void sar_mpi_request_complete(struct sar_active_call *active);

/** Ends and joins the progress thread, if it exists. No call may be active. Local. */
void sar_progress_thread_stop(void);

#endif
