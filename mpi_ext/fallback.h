/* SPDX-License-Identifier: BSD-3-Clause */
/* Passes calls on dense buffers to MPI_Allreduce on the caller's communicator; core/fallback.h decides which
 * ones. An error on this rank is raised here; MPI raises its own errors. A rank that cannot read its vector
 * takes part with poisoned host copies before it raises the error, since the other ranks wait for it. */

#ifndef SAR_MPI_EXT_FALLBACK_H
#define SAR_MPI_EXT_FALLBACK_H

#include <mpi.h>

#include "core/active_call.h"

/** Run a call by MPI_Allreduce, in chunks if it does not fit an int. Returns an MPI error code. Collective
 * over comm; blocking. */
int sar_fallback_allreduce(MPI_Comm comm, const char *function, const struct sar_call_args *call);

/** True if the call fits one MPI_Allreduce: its count fits an int, and its bytes fit one chunk. Local. */
bool sar_fallback_fits_int(const struct sar_call_args *call);

/** Start a call that fits an int by MPI_Iallreduce. The request is MPI's. If this rank cannot read its
 * vector, the function waits for the other ranks and returns the error. Collective over comm. */
int sar_fallback_iallreduce(MPI_Comm comm, const char *function, const struct sar_call_args *call,
                            MPI_Request *request);

#endif
