/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of a communicator's shared memory. */

#ifndef SAR_COMM_SHM_SHM_H
#define SAR_COMM_SHM_SHM_H

#include "comm/comm.h"

/** Sets comm->shm_group to a group of the ranks of this node. Sets it to NULL, on all ranks of comm, if a
 * rank cannot map the memory of another rank of its node; that is no error. Collective over comm. */
enum sar_status sar_shm_open(struct sar_comm *comm);

/** Frees comm->shm_group and sets it to NULL; allowed if it is NULL. No rank may read this rank's buffers any
 * more. Local. */
void sar_shm_close(struct sar_comm *comm);

#endif
