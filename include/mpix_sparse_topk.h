/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MPIX_SPARSE_TOPK_H
#define MPIX_SPARSE_TOPK_H

#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

/** @file
 * Top-k sparsification, included by mpix_sparse.h: make a vector mostly zero before an allreduce. The methods are those of
 * Deep Gradient Compression (DGC: Lin et al., ICLR 2018), with the threshold of the Zen paper for tensor parallelism.
 *
 * Elements are floats of 32 or 64 bits, or of 16 bits as in mpix_sparse.h. A NaN is larger than infinity: it is selected,
 * and leaves the residual. The arrays of a call must not overlap. Memory and errors are as in mpix_sparse.h.
 *
 * @defgroup topk Selection of the largest elements
 * @{ */

/** Find the magnitude that a given share of a tensor's elements reaches. Collective over comm.
 *
 * Each rank of comm has a part of the tensor: pass MPI_COMM_SELF for a tensor of this rank alone, or a group of ranks for a
 * layer that is split among them. Each rank samples its part and gathers the samples of all ranks. The threshold is the
 * k-th largest magnitude of the samples, k = ratio * samples, rounded, at least 1. The sample has at least 100 / ratio
 * elements, if there are so many, and at most 2^20 of all ranks.
 *
 * @param[in]  buf        count elements
 * @param[in]  count      number of elements on this rank; may differ between ranks
 * @param[in]  datatype   type of an element, equal on all ranks
 * @param[in]  ratio      share of the elements to select, in (0, 1], equal on all ranks
 * @param[in]  sample     share of the elements to sample, in (0, 1], equal on all ranks; 1 is exact up to 2^20 elements
 * @param[in]  seed       seed of the sample; same arguments and seed give the same sample
 * @param[in]  comm       an intracommunicator
 * @param[out] threshold  the magnitude, equal on all ranks; 0 if ratio is 1 or fewer elements than k are not zero, and
 *                        infinity if k or more samples are NaNs
 * @return MPI_SUCCESS, or an error code on all ranks if an argument is invalid on any rank */
int MPIX_Sparse_topk_threshold(const void *buf, MPI_Count count, MPI_Datatype datatype, double ratio, double sample,
                               int seed, MPI_Comm comm, double *threshold);

/** Select the non-zero elements whose magnitude reaches a threshold. Not collective. If there are more than `capacity`, the
 * largest of them are selected; of equal magnitudes, those with lower indices.
 *
 * @param[in]  buf, count, datatype  see MPIX_Sparse_topk_threshold
 * @param[in]  threshold  a magnitude, 0 or more
 * @param[in]  comm       an intracommunicator, used for its error handler and hints
 * @param[in]  indextype  see MPIX_Sparse_allreduce_coo
 * @param[in]  capacity   number of elements that fit indices and values
 * @param[out] indices    nnz indices in [0, count), ascending
 * @param[out] values     nnz elements, in the same order
 * @param[out] nnz        number of elements selected, at most capacity; always in host memory
 * @return MPI_SUCCESS or an error code */
int MPIX_Sparse_topk_select(const void *buf, MPI_Count count, MPI_Datatype datatype, double threshold, MPI_Comm comm,
                            MPI_Datatype indextype, MPI_Count capacity, void *indices, void *values, MPI_Count *nnz);

/** Parameters of MPIX_Sparse_dgc_step. */
typedef struct {
    double ratio;    /**< share of the elements to select, in (0, 1]; see MPIX_Sparse_topk_threshold */
    double sample;   /**< share of the elements to sample, in (0, 1] */
    double momentum; /**< factor of the velocity, in [0, 1) */
    double scale;    /**< factor of the gradient, for example from clipping; finite */
    int    seed;     /**< seed of the sample; use another one in each step */
    int    masking;  /**< 1: set the velocity of selected elements to zero, as in the paper; doc/dgc.md discusses the cost */
} MPIX_Sparse_dgc_t;

/** One step of DGC on a tensor, before its allreduce. Collective over comm, as MPIX_Sparse_topk_threshold.
 *
 * Momentum correction: velocity = momentum * velocity + scale * gradient, and residual += velocity. Then selection: find
 * the threshold of the residual and select its elements, as in MPIX_Sparse_topk_select. Then set the selected elements to
 * zero in residual and, with masking, in velocity. Each element of residual is either selected or kept, so that none is
 * lost. The arrays are read and written in one pass.
 *
 * @param[in]     gradient   count elements
 * @param[in,out] velocity   count elements; zeros before the first step
 * @param[in,out] residual   count elements; zeros before the first step
 * @param[in]     count, datatype, comm  see MPIX_Sparse_topk_threshold
 * @param[in]     how        parameters; ratio and sample equal on all ranks
 * @param[in]     indextype, capacity, indices, values, nnz  see MPIX_Sparse_topk_select
 * @return MPI_SUCCESS or an error code; on error velocity and residual are unchanged, unless a device failed */
int MPIX_Sparse_dgc_step(const void *gradient, void *velocity, void *residual, MPI_Count count, MPI_Datatype datatype,
                         const MPIX_Sparse_dgc_t *how, MPI_Comm comm, MPI_Datatype indextype, MPI_Count capacity,
                         void *indices, void *values, MPI_Count *nnz);

int PMPIX_Sparse_topk_threshold(const void *buf, MPI_Count count, MPI_Datatype datatype, double ratio, double sample,
                                int seed, MPI_Comm comm, double *threshold);
int PMPIX_Sparse_topk_select(const void *buf, MPI_Count count, MPI_Datatype datatype, double threshold, MPI_Comm comm,
                             MPI_Datatype indextype, MPI_Count capacity, void *indices, void *values, MPI_Count *nnz);
int PMPIX_Sparse_dgc_step(const void *gradient, void *velocity, void *residual, MPI_Count count, MPI_Datatype datatype,
                          const MPIX_Sparse_dgc_t *how, MPI_Comm comm, MPI_Datatype indextype, MPI_Count capacity,
                          void *indices, void *values, MPI_Count *nnz);

/** @} */

#ifdef __cplusplus
}
#endif

#endif
