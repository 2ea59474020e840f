/* SPDX-License-Identifier: BSD-3-Clause */
/* Persistent requests of MPI_Allreduce_init. The program holds MPI's request. If the library runs a start,
 * the request of a plan is in progress instead. Before MPI sees an array of requests, swap_in replaces the
 * program's requests by those of the plans; afterwards swap_out restores them. */

#ifndef SAR_PRELOAD_PERSISTENT_H
#define SAR_PRELOAD_PERSISTENT_H

#include "preload/call_hook.h"

/** Tracks a request that MPI has just created. Collective, as MPI_Allreduce_init. */
void sar_persistent_track(const struct sar_mpi_args *args, MPI_Info info, MPI_Request request);

/** Starts a request and sets *code if the library runs it. Returns false if MPI must start it. */
bool sar_persistent_start(MPI_Request request, int *code);

/** True if any request is tracked. */
bool sar_persistent_is_used(void);

/** Replaces requests of the program by the library's requests in progress. Returns true if there is any.
 * Keeps pointers into `requests`, which must stay in place until sar_persistent_swap_out is called with the
 * same array. */
bool sar_persistent_swap_in(int n, MPI_Request *requests);

/** Restores the program's requests, and notes which of the library's MPI has completed. */
void sar_persistent_swap_out(int n, MPI_Request *requests);

/** Stops tracking a request that the program frees. Local. */
void sar_persistent_untrack(MPI_Request request);

/** Stops tracking all requests. Local. */
void sar_persistent_cleanup(void);

#endif
