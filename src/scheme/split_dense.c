/* SPDX-License-Identifier: BSD-3-Clause */
/* SparCML's DSAR_Split_allgather: as split_allgather, but the sums are gathered in dense format, because
 * the sum of many sparse vectors may be dense.
 *
 *     time = e(p-1, (p-1) m(z s)) + sum over i < L of (alpha + M n_i / p beta)
 *            + (z + z s p + 2 Z) gamma
 *
 * with the symbols of split_allgather, n_i = min(2^i, p - 2^i) ranges, and M bytes of the dense vector. */

#include "scheme/engine/range_bruck.h"
#include "scheme/scheme.h"

static double seconds(const struct sar_agreed *a)
{
    return sar_range_bruck_seconds(a, &sar_wire_dense);
}

static void open(struct sar_task *task)
{
    sar_range_bruck_open(task, &sar_wire_dense);
}

static const struct sar_stage stages[] = { { .post = open }, SAR_RANGE_BRUCK_STAGES };

const struct sar_scheme sar_scheme_split_dense = {
    .name = "split_dense",
    .summary = "push to owners of contiguous ranges, gather the sums dense (SparCML)",
    .unsupported_reason = sar_agreed_sparse_unsupported,
    .seconds = seconds,
    .state_size = sizeof(struct sar_range_bruck),
    .stages = stages,
};
