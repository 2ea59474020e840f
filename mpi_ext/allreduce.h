/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_MPI_EXT_ALLREDUCE_H
#define SAR_MPI_EXT_ALLREDUCE_H

#include <mpix_sparse.h>

#include "core/active_call.h"

/** Runs a call on dense buffers, or on packed vectors, in host memory: by MPI_Allreduce or by a scheme.
 * Raises errors and returns the code. Collective over comm; blocking.
 * @param comm_state  NULL for an intercommunicator */
int sar_allreduce_dense(MPI_Comm comm, const char *function, struct sar_comm_state *comm_state,
                        struct sar_call_args *call);

/** Runs a call on dense buffers, an allreduce or a reduce_scatter. Raises errors and returns the code.
 * Collective over comm; blocking. */
int sar_dense_run(MPI_Comm comm, const char *function, struct sar_call_args *call);

/** As sar_dense_run, nonblocking. */
int sar_dense_start(MPI_Comm comm, const char *function, struct sar_call_args *call, MPI_Request *request);

/** Runs a call on coordinates, of any collective. Raises errors and returns the code. Collective over comm;
 * blocking.
 * @param result  the caller's argument */
int sar_coo_run(MPI_Comm comm, const char *function, struct sar_call_args *call, MPIX_Sparse_result *result);

/** As sar_coo_run, nonblocking. */
int sar_coo_start(MPI_Comm comm, const char *function, struct sar_call_args *call, MPIX_Sparse_result *result,
                  MPI_Request *request);

#endif
