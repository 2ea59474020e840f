/* SPDX-License-Identifier: BSD-3-Clause */
/* Placement of memory on machines with several NUMA nodes. Does nothing without hwloc. */

#ifndef SAR_COMM_SHM_NUMA_H
#define SAR_COMM_SHM_NUMA_H

#include <stdbool.h>
#include <stddef.h>

#ifdef HAVE_HWLOC
#include <hwloc.h>

/** True if the machine has several NUMA nodes and the processors belong to exactly one, which is written to
 * `node`. Local. */
bool sar_numa_single_node(hwloc_topology_t topology, hwloc_const_cpuset_t processors, hwloc_nodeset_t node);
#endif

/** Binds memory that nobody has touched to the NUMA node that this process is bound to. If the process is not
 * bound to one node, the memory goes where it is first touched. Local. */
void sar_numa_bind(void *memory, size_t bytes);

#endif
