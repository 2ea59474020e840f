/* SPDX-License-Identifier: BSD-3-Clause */
/* The plan handle, and access to it for the preload library. */

#ifndef SAR_MPI_EXT_PERSISTENT_H
#define SAR_MPI_EXT_PERSISTENT_H

#include "mpi_ext/mpi_request.h"
#include "core/persistent.h"

/** A plan. Starts of it are not concurrent. */
struct MPIX_Sparse_plan_s {
    struct sar_plan plan;       /**< first, so that a sar_plan can be cast to its handle */
    struct sar_call_args args;  /**< arguments that all starts share */
    struct sar_mpi_request req; /**< of the present or last start */
    bool fused;                 /**< another plan's call carries this one, in the present start of several */
};

/** Makes a plan with these arguments, of any collective. Raises errors and returns the code. Collective over
 * comm. */
int sar_plan_make(const struct sar_call_args *args, MPI_Comm comm, MPI_Info info, const char *function,
                  MPIX_Sparse_plan *plan);

/** Selection and cost of a plan's last call. */
struct sar_plan_report {
    const char *scheme; /**< name of the scheme that ran */
    const char *choice; /**< name of the scheme that the cost model prefers */
    double predicted;   /**< price of `scheme`, in seconds */
    double density;     /**< elements present / count, mean over ranks */
};

/** Returns the report of the last call, which must be complete. Equal on all ranks, if none failed. Local. */
struct sar_plan_report sar_plan_get_report(MPIX_Sparse_plan plan);

#endif
