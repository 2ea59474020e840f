/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_NET_TOPOLOGY_H
#define SAR_NET_TOPOLOGY_H

/** Processors of this machine that this job may use, at least 1; by hwloc where it was found. Looked up
 * once. */
int sar_topology_processors(void);

/** Model of this machine's processors, by hwloc, else its architecture. Looked up once. */
const char *sar_topology_model(void);

#endif
