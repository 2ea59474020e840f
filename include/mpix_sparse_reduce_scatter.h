/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MPIX_SPARSE_REDUCE_SCATTER_H
#define MPIX_SPARSE_REDUCE_SCATTER_H

#include <mpi.h>

#include "mpix_sparse.h"

#ifdef __cplusplus
extern "C" {
#endif

/** @file
 * The halves of an allreduce, included by mpix_sparse.h: a reduce_scatter gives each rank the reduced elements that it
 * owns, and an allgather gives all ranks the elements of all. An optimizer whose state is divided among
 * the ranks calls the first one on gradients, updates its rows, and calls the second one on them.
 *
 * Elements, types, ops, memory and errors are as in mpix_sparse.h.
 *
 * @defgroup halves Reduce_scatter and allgather
 * @{ */

/** Reduce dense buffers that hold mostly zeros, and give each rank its part of the sum. Collective over comm.
 *
 * The arguments and the result are those of MPI_Reduce_scatter_block. Zeros, types, ops and calls that go to MPI are as in
 * MPIX_Sparse_allreduce.
 *
 * @param[in]  sendbuf    recvcount elements for each rank of comm, in the order of ranks; or MPI_IN_PLACE on every rank
 * @param[out] recvbuf    recvcount elements. In place it has the input, whose first elements are replaced
 * @param[in]  recvcount  elements of a part, equal on all ranks
 * @param[in]  datatype   as in MPIX_Sparse_allreduce, equal on all ranks
 * @param[in]  op         as in MPIX_Sparse_allreduce, equal on all ranks
 * @param[in]  comm       a communicator; calls on intercommunicators all go to MPI_Reduce_scatter_block
 * @return MPI_SUCCESS or an error code */
int MPIX_Sparse_reduce_scatter(const void *sendbuf, void *recvbuf, MPI_Count recvcount, MPI_Datatype datatype, MPI_Op op,
                               MPI_Comm comm);

/** Nonblocking MPIX_Sparse_reduce_scatter. Collective over comm. The rules of MPIX_Isparse_allreduce apply.
 *
 * @param[in]  sendbuf, recvcount, datatype, op, comm  see MPIX_Sparse_reduce_scatter
 * @param[out] recvbuf  valid when the request is complete
 * @param[out] request  the request
 * @return MPI_SUCCESS, or an error code if no request was made */
int MPIX_Isparse_reduce_scatter(const void *sendbuf, void *recvbuf, MPI_Count recvcount, MPI_Datatype datatype, MPI_Op op,
                                MPI_Comm comm, MPI_Request *request);

/** Make a plan for MPIX_Sparse_reduce_scatter. Collective over comm. Start it with MPIX_Sparse_plan_start, and free it with
 * MPIX_Sparse_plan_free; all else is as in MPIX_Sparse_allreduce_init.
 *
 * @param[in]  sendbuf, recvbuf, recvcount, datatype, op, comm  see MPIX_Sparse_reduce_scatter; used by every call
 * @param[in]  info  see MPIX_Sparse_allreduce_init
 * @param[out] plan  the plan
 * @return MPI_SUCCESS or an error code */
int MPIX_Sparse_reduce_scatter_init(const void *sendbuf, void *recvbuf, MPI_Count recvcount, MPI_Datatype datatype,
                                    MPI_Op op, MPI_Comm comm, MPI_Info info, MPIX_Sparse_plan *plan);

/** Reduce sparse vectors, and give each rank the elements that it owns. Collective over comm.
 *
 * The owner of element i is rank (i / block) mod n of n ranks: the vector is distributed block-cyclically, as in ScaLAPACK.
 * Blocks of ceil(count / n) elements make contiguous parts; blocks of one element are dealt out cyclically. Absent elements
 * contribute nothing: an element of the result is present if it is present on any rank. Each rank may pass any element.
 *
 * The caller's distribution may give a rank more elements than others, unlike the hash of MPIX_Sparse_allreduce_coo. Then the
 * call waits for that rank, or other ranks add up elements on their way to it. push_imbalance of the report tells of the
 * former.
 *
 * @param[in]     indices    nnz indices in any order. Values of equal indices are reduced
 * @param[in]     values     nnz elements
 * @param[in]     nnz        number of elements of this rank
 * @param[in]     indextype  as in MPIX_Sparse_allreduce_coo
 * @param[in]     count      length of the vector, equal on all ranks
 * @param[in]     block      elements of a block, at least 1, equal on all ranks. Fewer than 2^32 unless parts are contiguous
 * @param[in]     datatype   as in MPIX_Sparse_allreduce_coo, equal on all ranks
 * @param[in]     op         as in MPIX_Sparse_allreduce_coo, equal on all ranks
 * @param[in]     comm       an intracommunicator
 * @param[in,out] result     as in MPIX_Sparse_allreduce_coo; its indices are those of the whole vector
 * @return MPI_SUCCESS or an error code; on error *result is unchanged or empty */
int MPIX_Sparse_reduce_scatter_coo(const void *indices, const void *values, MPI_Count nnz, MPI_Datatype indextype,
                                   MPI_Count count, MPI_Count block, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                                   MPIX_Sparse_result *result);

/** Nonblocking MPIX_Sparse_reduce_scatter_coo. Collective over comm. The rules of MPIX_Isparse_allreduce_coo apply.
 *
 * @param[in]     indices, values, nnz, indextype, count, block, datatype, op, comm  see MPIX_Sparse_reduce_scatter_coo
 * @param[in,out] result   set when the request is complete; do not use or free it before
 * @param[out]    request  the request
 * @return MPI_SUCCESS, or an error code if no request was made */
int MPIX_Isparse_reduce_scatter_coo(const void *indices, const void *values, MPI_Count nnz, MPI_Datatype indextype,
                                    MPI_Count count, MPI_Count block, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                                    MPIX_Sparse_result *result, MPI_Request *request);

/** Make a plan for MPIX_Sparse_reduce_scatter_coo. Collective over comm. Start it with MPIX_Sparse_plan_start_coo, and free
 * it with MPIX_Sparse_plan_free; all else is as in MPIX_Sparse_allreduce_coo_init.
 *
 * @param[in]  indextype, count, block, datatype, op, comm  see MPIX_Sparse_reduce_scatter_coo; used by every call
 * @param[in]  info  see MPIX_Sparse_allreduce_init
 * @param[out] plan  the plan
 * @return MPI_SUCCESS or an error code */
int MPIX_Sparse_reduce_scatter_coo_init(MPI_Datatype indextype, MPI_Count count, MPI_Count block, MPI_Datatype datatype,
                                        MPI_Op op, MPI_Comm comm, MPI_Info info, MPIX_Sparse_plan *plan);

/** Give all ranks the elements of all ranks. Collective over comm.
 *
 * The elements are disjoint: no index occurs twice, neither on one rank nor on two. Then the result has the elements of
 * all ranks, with the same bits. An index that occurs twice is an error on all ranks.
 *
 * @param[in]     indices    nnz indices in any order, each one unique among all ranks
 * @param[in]     values     nnz elements
 * @param[in]     nnz        number of elements of this rank
 * @param[in]     indextype  as in MPIX_Sparse_allreduce_coo
 * @param[in]     count      length of the vector, equal on all ranks
 * @param[in]     datatype   as in MPIX_Sparse_allreduce_coo, equal on all ranks
 * @param[in]     comm       an intracommunicator
 * @param[in,out] result     as in MPIX_Sparse_allreduce_coo
 * @return MPI_SUCCESS or an error code; on error *result is unchanged or empty */
int MPIX_Sparse_allgather_coo(const void *indices, const void *values, MPI_Count nnz, MPI_Datatype indextype,
                              MPI_Count count, MPI_Datatype datatype, MPI_Comm comm, MPIX_Sparse_result *result);

/** Nonblocking MPIX_Sparse_allgather_coo. Collective over comm. The rules of MPIX_Isparse_allreduce_coo apply.
 *
 * @param[in]     indices, values, nnz, indextype, count, datatype, comm  see MPIX_Sparse_allgather_coo
 * @param[in,out] result   set when the request is complete; do not use or free it before
 * @param[out]    request  the request
 * @return MPI_SUCCESS, or an error code if no request was made */
int MPIX_Isparse_allgather_coo(const void *indices, const void *values, MPI_Count nnz, MPI_Datatype indextype,
                               MPI_Count count, MPI_Datatype datatype, MPI_Comm comm, MPIX_Sparse_result *result,
                               MPI_Request *request);

/** Make a plan for MPIX_Sparse_allgather_coo. Collective over comm. Start it with MPIX_Sparse_plan_start_coo, and free it
 * with MPIX_Sparse_plan_free; all else is as in MPIX_Sparse_allreduce_coo_init.
 *
 * @param[in]  indextype, count, datatype, comm  see MPIX_Sparse_allgather_coo; used by every call
 * @param[in]  info  see MPIX_Sparse_allreduce_init
 * @param[out] plan  the plan
 * @return MPI_SUCCESS or an error code */
int MPIX_Sparse_allgather_coo_init(MPI_Datatype indextype, MPI_Count count, MPI_Datatype datatype, MPI_Comm comm,
                                   MPI_Info info, MPIX_Sparse_plan *plan);

/** @} */

/** @addtogroup profiling
 * @{ */
int PMPIX_Sparse_reduce_scatter(const void *sendbuf, void *recvbuf, MPI_Count recvcount, MPI_Datatype datatype, MPI_Op op,
                                MPI_Comm comm);
int PMPIX_Isparse_reduce_scatter(const void *sendbuf, void *recvbuf, MPI_Count recvcount, MPI_Datatype datatype, MPI_Op op,
                                 MPI_Comm comm, MPI_Request *request);
int PMPIX_Sparse_reduce_scatter_init(const void *sendbuf, void *recvbuf, MPI_Count recvcount, MPI_Datatype datatype,
                                     MPI_Op op, MPI_Comm comm, MPI_Info info, MPIX_Sparse_plan *plan);
int PMPIX_Sparse_reduce_scatter_coo(const void *indices, const void *values, MPI_Count nnz, MPI_Datatype indextype,
                                    MPI_Count count, MPI_Count block, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                                    MPIX_Sparse_result *result);
int PMPIX_Isparse_reduce_scatter_coo(const void *indices, const void *values, MPI_Count nnz, MPI_Datatype indextype,
                                     MPI_Count count, MPI_Count block, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                                     MPIX_Sparse_result *result, MPI_Request *request);
int PMPIX_Sparse_reduce_scatter_coo_init(MPI_Datatype indextype, MPI_Count count, MPI_Count block, MPI_Datatype datatype,
                                         MPI_Op op, MPI_Comm comm, MPI_Info info, MPIX_Sparse_plan *plan);
int PMPIX_Sparse_allgather_coo(const void *indices, const void *values, MPI_Count nnz, MPI_Datatype indextype,
                               MPI_Count count, MPI_Datatype datatype, MPI_Comm comm, MPIX_Sparse_result *result);
int PMPIX_Isparse_allgather_coo(const void *indices, const void *values, MPI_Count nnz, MPI_Datatype indextype,
                                MPI_Count count, MPI_Datatype datatype, MPI_Comm comm, MPIX_Sparse_result *result,
                                MPI_Request *request);
int PMPIX_Sparse_allgather_coo_init(MPI_Datatype indextype, MPI_Count count, MPI_Datatype datatype, MPI_Comm comm,
                                    MPI_Info info, MPIX_Sparse_plan *plan);
/** @} */

#ifdef __cplusplus
}
#endif

#endif
