/* SPDX-License-Identifier: BSD-3-Clause */
/* The ranks of a node, as the library sees them: the real nodes, or those of MPIX_SPARSE_NODES. */
#ifndef PERF_NODES_H
#define PERF_NODES_H

#include "bench/lib/base.h"
#include "comm/nodes.h"

/** Returns the nodes of MPI_COMM_WORLD, for sar_nodes_free. Ends all ranks on failure. Collective. */
struct sar_nodes perf_nodes_find(void);

/** Sets the fields on nodes of the world. Collective. */
void perf_nodes_store(struct perf_world *world);

/** Returns the seconds in which a cache line moves between the two ranks of a node that are farthest apart,
 * the maximum over nodes. NaN if each rank is alone on its node, or if ranks share a processor. The latency
 * may change during a run, because a hypervisor moves virtual processors between sockets. Collective; takes
 * some milliseconds. */
double perf_cacheline_seconds(const struct perf_world *world);

#endif
