/* SPDX-License-Identifier: BSD-3-Clause */
/* Control groups of Linux limit a group's processes to some time in each period, taken together: a quota of
 * two periods is as good as two processors. Every group from the process's own up to the one that is mounted
 * may have a quota, of which the least holds. In a container the mounted one is often the container's own,
 * whatever path the process has.
 *
 *     /proc/self/cgroup   version 2 "0::PATH", version 1 "NUMBER:cpu,…:PATH"
 *     version 2           /sys/fs/cgroup/PATH/cpu.max: "QUOTA PERIOD", or "max PERIOD" for none
 *     version 1           /sys/fs/cgroup/cpu/PATH/cpu.cfs_quota_us, -1 for none, and cpu.cfs_period_us */

#include "net/quota.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { LINE = 4096, PATH = 2 * LINE };

/* How many numbers, of at most two, a file begins with. */
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

/* Of one group; 0 for none. */
static int quota_of(const char *folder)
{
    long long time[2] = { 0, 0 }, period[2] = { 0, 0 };
    bool found = read_numbers(folder, "cpu.max", time) == 2;
    if (found)
        period[0] = time[1];
    else
        found = read_numbers(folder, "cpu.cfs_quota_us", time) > 0 &&
                read_numbers(folder, "cpu.cfs_period_us", period) > 0;
    if (!found || time[0] <= 0 || period[0] <= 0)
        return 0;
    long long whole = (time[0] - 1) / period[0] + 1;
    return whole > INT_MAX ? INT_MAX : (int)whole;
}

static int least(int a, int b)
{
    return a == 0 || (b != 0 && b < a) ? b : a;
}

/* Of a group and those above it. */
static int walk_up(const char *root, const char *mount, const char *group)
{
    char folder[PATH];
    int found = 0, top = snprintf(folder, sizeof folder, "%s%s", root, mount);
    if (top < 0 || (size_t)top + strlen(group) >= sizeof folder)
        return 0;
    if (strstr(group, "/..") == NULL) /* else outside of what is mounted */
        strcpy(folder + top, group);
    for (;;) {
        found = least(found, quota_of(folder));
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

static int quota_by(const char *root, char *line)
{
    line[strcspn(line, "\n")] = '\0';
    char *controllers = strchr(line, ':');
    char *group = controllers == NULL ? NULL : strchr(controllers + 1, ':');
    if (group == NULL)
        return 0;
    *group++ = '\0';
    if (*++controllers == '\0')
        return walk_up(root, "/sys/fs/cgroup", group);
    return lists_cpu(controllers) ? walk_up(root, "/sys/fs/cgroup/cpu", group) : 0;
}

int sar_quota_processors(const char *root)
{
    char line[LINE];
    int found = 0;
    snprintf(line, sizeof line, "%s/proc/self/cgroup", root);
    FILE *file = fopen(line, "r");
    if (file == NULL)
        return 0;
    while (fgets(line, sizeof line, file) != NULL)
        found = least(found, quota_by(root, line));
    fclose(file);
    return found;
}
