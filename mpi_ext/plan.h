/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_MPI_EXT_PLAN_H
#define SAR_MPI_EXT_PLAN_H

#include "mpi_ext/request.h"
#include "plan/plan.h"

/** A plan of a user. */
struct MPIX_Sparse_plan_s {
    struct sar_plan plan; /**< first */
    struct sar_call call; /**< what all starts have in common */
    struct sar_flight flight;
    bool aboard; /**< of a call of the present start of several plans */
};

/** Whether a plan is of this face. */
static inline bool sar_plan_fits(MPIX_Sparse_plan plan, bool dense_face)
{
    return plan != MPIX_SPARSE_PLAN_NULL && plan->call.dense_face == dense_face;
}

/** The error code for a plan that is not. */
int sar_plan_refuse(MPIX_Sparse_plan plan, const char *function);
/** Whether a plan still has its communicator. */
bool sar_plan_alive(MPIX_Sparse_plan plan);

/** What a plan's last call ran, what was cheapest, the price of the former, and the mean density of all
 * ranks. */
struct sar_told {
    const char *scheme, *choice;
    double predicted, density;
};

/** Of a call that is complete. The same on all ranks but where one failed. */
struct sar_told sar_plan_told(MPIX_Sparse_plan plan);

#endif
