/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_MPI_EXT_ALLREDUCE_H
#define SAR_MPI_EXT_ALLREDUCE_H

#include "plan/call.h"

/** Carry out a call on dense buffers of the host's, or on parcels in them, by MPI_Allreduce or by the
 * library. Collective; blocking. Raises what goes wrong, and returns its code.
 * @param context  or NULL for two groups */
int sar_allreduce_dense(MPI_Comm comm, const char *function, struct sar_context *context,
                        struct sar_call *call);

#endif
