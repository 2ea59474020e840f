/* SPDX-License-Identifier: BSD-3-Clause */
/* Where memory lies on machines of several NUMA nodes. */

#ifndef SAR_NET_NUMA_H
#define SAR_NET_NUMA_H

#include <stdbool.h>
#include <stddef.h>

#ifdef HAVE_HWLOC
#include <hwloc.h>

/** Whether memory had better lie on one NUMA node for who runs on these processors: there are several nodes,
 * and only one of them has any of the processors. It is put into home. */
bool sar_numa_home(hwloc_topology_t topology, hwloc_const_cpuset_t processors, hwloc_nodeset_t home);
#endif

/** Let memory that nobody has touched yet lie on the NUMA node that this process is bound to. Where it is
 * bound to none, memory lies where it is first touched. */
void sar_numa_place(void *memory, size_t bytes);

#endif
