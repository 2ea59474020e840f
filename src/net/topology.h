/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_NET_TOPOLOGY_H
#define SAR_NET_TOPOLOGY_H

#include <stdint.h>

/** Processors of a machine, by the operating system's numbers: as many as fit. */
enum { SAR_PROCESSOR_WORDS = 64 };
struct sar_processors {
    uint64_t bits[SAR_PROCESSOR_WORDS];
};

/** Processors of this machine that this job may use, at least 1; by hwloc where it was found. Looked up
 * once. */
int sar_topology_processors(void);

/** Those that the calling thread may run on, or, where hwloc pretends a machine, that machine's. */
void sar_topology_mine(struct sar_processors *processors);

/** The same of the process that started this one. It has started the other ranks of the node too, and does
 * without the binding that it gave them. */
void sar_topology_launcher(struct sar_processors *processors);

int sar_processors_count(const struct sar_processors *processors);

/** As many as the control groups of this process let it and others have together, or 0. Looked up once. */
int sar_topology_quota(void);

/** Model of this machine's processors, by hwloc, else its architecture. Looked up once. */
const char *sar_topology_model(void);

#endif
