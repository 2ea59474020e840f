/* SPDX-License-Identifier: BSD-3-Clause */
/* Detects that the launcher belongs to another MPI. Each process is then a job of one rank, and sums have the
 * elements of one process, without an error. */

#ifndef SAR_MPI_EXT_LAUNCHER_H
#define SAR_MPI_EXT_LAUNCHER_H

/** Logs a warning, once in a process, if MPI_COMM_WORLD has one rank and the environment shows that a
 * launcher has started several processes. Needs an initialized MPI_COMM_WORLD. Local. */
void sar_launcher_check(void);

#endif
