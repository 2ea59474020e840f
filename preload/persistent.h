/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_PRELOAD_PERSISTENT_H
#define SAR_PRELOAD_PERSISTENT_H

#include "preload/visit.h"

/** @file
 * Persistent requests of MPI_Allreduce_init. The program holds MPI's own request. Where a start goes to the
 * library, it is a plan's request that is under way, and whoever waits for the program's waits for that one:
 * before a function of MPI sees an array of requests, the plans' are *lent* to it, and then taken back. */

/** Follow a request that MPI has just made. Collective, as MPI_Allreduce_init is. */
void sar_persistent_watch(const struct sar_asked *asked, MPI_Info info, MPI_Request request);

/** Start a request, unless MPI has to.
 * @return false where MPI has to */
bool sar_persistent_start(MPI_Request request, int *code);

/** Whether starts of any request are followed. */
bool sar_persistent_any(void);

/** Put the library's requests in place of those that they are under way for.
 * @return whether there is one */
bool sar_persistent_lend(int n, MPI_Request *requests);

/** Put the program's requests back. */
void sar_persistent_return(int n, MPI_Request *requests);

/** Follow a request no longer, as the program frees it. Local. */
void sar_persistent_forget(MPI_Request request);

/** Follow none any longer. Local. */
void sar_persistent_end(void);

#endif
