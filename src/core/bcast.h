/* SPDX-License-Identifier: BSD-3-Clause */
/* Broadcasts of sparse vectors: what changed between two dense versions of a vector, and coordinates. */

#ifndef SAR_CORE_BCAST_H
#define SAR_CORE_BCAST_H

#include "core/call_args.h"
#include "core/comm_state.h"

/** The two versions of a vector, in host memory. Written by mpi_ext/. */
struct sar_bcast_versions {
    const void *before; /**< NULL: `after` holds the old version (MPI_IN_PLACE) */
    void *after;        /**< on the root the new version; on other ranks it becomes that */
    unsigned unit;      /**< bytes of a number that is compared: 1, 2, 4 or 8 */
    uint64_t n;         /**< units of a version */
};

/** Agrees on a call, and broadcasts the changes of the root's vector. Collective; the error is in
 * args->result.error. It is equal on all ranks if it is one of the arguments; an error in a message stays on
 * the ranks that receive it, whose new version is then undefined. No call may be in flight on the
 * communicator. */
void sar_bcast_delta(struct sar_comm_state *comm_state, struct sar_call_args *args, int root,
                     const struct sar_bcast_versions *versions);

/** Agrees on a call, and broadcasts the elements args->data.coo of the root into args->data.output of all
 * ranks. Errors as those of sar_bcast_delta. */
void sar_bcast_coo(struct sar_comm_state *comm_state, struct sar_call_args *args, int root);

#endif
