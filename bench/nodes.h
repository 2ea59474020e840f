/* SPDX-License-Identifier: BSD-3-Clause */
/* Which ranks are on one node, as the library takes it: as they are, or as MPIX_SPARSE_NODES says. */
#ifndef PERF_NODES_H
#define PERF_NODES_H

#include "base.h"
#include "net/nodes.h"

/* For sar_nodes_free. Collective. */
struct sar_nodes perf_nodes_find(void);

/* Note them in the world. Collective. */
void perf_nodes_note(struct perf_world *world);

#endif
