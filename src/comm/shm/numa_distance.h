/* SPDX-License-Identifier: BSD-3-Clause */
/* True distance between the ranks of a node: how long a cache line takes from one to another. Between sockets
 * a line takes several times as long as within one, and all that ranks share moves in cache lines. */

#ifndef SAR_COMM_SHM_NUMA_DISTANCE_H
#define SAR_COMM_SHM_NUMA_DISTANCE_H

#include "comm/shm/group.h"

/** Latency of a cache line, in seconds, above which ranks are remote to each other. Measured: 54 to 66 ns
 * within a socket, 230 to 315 ns between two. Below 0 all ranks are remote. Tests and benchmarks change
 * it. */
extern double sar_numa_distance_remote_seconds;

/** The first blocking call that measures again, as do the calls of 2, 4, 8 … times that number. */
extern uint64_t sar_numa_distance_first_call;

/** Every so many blocking calls measure again. */
extern uint64_t sar_numa_distance_call_interval;

/** The cache lines that the ranks of a node time: a counter of each rank on a line of its own, 0 at first. */
struct sar_cacheline_probe {
    atomic_uint_least64_t *(*address)(const void *arg,
                                      int rank); /**< returns the address of a rank's counter */
    const void *arg;
    int rank, ranks;      /**< this rank, and the number of ranks, of the node */
    MPI_Comm comm;        /**< any communicator with these ranks, to let MPI make progress */
    int trials;           /**< trials for a pair of ranks, of which the fastest counts; at most 100 */
    uint64_t runs_before; /**< number of measurements with these counters so far */
};

/** Returns the latency in seconds to the farthest rank that this rank was paired with. Returns 0 for a single
 * rank, and for a rank whose partners were not running at the same time. Collective over the ranks of the
 * node; blocks for at most 4 ms for each pair. */
double sar_cacheline_latency_measure(const struct sar_cacheline_probe *probe);

/** Sets group->numa_remote. Collective over the ranks of the node, which wait for nothing else meanwhile.
 * @param timed  true if latency can be measured; equal on all ranks of the node */
void sar_numa_distance_measure(const struct sar_comm *comm, struct sar_shm_group *group, bool timed);

/** Measures again in some calls, since unbound ranks and virtual processors move. Called in each blocking
 * call, once all ranks have agreed on the call. Collective over the ranks of the node. */
void sar_numa_distance_remeasure(const struct sar_comm *comm);

#endif
