/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the comm_state of a user's communicator. A repeated lookup on one communicator costs one atomic
 * load, as each thread caches the last one; other lookups call MPI_Comm_get_attr. */

#ifndef SAR_MPI_EXT_ATTRIBUTE_H
#define SAR_MPI_EXT_ATTRIBUTE_H

#include "core/comm_state.h"

/** Sets *comm_state to the comm_state of an intracommunicator, created on first use. It lives until the
 * communicator is freed or MPI finalizes. Collective over comm on first use, local afterwards.
 * @param error_text  SAR_ERROR_TEXT_SIZE bytes; details of SAR_BAD_SETTING and SAR_BAD_COMM, else empty */
enum sar_status sar_comm_state_get_status(MPI_Comm comm, struct sar_comm_state **comm_state,
                                          char *error_text);

/** sar_comm_state_get_status for public functions: raises the error and returns its code. */
int sar_comm_state_get(MPI_Comm comm, const char *function, struct sar_comm_state **comm_state);

/** sar_comm_state_get that accepts intercommunicators too, and sets *comm_state to NULL for them. */
int sar_comm_state_get_opt(MPI_Comm comm, const char *function, struct sar_comm_state **comm_state);

/** Sets *comm_state to the comm_state of an intracommunicator, or to NULL if it has none. Raises an error and
 * returns its code. Local. */
int sar_comm_state_find(MPI_Comm comm, const char *function, struct sar_comm_state **comm_state);

#endif
