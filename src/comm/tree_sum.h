/* SPDX-License-Identifier: BSD-3-Clause */
/* A sum of counters over all ranks, by messages up and down a binary tree.
 *
 * A rank that closes a communicator while others still make calls on it must not begin a collective operation
 * of MPI there: MPI would match it with an operation of the others. The messages of the sum have the tag
 * SAR_TAG_CLOSE.
 *
 *     time = 2 log2(p) (alpha + 8 p beta) */

#ifndef SAR_COMM_TREE_SUM_H
#define SAR_COMM_TREE_SUM_H

#include <stdbool.h>

#include "comm/comm.h"

/** A sum of p counters on p ranks. */
struct sar_tree_sum;

/** Allocates a sum; returns NULL without memory. Local. */
struct sar_tree_sum *sar_tree_sum_create(int ranks);

/** Frees a sum that was not started, or that is done; NULL is allowed. Local. */
void sar_tree_sum_free(struct sar_tree_sum *sum);

/** Starts the sum, once. Collective over comm, does not block.
 * @param counters  one for each rank */
void sar_tree_sum_start(const struct sar_comm *comm, struct sar_tree_sum *sum, const uint64_t *counters);

/** Advances the sum. True once this rank has no more messages to pass on, or MPI has failed. Other ranks wait
 * for these messages: a rank that waits for one sum tests all that it has started. Local. */
bool sar_tree_sum_test(const struct sar_comm *comm, struct sar_tree_sum *sum);

/** Returns the sum of one of the counters; 0 if MPI has failed, or the sum was not started. */
uint64_t sar_tree_sum_result(const struct sar_tree_sum *sum, int counter);

#endif
