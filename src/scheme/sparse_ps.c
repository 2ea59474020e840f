/* SPDX-License-Identifier: BSD-3-Clause */
/* Sparse parameter server (Parallax): each rank is the server of one of p contiguous ranges. All ranks send
 * their elements to the servers as coordinates, and the servers send the sums back.
 *
 * It is skewed on purpose, as in the Zen paper: the server of the largest range receives and reduces more
 * than the others, which wait for it. Ranges consist of whole rows, and a row is sent with one index, as in
 * Parallax, which partitions embedding tables by rows.
 *
 *     time = 2 alpha + (p-1) (m(z s) + m(Z S)) beta + (z + z s p + Z) gamma
 *
 * p ranks, z elements of the rank with most, Z of the result, m(z) bytes of z coordinates, s = skewness / p
 * and S the shares of the largest range; sar_owner_seconds has the rest. */

#include "scheme/engine/owner.h"
#include "scheme/scheme.h"

static double seconds(const struct sar_agreed *a)
{
    struct sar_owner_cost_terms terms = sar_owner_cost_terms(a, sar_range_parts_map(a));
    terms.push_policy.preferred = terms.pull_policy.preferred = &sar_wire_coo;
    return sar_owner_seconds(a, &terms);
}

/* Who asks for rounded values wants few bytes. */
static const char *redundant_reason(const struct sar_agreed *agreed)
{
    return agreed->wire.precision == SAR_PRECISION_FULL ? NULL
                                                        : "values are rounded, and it sends whole indices";
}

static void open(struct sar_task *task)
{
    task->wire_policy[0].preferred = task->wire_policy[1].preferred = &sar_wire_coo;
    sar_owner_open(task, sar_range_parts_map(task->agreed), NULL);
}

static const struct sar_stage stages[] = { { .post = open }, SAR_OWNER_STAGES };

const struct sar_scheme sar_scheme_sparse_ps = {
    .name = "sparse_ps",
    .summary = "each rank serves a contiguous range; push to the server, pull from it (Parallax)",
    .unsupported_reason = sar_agreed_sparse_unsupported,
    .redundant_reason = redundant_reason,
    .seconds = seconds,
    .state_size = sizeof(struct sar_owner),
    .stages = stages,
};
