/* SPDX-License-Identifier: BSD-3-Clause */
/* SparCML's DSAR_Split_allgather: as split_allgather, but the sums are gathered dense, since the outcome
 * of many sparse vectors need not be sparse.
 *
 *     time = e(p-1, (p-1) m(z s)) + sum over i < L of (alpha + M n_i / p beta)
 *            + (z + z s p + 2 Z) gamma
 *
 * as for split_allgather, with n_i = min(2^i, p - 2^i) ranges and M bytes of the dense vector. */

#include "scheme/split.h"

static double seconds(const struct sar_agreed *a)
{
    return sar_split_seconds(a, &sar_wire_dense);
}

static void open(struct sar_request *request)
{
    sar_split_open(request, &sar_wire_dense);
}

static const struct sar_stage stages[] = { { .post = open }, SAR_SPLIT_STAGES };

const struct sar_scheme sar_scheme_split_dense = {
    .name = "split_dense",
    .summary = "push to owners of contiguous ranges, gather the sums dense (SparCML)",
    .obstacle = sar_sparse_obstacle,
    .seconds = seconds,
    .state_size = sizeof(struct sar_split),
    .stages = stages,
};
