/* SPDX-License-Identifier: BSD-3-Clause */
/* The owners of the elements of an allgather. If every rank gives elements that it owns under one map,
 * indices take the bytes of slots in a part, log2(ranks) bits less each. Callers do not name the map: ranks
 * check a few candidates, which are equal on all ranks, and agree on those that no element violates. */

#ifndef SAR_CORE_OWNERSHIP_H
#define SAR_CORE_OWNERSHIP_H

#include "core/comm_state.h"

/** Returns a mask for agreements: bit k is set if an element of the vector is not this rank's under candidate
 * k. Stops at the first such element of a candidate. Local. */
uint8_t sar_ownership_violations(const struct sar_comm_state *comm_state, const struct sar_vec_desc *desc,
                                 const struct sar_spvec *vec);

/** Returns the block of the first candidate without a violation on any rank, or 0 if there is none. All ranks
 * get the same block; it gives the map of sar_agreed_block_map. */
uint64_t sar_ownership_block(const struct sar_comm_state *comm_state, const struct sar_vec_desc *desc,
                             uint8_t violations);

#endif
