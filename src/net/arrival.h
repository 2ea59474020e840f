/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_NET_ARRIVAL_H
#define SAR_NET_ARRIVAL_H

#include <mpi.h>

/** Wait until all ranks of a user's communicator have called, and warn of those that have not after `stall`
 * seconds, unless that is 0. Returns at once where there are more than 1024 ranks. Collective.
 * @param meanwhile  called again and again */
void sar_arrival_wait(MPI_Comm user, double stall, void (*meanwhile)(void));

#endif
