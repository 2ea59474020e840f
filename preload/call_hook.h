/* SPDX-License-Identifier: BSD-3-Clause */
/* Hooks around the allreduce calls of the program. */

#ifndef SAR_PRELOAD_CALL_HOOK_H
#define SAR_PRELOAD_CALL_HOOK_H

#include "preload/state.h"

/** Arguments of a call. */
struct sar_mpi_args {
    const void *sendbuf;
    void *recvbuf;
    MPI_Count count;
    MPI_Datatype datatype;
    MPI_Op op;
    MPI_Comm comm;
};

/** A call in progress that the policy tracks. */
struct sar_call_hook {
    struct sar_preload_entry *entry;
    MPI_Comm comm;
    struct sar_stats_call stats; /**< row of the report */
    double start;                /**< MPI_Wtime at the start, if there is a report */
};

/** Returns the policy of the communicator and sets *key if the library may gain. Otherwise returns NULL and
 * counts the call as other. Compares handles only, so that invalid ones are safe. Local. */
struct sar_comm_policy *sar_call_hook_find(const struct sar_mpi_args *args, struct sar_preload_key *key);

/** Begins a blocking call. The library runs the call if hook->stats.taken. Returns false if MPI runs the call
 * and nothing is recorded. Collective. */
bool sar_call_hook_begin(const struct sar_mpi_args *args, struct sar_call_hook *hook);

/** Ends a blocking call and returns its code. Local. */
int sar_call_hook_end(struct sar_call_hook *hook, int code);

/** True if the library runs a nonblocking call. Local, with the same result on all ranks, since it depends on
 * earlier blocking calls only. */
bool sar_call_hook_takes_nonblocking(const struct sar_mpi_args *args);

/** Sets stats for a call that the entry has counted. If there is a report, counts the non-zeros of calls
 * 1, 2, 4, 8, … of the entry, so that the report has a density of calls without probes. Local. */
void sar_call_hook_describe(const struct sar_mpi_args *args, const struct sar_preload_entry *entry,
                            enum sar_stats_kind kind, int ranks, struct sar_stats_call *stats);

/** Returns the gain of a call from the scheme that ran, the scheme chosen, and the mean density. */
enum sar_call_gain sar_call_hook_classify(const char *scheme, const char *choice, double density);

#endif
