/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_MPI_EXT_ERROR_H
#define SAR_MPI_EXT_ERROR_H

#include <mpi.h>

#include "plan/call.h"

/** Values of SAR_FIELD_CALL. */
enum sar_function {
    SAR_CALL_DENSE,
    SAR_CALL_COO,
    SAR_CALL_PROFILE,
    SAR_CALL_INIT,
    SAR_CALL_COO_INIT,
    SAR_CALL_START,
    SAR_CALL_COO_START,
    SAR_CALL_TOPK,
    SAR_CALL_DGC,
    SAR_CALLS
};

/** What is wrong with a pointer or handle: verdict.value of such arguments. */
enum sar_fault {
    SAR_FAULT_NULL,
    SAR_FAULT_SHARED,      /**< the same as the other buffer */
    SAR_FAULT_MISPLACED,   /**< MPI_IN_PLACE where it has no meaning */
    SAR_FAULT_ALIEN,       /**< a plan of the other kind of buffers */
    SAR_FAULT_IN_USE,      /**< by a call that is not done */
    SAR_FAULT_ORPHANED,    /**< its communicator was freed */
    SAR_FAULT_STRIDED,     /**< a Fortran section with gaps */
    SAR_FAULT_ON_HOST,     /**< unlike the other arrays of the call */
    SAR_FAULT_ON_DEVICE,   /**< likewise */
    SAR_FAULT_ELSEWHERE,   /**< on another device than they */
    SAR_FAULT_OVERLAPPING, /**< memory of another array of the call */
    SAR_FAULT_OUT_OF_REACH /**< on a device, without a plug-in */
};

/** Which output is null: verdict.value of SAR_BAD_OUTPUT. */
enum sar_output {
    SAR_OUTPUT_INFO,
    SAR_OUTPUT_NNZ,
    SAR_OUTPUT_PLANS,
    SAR_OUTPUT_PROFILE,
    SAR_OUTPUT_REPORT,
    SAR_OUTPUT_REQUESTS,
    SAR_OUTPUT_THRESHOLD,
    SAR_OUTPUT_VERSION
};

/** Turn what went wrong into an MPI error code whose text says so, call the error handler of comm, and return
 * the code. MPI_SUCCESS when nothing did.
 * @param detail  further words, or NULL */
int sar_raise(MPI_Comm comm, const char *function, const struct sar_verdict *verdict, const char *detail);

/** Make the code that a child of fork() gets: it cannot ask MPI for one. */
void sar_error_prepare(void);

/** Make new codes from now on: MPI may end, and then the old ones are void. */
void sar_error_forget(void);

/** For functions without a communicator: the code alone.
 * @param value  as in a verdict */
int sar_error_code(const char *function, enum sar_status status, int64_t value);

#endif
