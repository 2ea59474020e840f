/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_MPI_EXT_ALIVE_H
#define SAR_MPI_EXT_ALIVE_H

#include <stdbool.h>

/** Whether MPI may be called: the world is up, or the library has contexts, perhaps those of a session. */
bool sar_is_alive(void);

/** Count contexts, and those being made: how many there are after the change. */
int sar_alive_count(int change);

/** Whether this process is a child of fork() made while MPI was up. It has its parent's memory, but nobody to
 * send to: MPI must not be called. */
bool sar_is_forked(void);

#endif
