/* SPDX-License-Identifier: BSD-3-Clause */
/* Processors by hwloc, sched_getaffinity and control groups.
 *
 * Control groups of Linux limit the processor time of a group's processes by a quota in each period: a quota
 * of two periods is worth two processors. Each group from the process's own up to the mounted one may have a
 * quota, and the least one holds. In a container the mounted group is often the container's own, whatever
 * path the process has.
 *
 *     /proc/self/cgroup   version 2 "0::PATH", version 1 "NUMBER:cpu,…:PATH"
 *     version 2           /sys/fs/cgroup/PATH/cpu.max: "QUOTA PERIOD", or "max PERIOD" for none
 *     version 1           /sys/fs/cgroup/cpu/PATH/cpu.cfs_quota_us, -1 for none, and cpu.cfs_period_us */

#include "comm/topology.h"

#include <limits.h>
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

enum { LINE = 4096, PATH = 2 * LINE };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int cpus = 1, cgroup_cpus;
static bool simulated; /* hwloc describes another machine, by HWLOC_XMLFILE or HWLOC_SYNTHETIC */
static char model[128];

/* Asks hwloc for the model, and counts the processors allowed to the job. The binding of this process may be
 * to a single one. */
static int allowed_cpus(void)
{
    int n = 0;
#ifdef HAVE_HWLOC
    hwloc_topology_t topology;
    if (hwloc_topology_init(&topology) != 0)
        return 0;
    hwloc_topology_set_all_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE);
    hwloc_topology_set_type_filter(topology, HWLOC_OBJ_PACKAGE, HWLOC_TYPE_FILTER_KEEP_ALL);
    if (hwloc_topology_load(topology) == 0) {
        n = hwloc_bitmap_weight(hwloc_topology_get_allowed_cpuset(topology));
        simulated = hwloc_topology_is_thissystem(topology) == 0;
        hwloc_obj_t package = hwloc_get_obj_by_type(topology, HWLOC_OBJ_PACKAGE, 0);
        const char *name = package == NULL ? NULL : hwloc_obj_get_info_by_name(package, "CPUModel");
        if (name != NULL)
            snprintf(model, sizeof model, "%s", name);
    }
    hwloc_topology_destroy(topology);
#endif
    return n;
}

/* Read up to two numbers at the beginning of a file. Returns how many there are. */
static int read_numbers(const char *folder, const char *name, long long numbers[2])
{
    char path[PATH];
    int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = length < 0 || (size_t)length >= sizeof path ? NULL : fopen(path, "r");
    if (file == NULL)
        return 0;
    int n = fscanf(file, "%lld %lld", &numbers[0], &numbers[1]);
    fclose(file);
    return n < 0 ? 0 : n;
}

/* The limit of one group, or 0 if it has none. */
static int group_cpus(const char *folder)
{
    long long quota[2] = { 0, 0 }, period[2] = { 0, 0 };
    bool found = read_numbers(folder, "cpu.max", quota) == 2;
    if (found)
        period[0] = quota[1];
    else
        found = read_numbers(folder, "cpu.cfs_quota_us", quota) > 0 &&
                read_numbers(folder, "cpu.cfs_period_us", period) > 0;
    if (!found || quota[0] <= 0 || period[0] <= 0)
        return 0;
    long long n = (quota[0] - 1) / period[0] + 1;
    return n > INT_MAX ? INT_MAX : (int)n;
}

static int min_limit(int a, int b)
{
    return a == 0 || (b != 0 && b < a) ? b : a;
}

/* The least limit of a group and of the groups above it. */
static int min_of_ancestors(const char *root, const char *mount, const char *group)
{
    char folder[PATH];
    int found = 0, top = snprintf(folder, sizeof folder, "%s%s", root, mount);
    if (top < 0 || (size_t)top + strlen(group) >= sizeof folder)
        return 0;
    if (strstr(group, "/..") == NULL) /* else the group is outside of the mounted tree */
        strcpy(folder + top, group);
    for (;;) {
        found = min_limit(found, group_cpus(folder));
        char *last = strrchr(folder + top, '/');
        if (last == NULL)
            return found;
        *last = '\0';
    }
}

static bool lists_cpu(const char *controllers)
{
    for (const char *at = controllers; at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        if (strcspn(at, ",") == 3 && memcmp(at, "cpu", 3) == 0)
            return true;
    }
    return false;
}

static int cpus_of_line(const char *root, char *line)
{
    line[strcspn(line, "\n")] = '\0';
    char *controllers = strchr(line, ':');
    char *group = controllers == NULL ? NULL : strchr(controllers + 1, ':');
    if (group == NULL)
        return 0;
    *group++ = '\0';
    if (*++controllers == '\0')
        return min_of_ancestors(root, "/sys/fs/cgroup", group);
    return lists_cpu(controllers) ? min_of_ancestors(root, "/sys/fs/cgroup/cpu", group) : 0;
}

int sar_cgroup_cpus(const char *root)
{
    char line[LINE];
    int found = 0;
    snprintf(line, sizeof line, "%s/proc/self/cgroup", root);
    FILE *file = fopen(line, "r");
    if (file == NULL)
        return 0;
    while (fgets(line, sizeof line, file) != NULL)
        found = min_limit(found, cpus_of_line(root, line));
    fclose(file);
    return found;
}

static void init(void)
{
    struct utsname system;
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    int found = allowed_cpus();
    if (found <= 0)
        found = (int)online;
    cpus = found > 0 ? found : 1;
    cgroup_cpus = simulated ? 0 : sar_cgroup_cpus("");
    if (model[0] == '\0' && uname(&system) == 0)
        snprintf(model, sizeof model, "%s", system.machine);
}

int sar_topology_cpus(void)
{
    pthread_once(&once, init);
    return cpus;
}

void sar_topology_cpuset(pid_t process, struct sar_cpuset *set)
{
    int n = sar_topology_cpus();
    memset(set, 0, sizeof *set);
#ifdef __linux__
    if (!simulated && sched_getaffinity(process, sizeof *set, (cpu_set_t *)set->bits) == 0)
        return;
#else
    (void)process;
#endif
    memset(set, 0, sizeof *set);
    for (int i = 0; i < n && i < 64 * SAR_CPUSET_WORDS; i++)
        set->bits[i / 64] |= (uint64_t)1 << i % 64;
}

int sar_cpuset_count(const struct sar_cpuset *set)
{
    int n = 0;
    for (int i = 0; i < SAR_CPUSET_WORDS; i++)
        n += __builtin_popcountll(set->bits[i]);
    return n;
}

int sar_topology_cgroup_cpus(void)
{
    pthread_once(&once, init);
    return cgroup_cpus;
}

const char *sar_topology_cpu_model(void)
{
    pthread_once(&once, init);
    return model;
}
