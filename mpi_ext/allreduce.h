/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_MPI_EXT_ALLREDUCE_H
#define SAR_MPI_EXT_ALLREDUCE_H

#include "core/active_call.h"

/** Runs a call on dense buffers, or on packed vectors, in host memory: by MPI_Allreduce or by a scheme.
 * Raises errors and returns the code. Collective over comm; blocking.
 * @param comm_state  NULL for an intercommunicator */
int sar_allreduce_dense(MPI_Comm comm, const char *function, struct sar_comm_state *comm_state,
                        struct sar_call_args *call);

#endif
