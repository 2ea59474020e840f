/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_MPI_EXT_FORWARD_H
#define SAR_MPI_EXT_FORWARD_H

#include <mpi.h>

#include "plan/call.h"

/** Hand a call on dense buffers to MPI_Allreduce on the caller's communicator; plan/forward.h says when. What
 * is wrong on this rank is raised here, what MPI finds wrong by MPI. A rank that cannot read its
 * vector takes part with what its mirrors hold before it says so, since others wait for it. */
int sar_forward(MPI_Comm comm, const char *function, const struct sar_call *call);

/** Whether MPI_Iallreduce takes the call in one piece. */
bool sar_forward_fits(const struct sar_call *call);

/** The same with MPI_Iallreduce, whose request is the caller's, for a call that fits; one of a rank that
 * cannot read its vector is over on return. */
int sar_forward_start(MPI_Comm comm, const char *function, const struct sar_call *call, MPI_Request *request);

#endif
