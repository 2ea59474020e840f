/* SPDX-License-Identifier: BSD-3-Clause */
/* Profile of a tensor: how sparse it is, and how its non-zero elements overlap between ranks. */

#ifndef SAR_CORE_PROFILE_H
#define SAR_CORE_PROFILE_H

#include "base/arena.h"
#include "comm/collective.h"
#include "scheme/engine/agreed.h"

/** Sparsity of a tensor over all ranks: characteristics C1 to C3 of the Zen paper. Equal on all ranks.
 * Densities are elements over count: mean and maximum of the ranks, and of the result. */
struct sar_profile {
    double density, density_max, density_out;
    double overlap;                 /**< C1: shared elements of two ranks over the smaller of their numbers */
    struct sar_densification gamma; /**< C2 */
    double skewness;                /**< C3: density of the densest part over the mean, mean of all ranks */
    /** Ranks that spread unequally over the vector: for 2, 4, 8, 16 segments, the elements of each segment's
     * fullest rank, summed up, over those of the rank with most elements; 0: unknown. */
    double segment_imbalance[SAR_IMBALANCE_POINTS];
    uint64_t sampled; /**< indices of the index space in the sample, approximately */
};

/** A sample of the index space: sampled indices are hashed to slots, and each slot counts the ranks that have
 * elements there. */
struct sar_index_sample {
    uint32_t slots;
    bool exact;         /**< slot i is element i */
    uint32_t threshold; /**< an index is in the sample if its hash is at most this */
    double fraction;    /**< sampled part of the index space */
    uint16_t *holders;  /**< [slot]: ranks that have an element in it; before the sum 0 or 1 */
};

/** Sets exact, fraction and threshold from sample->slots. nnz_sum elements of all ranks bound the distinct
 * indices. Local. */
void sar_index_sample_choose(struct sar_index_sample *sample, const struct sar_vec_desc *desc,
                             uint64_t nnz_sum);

/** Sets holders to 1 in the slots of the sampled elements of this rank. Local. */
void sar_index_sample_count(struct sar_index_sample *sample, const struct sar_vec_desc *desc,
                            const struct sar_spvec *vec);

/** Returns the densification of a tensor. Local.
 * @param histogram  [c]: slots with elements of c ranks
 * @param nnz        mean elements per rank */
struct sar_densification sar_index_sample_gamma(const struct sar_index_sample *sample,
                                                const double *histogram, double nnz, int ranks);

/** Numbers of a rank that the profile gathers, as a multiple of 8 bytes. */
struct sar_profile_part {
    uint64_t nnz, skewness;         /**< elements, and scaled skewness */
    struct sar_quantiles quantiles; /**< of the elements; unknown if these are few */
    uint16_t filler;                /**< zero, in place of padding */
};

/** A profile in progress. */
struct sar_profile_state {
    const struct sar_comm *comm;
    struct sar_vec_desc desc;
    struct sar_spvec vec;
    struct sar_index_sample sample;
    enum { SAR_PROFILE_MAX_STATUS, SAR_PROFILE_GATHER, SAR_PROFILE_COUNT } step;
    int max_status;
    struct sar_profile_part local, *gathered; /**< of this rank and of all */
    uint64_t *nnz;                            /**< [rank] */
    struct sar_quantiles *quantiles;          /**< [rank] */
    double *histogram;                        /**< [c]: slots with elements of c ranks */
    struct sar_collective collective;
};

/** The profile of a vector without elements. Local. */
struct sar_profile sar_profile_empty(int ranks);

/** Starts to profile a tensor from each rank's elements. Collective; costs a vote, an allgather of six
 * numbers, and an allreduce of 2 * slots bytes.
 *
 * A hash, equal on all ranks, samples the index space and maps each sampled index to a slot. Each slot
 * counts the ranks that have elements in it. If c of n ranks have elements in a slot, a choice of k ranks
 * includes one of them with probability 1 - C(n-c, k) / C(n, k). One count thus gives the densification for
 * every k, averaged over all choices. The occupancy formula corrects for slots with several indices. Exact
 * if count is at most slots. */
enum sar_status sar_profile_start(const struct sar_comm *comm, const struct sar_vec_desc *desc,
                                  const struct sar_spvec *vec, uint32_t slots, struct sar_arena *arena,
                                  struct sar_profile_state *state);

/** Makes progress. Sets *done once *profile is set. Returns the same status on all ranks, except for failures
 * of MPI.
 * @param block  wait until the profile is done */
enum sar_status sar_profile_advance(struct sar_profile_state *state, bool block, struct sar_profile *profile,
                                    bool *done);

/** Returns a number of slots for which a profile costs little compared to a call with nnz_sum elements on
 * all ranks. */
uint32_t sar_profile_slots(uint64_t nnz_sum);

#endif
