/* SPDX-License-Identifier: BSD-3-Clause */
/* The processors of this machine: how many, and which of them a process may use. Found once in a process. */

#ifndef SAR_COMM_TOPOLOGY_H
#define SAR_COMM_TOPOLOGY_H

#include <stdint.h>
#include <sys/types.h>

/** A set of processors, by the operating system's numbers below 64 * SAR_CPUSET_WORDS. */
enum { SAR_CPUSET_WORDS = 64 };
struct sar_cpuset {
    uint64_t bits[SAR_CPUSET_WORDS];
};

/** Returns the number of processors that the job may use on this machine, at least 1: by hwloc, else the
 * processors online. */
int sar_topology_cpus(void);

/** Sets *set to the processors that a process may run on, or, if `process` is 0, the calling thread. If they
 * are unknown, or hwloc simulates a machine, *set gets the first sar_topology_cpus() processors. */
void sar_topology_cpuset(pid_t process, struct sar_cpuset *set);

/** Returns the number of processors in a set. */
int sar_cpuset_count(const struct sar_cpuset *set);

/** Returns the limit on processors that the control groups of this process set, or 0 if there is none. */
int sar_topology_cgroup_cpus(void);

/** Returns that limit, read anew: the least quota of the groups, in processors, rounded up. 0 if there is
 * none.
 * @param root prefix of all paths; empty but in tests */
int sar_cgroup_cpus(const char *root);

/** Returns the model of this machine's processors by hwloc, else their architecture. Static text. */
const char *sar_topology_cpu_model(void);

#endif
