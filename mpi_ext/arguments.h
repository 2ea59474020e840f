/* SPDX-License-Identifier: BSD-3-Clause */
/* Arguments of users made a call. What is wrong with them goes into call->verdict, which the call takes
 * to the agreement. */

#ifndef SAR_MPI_EXT_ARGUMENTS_H
#define SAR_MPI_EXT_ARGUMENTS_H

#include <mpi.h>

#include "plan/call.h"

void sar_look_at_dense(struct sar_call *call, const void *sendbuf, void *recvbuf, MPI_Count count,
                       MPI_Datatype datatype, MPI_Op op);

/** Blame `status` on an array that is none: null, or what stands for something else. */
void sar_look_at_array(struct sar_verdict *verdict, const void *array, enum sar_status status);

/** What indices of the call's vector are of. */
void sar_look_at_index_type(struct sar_call *call, MPI_Datatype indextype, enum sar_index_type *type);

/** Of coordinates, what the calls of a plan have in common. */
void sar_look_at_coo(struct sar_call *call, MPI_Datatype indextype, MPI_Count count, MPI_Datatype datatype,
                     MPI_Op op);

/** And then those of one call. */
void sar_look_at_elements(struct sar_call *call, const void *indices, const void *values, MPI_Count nnz);

#endif
