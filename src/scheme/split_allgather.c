/* SPDX-License-Identifier: BSD-3-Clause */
/* SparCML's SSAR_Split_allgather: each rank owns one of p contiguous ranges and reduces it; the sums are
 * gathered by concatenation.
 *
 * The push is that of sparse_ps; the pull takes fewer messages. A range with more elements than others
 * delays the push, and each step of the pull.
 *
 *     time = e(p-1, (p-1) m(z s)) + sum over i < L of (alpha + m(F_i) beta)
 *            + (z + z s p + 2 Z) gamma
 *
 * p ranks, L = ceil(log2 p), z elements of the rank with most, Z of the result, F_i of the result in the
 * largest min(2^i, p - 2^i) consecutive ranges, m the bytes of a message of this many elements, s =
 * skewness / p the largest range's share of a rank's elements, e the time of sar_agreed_exchange. */

#include "scheme/engine/range_bruck.h"
#include "scheme/scheme.h"

static double seconds(const struct sar_agreed *a)
{
    return sar_range_bruck_seconds(a, NULL);
}

static void open(struct sar_task *task)
{
    sar_range_bruck_open(task, NULL);
}

static const struct sar_stage stages[] = { { .post = open }, SAR_RANGE_BRUCK_STAGES };

const struct sar_scheme sar_scheme_split_allgather = {
    .name = "split_allgather",
    .summary = "push to owners of contiguous ranges, concatenate the sums in log2 n steps (SparCML)",
    .unsupported_reason = sar_agreed_sparse_unsupported,
    .seconds = seconds,
    .state_size = sizeof(struct sar_range_bruck),
    .stages = stages,
};
