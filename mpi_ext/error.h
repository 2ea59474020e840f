/* SPDX-License-Identifier: BSD-3-Clause */
/* Conversion of internal errors to MPI error codes, with a text, and calls of the user's error handlers. Runs
 * when a call fails; success costs one comparison. */

#ifndef SAR_MPI_EXT_ERROR_H
#define SAR_MPI_EXT_ERROR_H

#include <mpi.h>

#include "core/active_call.h"

/** Values of SAR_AGREE_FUNCTION: the public function that a rank called. */
enum sar_function {
    SAR_FUNCTION_DENSE,
    SAR_FUNCTION_COO,
    SAR_FUNCTION_PROFILE,
    SAR_FUNCTION_INIT,
    SAR_FUNCTION_COO_INIT,
    SAR_FUNCTION_START,
    SAR_FUNCTION_COO_START,
    SAR_FUNCTION_TOPK,
    SAR_FUNCTION_DGC,
    SAR_FUNCTION_REDUCE_SCATTER,
    SAR_FUNCTION_REDUCE_SCATTER_INIT,
    SAR_FUNCTION_REDUCE_SCATTER_START,
    SAR_FUNCTION_REDUCE_SCATTER_COO,
    SAR_FUNCTION_REDUCE_SCATTER_COO_INIT,
    SAR_FUNCTION_REDUCE_SCATTER_COO_START,
    SAR_FUNCTION_ALLGATHER_COO,
    SAR_FUNCTION_ALLGATHER_COO_INIT,
    SAR_FUNCTION_ALLGATHER_COO_START,
    SAR_FUNCTION_BCAST_DELTA,
    SAR_FUNCTION_BCAST_COO,
    SAR_FUNCTIONS
};

/** Fault of a pointer or handle: error.value of the statuses SAR_BAD_SENDBUF to SAR_BAD_PLAN. */
enum sar_fault {
    SAR_FAULT_NULL,
    SAR_FAULT_ALIASED,      /**< equals the other buffer of the call */
    SAR_FAULT_NOT_IN_PLACE, /**< sendbuf equals recvbuf */
    SAR_FAULT_IN_PLACE,     /**< MPI_IN_PLACE where it has no meaning */
    SAR_FAULT_WRONG_KIND,   /**< a plan for coordinates instead of dense buffers, or the reverse */
    SAR_FAULT_IN_USE,       /**< in use by a call that is not complete */
    SAR_FAULT_COMM_FREED,   /**< the plan's communicator was freed */
    SAR_FAULT_STRIDED,      /**< a Fortran array section with gaps */
    SAR_FAULT_ON_HOST,      /**< in host memory, but the call's first array is on a device */
    SAR_FAULT_ON_DEVICE,    /**< on a device, but the call's first array is in host memory */
    SAR_FAULT_OTHER_DEVICE, /**< on another device than the call's first array */
    SAR_FAULT_OVERLAPPING,  /**< overlaps another array of the call */
    SAR_FAULT_NO_PLUGIN,    /**< on a device, but the CUDA plug-in is not available */
    SAR_FAULT_NO_REQUEST    /**< a plan for which MPI makes no request */
};

/** Returns error.value of SAR_BAD_PLANS: the fault of plan i of a list. */
static inline int64_t sar_error_plan_fault(int i, int64_t fault)
{
    return (int64_t)i << 8 | fault;
}

/** Output argument that is null: error.value of SAR_BAD_OUTPUT. */
enum sar_null_output {
    SAR_NULL_INFO,
    SAR_NULL_NNZ,
    SAR_NULL_PLANS,
    SAR_NULL_PROFILE,
    SAR_NULL_REPORT,
    SAR_NULL_REQUESTS,
    SAR_NULL_THRESHOLD,
    SAR_NULL_VERSION
};

/** Makes an MPI error code whose text describes the error, calls the error handler of comm, and returns the
 * code. Returns MPI_SUCCESS, and does nothing, if error->status is SAR_OK. Local.
 * @param comm      MPI_COMM_NULL: the handler of MPI_COMM_WORLD is called
 * @param function  public function to name in the text
 * @param detail    text that replaces the description of error->value; NULL for none */
int sar_error_raise(MPI_Comm comm, const char *function, const struct sar_error *error, const char *detail);

/** Makes the error code for children of fork() in advance, since a child cannot ask MPI for one. Local. */
void sar_error_setup(void);

/** Forget all error codes: they are invalid once MPI has been finalized. Local. */
void sar_error_reset(void);

/** Returns the error code of a function without a communicator; calls no error handler. Local.
 * @param value  error.value of the status */
int sar_error_code(const char *function, enum sar_status status, int64_t value);

#endif
