/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_NET_AWARE_H
#define SAR_NET_AWARE_H

#include "device/mirror.h"
#include "net/net.h"

/** Whether MPI can be handed arrays in this memory: it says so, and what this rank then sends itself
 * arrives. Local, and takes milliseconds. */
bool sar_net_takes(const struct sar_net *net, const struct sar_memory *memory);

#endif
