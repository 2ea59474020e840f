/* SPDX-License-Identifier: BSD-3-Clause */
/* SparCML's SSAR_Split_allgather: each rank owns one of p contiguous ranges, to which all send their
 * elements, and the sums are gathered by concatenation.
 *
 * Pushes as sparse_ps does, but pulls in few messages. A range that is fuller than others delays the push,
 * and each step of the pull, in which it goes from those who have got it to others.
 *
 *     time = e(p-1, (p-1) m(z s)) + sum over i < L of (alpha + m(F_i) beta)
 *            + (z + z s p + 2 Z) gamma
 *
 * p ranks, L = ceil(log2 p), z elements of the fullest rank, Z of the outcome, F_i of the outcome in the
 * fullest min(2^i, p - 2^i) ranges in sequence, m bytes of message for so many, s = skewness / p the share
 * that the fullest range has of a rank's elements. */

#include "scheme/split.h"

static double seconds(const struct sar_agreed *a)
{
    return sar_split_seconds(a, NULL);
}

static void open(struct sar_request *request)
{
    sar_split_open(request, NULL);
}

static const struct sar_stage stages[] = { { .post = open }, SAR_SPLIT_STAGES };

const struct sar_scheme sar_scheme_split_allgather = {
    .name = "split_allgather",
    .summary = "push to owners of contiguous ranges, concatenate the sums in log2 n steps (SparCML)",
    .obstacle = sar_sparse_obstacle,
    .seconds = seconds,
    .state_size = sizeof(struct sar_split),
    .stages = stages,
};
