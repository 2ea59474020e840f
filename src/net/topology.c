/* SPDX-License-Identifier: BSD-3-Clause */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "net/topology.h"

#include <pthread.h>
#include <unistd.h>

#ifdef HAVE_HWLOC
#include <hwloc.h>
#endif

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int processors = 1;

#ifdef HAVE_HWLOC
/* The allowed set, not this process's binding: launchers bind each rank to a processor of its own. */
static int allowed(void)
{
    hwloc_topology_t topology;
    int n = 0;
    if (hwloc_topology_init(&topology) != 0)
        return 0;
    hwloc_topology_set_all_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE);
    if (hwloc_topology_load(topology) == 0)
        n = hwloc_bitmap_weight(hwloc_topology_get_allowed_cpuset(topology));
    hwloc_topology_destroy(topology);
    return n;
}
#else
static int allowed(void)
{
    return 0;
}
#endif

static void look(void)
{
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    int found = allowed();
    if (found <= 0)
        found = (int)online;
    processors = found > 0 ? found : 1;
}

int sar_topology_processors(void)
{
    pthread_once(&once, look);
    return processors;
}
