/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MPIX_SPARSE_BCAST_H
#define MPIX_SPARSE_BCAST_H

/** @file
 * Broadcasts of sparse vectors, included by mpix_sparse.h.
 *
 * An element is of any basic type of MPI, or a row of such values (MPI_Type_contiguous). Values are copied and compared
 * by their bits. Arrays are in host memory. Errors are as in mpix_sparse.h, with one
 * exception: an error that a rank finds in a message, or an allocation that fails, after the arguments were checked stays on that
 * rank and those that it sends to.
 *
 * @defgroup bcast Sparse broadcast
 * @{ */

#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Broadcast a new version of a vector to ranks that have its old version: only what changed is sent. Collective over comm.
 *
 * The use case are weights of a model, of which a training step changes a few percent, on ranks that serve the model. Two
 * numbers differ if their bits differ: -0.0 is not 0.0, and a NaN may become another NaN. Afterwards new_version has the
 * root's bits on all ranks.
 *
 * Each message has a hash of the old values that it replaces. If a rank has another old value there than the root, the
 * rank gets an error.
 *
 * @param[in]     old_version  count elements, equal on all ranks; or MPI_IN_PLACE on ranks other than the root, whose
 *                             new_version then holds the old version
 * @param[in,out] new_version  count elements: on the root the new version, which is read; on other ranks it becomes that.
 *                             Must not overlap old_version. Undefined on a rank with an error, unless it is one of arguments
 * @param[in]     count        number of elements, equal on all ranks
 * @param[in]     datatype     type of an element, equal on all ranks
 * @param[in]     root         rank that has the new version, equal on all ranks
 * @param[in]     comm         an intracommunicator
 * @return MPI_SUCCESS or an error code */
int MPIX_Sparse_bcast_delta(const void *old_version, void *new_version, MPI_Count count,
                            MPI_Datatype datatype, int root, MPI_Comm comm);

/** Broadcast the elements of a sparse vector. Collective over comm.
 *
 * Every rank, the root too, gets a result with the root's elements, indices ascending. If the root has an index several
 * times, its last value counts. Elements whose value is zero are kept.
 *
 * @param[in]     indices    on the root: nnz indices in [0, count), in any order; may be null if nnz is 0
 * @param[in]     values     on the root: nnz elements; may be null if nnz is 0
 * @param[in]     nnz        on the root: number of elements. indices, values and nnz are ignored on other ranks
 * @param[in]     indextype  MPI_INT32_T, MPI_UINT32_T, MPI_INT64_T or MPI_UINT64_T, wide enough for count - 1
 * @param[in]     count      length of the vector in elements, equal on all ranks
 * @param[in]     datatype   type of an element, equal on all ranks; of at most 2^30 bytes
 * @param[in]     root       rank that has the elements, equal on all ranks
 * @param[in]     comm       an intracommunicator
 * @param[in,out] result     address of MPIX_SPARSE_RESULT_NULL, or of a result to overwrite; its index type is indextype.
 *                           After an error it is unchanged or empty
 * @return MPI_SUCCESS or an error code */
int MPIX_Sparse_bcast_coo(const void *indices, const void *values, MPI_Count nnz, MPI_Datatype indextype,
                          MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm,
                          MPIX_Sparse_result *result);

int PMPIX_Sparse_bcast_delta(const void *old_version, void *new_version, MPI_Count count,
                             MPI_Datatype datatype, int root, MPI_Comm comm);
int PMPIX_Sparse_bcast_coo(const void *indices, const void *values, MPI_Count nnz, MPI_Datatype indextype,
                           MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm,
                           MPIX_Sparse_result *result);

/** @} */

#ifdef __cplusplus
}
#endif

#endif
