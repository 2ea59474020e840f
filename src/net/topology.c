/* SPDX-License-Identifier: BSD-3-Clause */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "net/topology.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#ifdef HAVE_HWLOC
#include <hwloc.h>
#endif

#include "net/quota.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int processors = 1, quota;
static bool pretended; /* by hwloc, not this machine */
static char model[128];

#ifdef HAVE_HWLOC
static void note_model(hwloc_topology_t topology)
{
    hwloc_obj_t package = hwloc_get_obj_by_type(topology, HWLOC_OBJ_PACKAGE, 0);
    const char *name = package == NULL ? NULL : hwloc_obj_get_info_by_name(package, "CPUModel");
    if (name != NULL)
        snprintf(model, sizeof model, "%s", name);
}

/* The allowed set, not this process's binding, which may be to a processor of its own. */
static int allowed(void)
{
    hwloc_topology_t topology;
    int n = 0;
    if (hwloc_topology_init(&topology) != 0)
        return 0;
    hwloc_topology_set_all_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE);
    hwloc_topology_set_type_filter(topology, HWLOC_OBJ_PACKAGE, HWLOC_TYPE_FILTER_KEEP_ALL);
    if (hwloc_topology_load(topology) == 0) {
        n = hwloc_bitmap_weight(hwloc_topology_get_allowed_cpuset(topology));
        pretended = hwloc_topology_is_thissystem(topology) == 0;
        note_model(topology);
    }
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
    struct utsname system;
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    int found = allowed();
    if (found <= 0)
        found = (int)online;
    processors = found > 0 ? found : 1;
    quota = pretended ? 0 : sar_quota_processors("");
    if (model[0] == '\0' && uname(&system) == 0)
        snprintf(model, sizeof model, "%s", system.machine);
}

int sar_topology_processors(void)
{
    pthread_once(&once, look);
    return processors;
}

#ifdef __linux__
static bool ask(pid_t process, struct sar_processors *set)
{
    return sched_getaffinity(process, sizeof *set, (cpu_set_t *)set->bits) == 0;
}
#else
static bool ask(pid_t process, struct sar_processors *set)
{
    (void)process, (void)set;
    return false;
}
#endif

/* Where it cannot be found it is taken to be any, and by number the first ones. */
static void find(pid_t process, struct sar_processors *set)
{
    int n = sar_topology_processors();
    memset(set, 0, sizeof *set);
    if (!pretended && ask(process, set))
        return;
    memset(set, 0, sizeof *set);
    for (int i = 0; i < n && i < 64 * SAR_PROCESSOR_WORDS; i++)
        set->bits[i / 64] |= (uint64_t)1 << i % 64;
}

void sar_topology_mine(struct sar_processors *set)
{
    find(0, set);
}

void sar_topology_launcher(struct sar_processors *set)
{
    find(getppid(), set);
}

int sar_processors_count(const struct sar_processors *set)
{
    int n = 0;
    for (int i = 0; i < SAR_PROCESSOR_WORDS; i++)
        n += __builtin_popcountll(set->bits[i]);
    return n;
}

int sar_topology_quota(void)
{
    pthread_once(&once, look);
    return quota;
}

const char *sar_topology_model(void)
{
    pthread_once(&once, look);
    return model;
}
