/* SPDX-License-Identifier: BSD-3-Clause */
/* Helpers around MPI that need no communicator of this library. */

#ifndef SAR_COMM_MPI_UTIL_H
#define SAR_COMM_MPI_UTIL_H

#include <mpi.h>
#include <stdbool.h>

#include "base/status.h"

/** Returns SAR_OK for MPI_SUCCESS, and SAR_MPI_FAILED for any other return code of an MPI function. */
static inline enum sar_status sar_mpi(int code)
{
    return code == MPI_SUCCESS ? SAR_OK : SAR_MPI_FAILED;
}

/** True between MPI_Init and MPI_Finalize, when MPI_COMM_WORLD may be used. MPI sessions do not need that.
 * Local. */
static inline bool sar_mpi_world_is_up(void)
{
    int up = 0, down = 0;
    PMPI_Initialized(&up);
    PMPI_Finalized(&down);
    return up && !down;
}

#endif
