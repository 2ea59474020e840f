/* SPDX-License-Identifier: BSD-3-Clause */
/* By default a page goes to the NUMA node of the process that first touches it. The process may have another
 * policy, which is meant for its private memory. Shared memory is therefore bound explicitly. The binding
 * belongs to the mapping, so it holds for all processes that map the memory. It is not strict: remote memory
 * is better than none. */

#include "comm/shm/numa.h"

#include <pthread.h>

#ifdef HAVE_HWLOC
static pthread_once_t once = PTHREAD_ONCE_INIT;
static hwloc_topology_t machine; /* NULL if memory is not to be bound */
static hwloc_nodeset_t home_node;

bool sar_numa_single_node(hwloc_topology_t topology, hwloc_const_cpuset_t processors, hwloc_nodeset_t node)
{
    if (hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE) < 2 || hwloc_bitmap_iszero(processors))
        return false;
    hwloc_cpuset_to_nodeset(topology, processors, node);
    return hwloc_bitmap_weight(node) == 1;
}

static bool find_single_node(hwloc_topology_t topology, hwloc_bitmap_t processors, hwloc_nodeset_t node)
{
    hwloc_topology_set_all_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE);
    return hwloc_topology_load(topology) == 0 &&
           hwloc_get_cpubind(topology, processors, HWLOC_CPUBIND_PROCESS) == 0 &&
           sar_numa_single_node(topology, processors, node);
}

static void init(void)
{
    hwloc_topology_t topology = NULL;
    hwloc_bitmap_t processors = hwloc_bitmap_alloc(), node = hwloc_bitmap_alloc();
    if (hwloc_topology_init(&topology) == 0 && processors != NULL && node != NULL &&
        find_single_node(topology, processors, node)) {
        machine = topology;
        home_node = node;
    } else {
        if (topology != NULL)
            hwloc_topology_destroy(topology);
        hwloc_bitmap_free(node);
    }
    hwloc_bitmap_free(processors);
}

void sar_numa_bind(void *memory, size_t bytes)
{
    pthread_once(&once, init);
    if (machine != NULL)
        hwloc_set_area_membind(machine, memory, bytes, home_node, HWLOC_MEMBIND_BIND,
                               HWLOC_MEMBIND_BYNODESET);
}
#else
void sar_numa_bind(void *memory, size_t bytes)
{
    (void)memory;
    (void)bytes;
}
#endif
