/* SPDX-License-Identifier: BSD-3-Clause */
/* Argument checks: turn the arguments of a public function into a struct sar_call_args. The first invalid
 * argument sets call->result.error; the function does not return then, since the agree step must report the
 * error on all ranks. `call` keeps pointers to the buffers, which the caller owns and must keep until the
 * call has ended. All functions are local and take nanoseconds for predefined types. */

#ifndef SAR_MPI_EXT_ARGUMENTS_H
#define SAR_MPI_EXT_ARGUMENTS_H

#include <mpi.h>

#include "core/active_call.h"

/** Fills `call` from the arguments of a call on dense buffers.
 * @param count  elements */
void sar_args_check_dense(struct sar_call_args *call, const void *sendbuf, void *recvbuf, MPI_Count count,
                          MPI_Datatype datatype, MPI_Op op);

/** Fills `call` from the arguments of a reduce_scatter of dense buffers.
 * @param recvcount  elements of a rank's part
 * @param parts      ranks */
void sar_args_check_reduce_scatter_dense(struct sar_call_args *call, const void *sendbuf, void *recvbuf,
                                         MPI_Count recvcount, MPI_Datatype datatype, MPI_Op op, int parts);

/** Sets the error `status` if `array` is null, MPI_IN_PLACE or MPIX_SPARSE_STRIDED. */
void sar_args_check_array(struct sar_error *error, const void *array, enum sar_status status);

/** Sets *type to the index type, and the error SAR_BAD_INDEXTYPE if it cannot hold count - 1.
 * call->sig.desc.count must be set. */
void sar_args_check_index_type(struct sar_call_args *call, MPI_Datatype indextype, enum sar_index_type *type);

/** Fills `call` from the arguments of a coordinate call, without its elements.
 * @param count  length of the vector in elements */
void sar_args_check_coo(struct sar_call_args *call, MPI_Datatype indextype, MPI_Count count,
                        MPI_Datatype datatype, MPI_Op op);

/** Adds the collective and the map's block to a call filled by sar_args_check_coo.
 * @param parts  ranks */
void sar_args_check_reduce_scatter(struct sar_call_args *call, MPI_Count block, int parts);

/** As sar_args_check_coo, for an allgather: no op, and values of the datatype's bits. */
void sar_args_check_allgather(struct sar_call_args *call, MPI_Datatype indextype, MPI_Count count,
                              MPI_Datatype datatype);

/** Adds this rank's elements to a call filled by sar_args_check_coo. The arrays stay the caller's.
 * @param nnz  elements */
void sar_args_check_elements(struct sar_call_args *call, const void *indices, const void *values,
                             MPI_Count nnz);

#endif
