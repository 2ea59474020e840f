/* SPDX-License-Identifier: BSD-3-Clause */
/* Small collective operations: on the library's communicator, and one barrier on the user's. Every operation
 * is collective over the communicator that it gets. */

#ifndef SAR_COMM_COLLECTIVE_H
#define SAR_COMM_COLLECTIVE_H

#include "comm/watchdog.h"

/** Waits until all ranks of a user's communicator have called. Warns of late ranks after stall_limit seconds,
 * unless that is 0. With more than 1024 ranks there is no warning. Blocks.
 * @param progress called repeatedly during the wait */
void sar_collective_open_barrier(MPI_Comm user, double stall_limit, void (*progress)(void));

/** Broadcasts n bytes of `root`. Blocks. */
enum sar_status sar_comm_bcast(const struct sar_comm *comm, int root, void *bytes, int n);

/** Sets *rank to the lowest rank that passes true, or to comm->ranks if there is none. Blocks. */
enum sar_status sar_comm_min_rank(const struct sar_comm *comm, bool yes, int *rank);

/** Returns the largest status of all ranks, on all ranks. Blocks. */
enum sar_status sar_comm_max_status(const struct sar_comm *comm, enum sar_status status);

/** Replaces n values by their maxima over all ranks. Blocks. */
enum sar_status sar_comm_max(const struct sar_comm *comm, double *values, int n);

/** Starts to replace *status by the largest status of all ranks. As with the next two operations, the buffers
 * belong to the operation until sar_collective_test says that it is done. */
enum sar_status sar_collective_max_status_start(const struct sar_comm *comm, int *status,
                                                struct sar_collective *collective);

/** Starts to replace n counters by their sums over all ranks. */
enum sar_status sar_collective_sum_start(const struct sar_comm *comm, uint16_t *counters, int n,
                                         struct sar_collective *collective);

/** Starts to gather n values of each rank: out[r * n + i] becomes values[i] of rank r. */
enum sar_status sar_collective_allgather_start(const struct sar_comm *comm, const uint64_t *values, int n,
                                               uint64_t *out, struct sar_collective *collective);

/** Tests an operation, or waits for it if `block`. Sets *done. Local. */
enum sar_status sar_collective_test(const struct sar_comm *comm, struct sar_collective *collective,
                                    bool block, bool *done);

#endif
