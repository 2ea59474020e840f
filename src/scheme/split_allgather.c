/* SPDX-License-Identifier: BSD-3-Clause */
/* SparCML's SSAR_Split_allgather: each rank owns one of p contiguous ranges, to which all send their
 * elements, and the sums are gathered by concatenation.
 *
 * Pushes as sparse_ps does, but pulls in few messages, and a range that is fuller than others only delays
 * the push: what a rank receives of the pull is the whole outcome wherever it stands.
 *
 *     time = e(p-1, (p-1) m(z s)) + sum over i < L of (alpha + m(Z n_i / p) beta)
 *            + (z + z s p + 2 Z) gamma
 *
 * p ranks, L = ceil(log2 p), n_i = min(2^i, p - 2^i) parts, z elements of the fullest rank, Z of the outcome,
 * m bytes of message for so many, s = skewness / p the share of the fullest range. */

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
