/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_PLAN_PROFILE_H
#define SAR_PLAN_PROFILE_H

#include "base/arena.h"
#include "scheme/agreed.h"

/** How sparse a tensor is over all ranks: Zen's characteristics C1 to C3. Equal on all ranks. */
struct sar_profile {
    double density, density_max, density_out;
    double overlap;         /**< C1 */
    struct sar_gamma gamma; /**< C2 */
    double skewness;        /**< C3 */
    uint64_t sampled;       /**< elements of the index space looked at, about */
};

/** Everything is counted in slots of one sample. */
struct sar_sample {
    uint32_t slots;
    bool exact;         /**< slot i is element i */
    uint32_t threshold; /**< an index whose hash is below is in the sample */
    double share;       /**< of the index space */
    uint16_t *ranks_in; /**< of each slot */
};

/** Choose the share of a sample that has its slots. As many indices as ranks could have between them are
 * enough: there are no more than the vector has. */
void sar_sample_choose(struct sar_sample *sample, const struct sar_shape *shape, uint64_t nnz_sum);

/** Set the slots of a rank's elements that are in it. */
void sar_sample_count(struct sar_sample *sample, const struct sar_shape *shape, const struct sar_run *run);

/** Densification of a tensor that has nnz elements on the mean rank; histogram[c] slots are held by c. */
struct sar_gamma sar_sample_gamma(const struct sar_sample *sample, const double *histogram, double nnz,
                                  int ranks);

/** A profile that is being made. */
struct sar_profiling {
    const struct sar_net *net;
    struct sar_shape shape;
    struct sar_run run;
    struct sar_sample sample;
    enum { SAR_PROFILE_VOTE, SAR_PROFILE_GATHER, SAR_PROFILE_COUNT } step;
    int worst;
    uint64_t mine[2], *gathered; /**< elements and skewness, of this rank and of all */
    double *histogram;           /**< [c]: slots that c ranks hold */
    struct sar_collective collective;
};

/** Begin to profile a tensor from each rank's run. Collective; a vote, a gathering of two numbers, and an
 * allreduce of 2 * slots bytes.
 *
 * The index space is sampled by a hash, the same on all ranks, and each sampled index falls into one of
 * `slots` slots, in which the ranks that hold it are counted. With c ranks in a slot, the share of all
 * choices of k ranks that reach it is 1 - C(n-c, k) / C(n, k): so one count gives the densification of
 * every k, averaged over all choices. Slots that are shared by accident are corrected for by the
 * occupancy formula. Exact when the vector has no more elements than there are slots. */
enum sar_status sar_profile_start(const struct sar_net *net, const struct sar_shape *shape,
                                  const struct sar_run *run, uint32_t slots, struct sar_arena *arena,
                                  struct sar_profiling *profiling);

/** Make progress; all is well with *done once *profile is set. The same status on all ranks, but for
 * failures of MPI itself. */
enum sar_status sar_profile_advance(struct sar_profiling *profiling, bool block, struct sar_profile *profile,
                                    bool *done);

/** Slots that keep the cost of a profile small beside that of a call with so many elements on all ranks. */
uint32_t sar_profile_slots(uint64_t nnz_sum);

#endif
