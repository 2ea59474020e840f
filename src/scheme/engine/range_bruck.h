/* SPDX-License-Identifier: BSD-3-Clause */
/* Common stages of split_allgather and split_dense: push to the owners of contiguous parts, as in owner.h,
 * and a pull by concatenation in ceil(log2 p) steps.
 *
 * SparCML concatenates by recursive doubling, for powers of two. Here it is Bruck's allgather (Bruck et
 * al., IEEE TPDS 8(11), 1997), for any p. In step i a rank has the parts of 2^i ranks, from its own on,
 * around the end of the vector. It sends those that are missing there to the rank 2^i before it, and appends
 * those that it receives from the rank 2^i after it. Indices count from the beginning of the rank's own part;
 * the last stage converts them. */

#ifndef SAR_SCHEME_ENGINE_RANGE_BRUCK_H
#define SAR_SCHEME_ENGINE_RANGE_BRUCK_H

#include "scheme/engine/owner.h"

/** State of the scheme. Written by range_bruck.c. */
struct sar_range_bruck {
    struct sar_owner owner;  /**< first */
    int n_parts, n_expected; /**< parts that this rank has, and parts in flight to it */
    struct sar_spvec vec;    /**< elements of the n_parts parts */
    struct sar_msg outgoing;
};

/** The stages; they follow a stage whose `post` calls sar_range_bruck_open. */
#define SAR_RANGE_BRUCK_STAGES                                                                       \
    { .compute = sar_owner_begin, .post = sar_owner_post_push, .on_arrival = sar_owner_on_arrival }, \
        { .compute = sar_range_bruck_sum },                                                          \
        { .compute = sar_range_bruck_prepare, .post = sar_range_bruck_exchange },                    \
        { .compute = sar_range_bruck_finish },                                                       \
    {                                                                                                \
        .compute = NULL                                                                              \
    }

/** Assigns owners of equal parts.
 * @param pull_wire  preferred format of the pull, or NULL */
void sar_range_bruck_open(struct sar_task *task, const struct sar_wire *pull_wire);
enum sar_status sar_range_bruck_sum(struct sar_task *task);
enum sar_status sar_range_bruck_prepare(struct sar_task *task);
void sar_range_bruck_exchange(struct sar_task *task);
enum sar_status sar_range_bruck_finish(struct sar_task *task);

/** Returns the predicted seconds; split_allgather.c has the formula. */
double sar_range_bruck_seconds(const struct sar_agreed *agreed, const struct sar_wire *pull_wire);

#endif
