/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MPIX_SPARSE_TOPK_H
#define MPIX_SPARSE_TOPK_H

#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

/** @file
 * Top-k sparsification, part of mpix_sparse.h: how a vector becomes mostly zero. The methods are those of Deep
 * Gradient Compression (DGC: Lin et al., ICLR 2018), with the threshold that the Zen paper finds for tensor
 * parallelism.
 *
 * Elements are floats of 32 or 64 bits, or of 16 where mpix_sparse.h takes them. A NaN counts as larger than
 * infinity: it is selected, so that it shows, and leaves the residual. No two arrays of a call overlap.
 *
 * @defgroup topk Selecting the largest elements
 * @{ */

/** Find the magnitude above which a share of a tensor's elements is. Collective over comm, whose ranks have a part
 * of the tensor each: MPI_COMM_SELF for a tensor of one's own, a group of ranks for a layer that is split among them.
 *
 * Each rank samples its part, all gather the samples, and take the k-th largest magnitude among them, k being
 * ratio * samples, rounded, but at least 1. At least 100 / ratio elements are looked at, if there are so many, and at
 * most 2^20 of all ranks.
 *
 * @param[in]  buf        count elements
 * @param[in]  count      number of elements here; may differ between ranks
 * @param[in]  datatype   type of an element, equal on all ranks
 * @param[in]  ratio      the share, in (0, 1], equal on all ranks
 * @param[in]  sample     share of the elements to look at, in (0, 1], equal on all ranks; 1 finds the exact magnitude
 * @param[in]  seed       which elements: the same arguments give the same sample
 * @param[in]  comm       an intracommunicator
 * @param[out] threshold  the magnitude, equal on all ranks; 0 where fewer elements than that are not zero, or
 *                        ratio is 1, and infinity where so many are NaNs
 * @return MPI_SUCCESS, or an error code on all ranks where an argument is wrong on any */
int MPIX_Sparse_topk_threshold(const void *buf, MPI_Count count, MPI_Datatype datatype, double ratio, double sample,
                               int seed, MPI_Comm comm, double *threshold);

/** Select the elements that are not zero and whose magnitude is not below a threshold; where they are more than
 * `capacity`, the largest of them, and of equal ones those with lower indices. Not collective.
 *
 * @param[in]  buf, count, datatype  as of MPIX_Sparse_topk_threshold
 * @param[in]  threshold  a magnitude, not negative
 * @param[in]  comm       an intracommunicator, for its error handler and its hints
 * @param[in]  indextype  as of MPIX_Sparse_allreduce_coo
 * @param[in]  capacity   elements that indices and values have room for
 * @param[out] indices    nnz indices in [0, count), ascending
 * @param[out] values     nnz elements, in the same order
 * @param[out] nnz        number of elements selected, at most capacity; in memory of the host
 * @return MPI_SUCCESS or an error code */
int MPIX_Sparse_topk_select(const void *buf, MPI_Count count, MPI_Datatype datatype, double threshold, MPI_Comm comm,
                            MPI_Datatype indextype, MPI_Count capacity, void *indices, void *values, MPI_Count *nnz);

/** How MPIX_Sparse_dgc_step works. */
typedef struct {
    double ratio;    /**< share of the elements to select, as of MPIX_Sparse_topk_threshold */
    double sample;   /**< likewise */
    double momentum; /**< what the velocity is multiplied by, in [0, 1) */
    double scale;    /**< what the gradient is multiplied by, such as by clipping; finite */
    int    seed;     /**< of the sample: another in each step */
    int    masking;  /**< whether what is selected loses its velocity, as in the paper; see doc/dgc.md for what it costs */
} MPIX_Sparse_dgc_t;

/** One step of DGC on a tensor, before its allreduce. Collective over comm, as MPIX_Sparse_topk_threshold.
 *
 * Momentum correction, velocity = momentum * velocity + scale * gradient and residual += velocity; the threshold of
 * the residual; its elements selected as by MPIX_Sparse_topk_select; and what is selected is zeroed in residual and,
 * with masking, in velocity. Memory is gone through once. What was in the residual is not lost: it is selected here or stays.
 *
 * @param[in]     gradient   count elements
 * @param[in,out] velocity   likewise; zeros before the first step
 * @param[in,out] residual   likewise
 * @param[in]     count, datatype, comm  as of MPIX_Sparse_topk_threshold
 * @param[in]     how        ratio and sample equal on all ranks
 * @param[in]     indextype, capacity, indices, values, nnz  as of MPIX_Sparse_topk_select
 * @return MPI_SUCCESS, or an error code, and then velocity and residual are as they were, unless a device failed */
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
