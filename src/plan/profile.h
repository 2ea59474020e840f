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

/** Profile a tensor from each rank's run. Collective; one allreduce of at most 2 * slots bytes.
 *
 * The index space is sampled by a hash, the same on all ranks, and each sampled index falls into one of
 * `slots` slots, in which the ranks that hold it are counted. With c ranks in a slot, the share of all
 * choices of k ranks that reach it is 1 - C(n-c, k) / C(n, k): so one count gives the densification of
 * every k, averaged over all choices. Slots that are shared by accident are corrected for by the
 * occupancy formula. Exact when the vector has no more elements than there are slots. */
enum sar_status sar_profile_measure(const struct sar_net *net, const struct sar_shape *shape,
                                    const struct sar_run *run, uint32_t slots, struct sar_arena *arena,
                                    struct sar_profile *profile);

/** Slots that keep the cost of a profile small beside that of a call with so many elements on all ranks. */
uint32_t sar_profile_slots(uint64_t nnz_sum);

#endif
