/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether ranks of a node are far from each other, such as on different sockets. */

#ifndef SAR_NET_DISTANCE_H
#define SAR_NET_DISTANCE_H

#include "net/window.h"

/** Seconds that a line of cache takes to a rank, beyond which it is far. Within a socket 54 to 66 ns were
 * seen, between two 230 to 315. Below 0 all are. */
extern double sar_distance_far;

/** Which of the calls that all ranks wait in looks at the distance first; so do that twice as late, and so
 * on. */
extern uint64_t sar_distance_first;

/** Such calls from one look to the next, in the end. */
extern uint64_t sar_distance_every;

/** Find window->far. All ranks of its node call it, of whom none waits for anything else meanwhile.
 * @param timed  whether lines can be timed, on all these ranks or none */
void sar_distance_find(const struct sar_net *net, struct sar_window *window, bool timed);

/** Once all ranks have agreed on a call that all of them wait in: look again now and then, as ranks that are
 * not bound to processors, and processors of virtual machines, move. */
void sar_distance_watch(const struct sar_net *net);

#endif
