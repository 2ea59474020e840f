/* SPDX-License-Identifier: BSD-3-Clause */
/* How long a line of cache takes from one rank to another of its node. Whatever ranks share is made of such
 * journeys, and what they cost may change while a program runs: processors of a virtual machine are moved
 * between the sockets of their host. */
#ifndef PERF_LINE_H
#define PERF_LINE_H

#include "base.h"

/* Seconds, of the two ranks of a node that are farthest from each other; NaN where every rank is alone on its
 * node, or shares a processor. Collective, some milliseconds. */
double perf_line_seconds(const struct perf_world *world);

#endif
