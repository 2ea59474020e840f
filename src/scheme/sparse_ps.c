/* SPDX-License-Identifier: BSD-3-Clause */
/* Sparse parameter server (Parallax): each rank is the server of one of p contiguous ranges, to which all
 * send their elements in coordinates, and which sends the sums back.
 *
 * Skewed on purpose, as the scheme is in the Zen paper: the server of the fullest range receives and
 * reduces most of everything, and the others wait for it.
 *
 *     time = 2 alpha + (p-1) (m(z s) + m(Z S)) beta + (z + z s p + Z) gamma
 *
 * p ranks, z elements of the fullest rank, Z of the outcome, m(z) bytes of z coordinates, s = skewness /
 * p and S the shares of the fullest range; sar_owner_seconds has the rest. */

#include "scheme/owner.h"

static double seconds(const struct sar_agreed *a)
{
    struct sar_map map = sar_contiguous_map(a);
    struct sar_owner_terms terms = sar_owner_terms(a, &map);
    terms.push_wire = terms.pull_wire = &sar_wire_coo;
    return sar_owner_seconds(a, &terms);
}

static void open(struct sar_request *request)
{
    struct sar_map map = sar_contiguous_map(request->agreed);
    request->own_wire[0] = request->own_wire[1] = &sar_wire_coo;
    sar_owner_open(request, &map);
}

static const struct sar_stage stages[] = { { .post = open }, SAR_OWNER_STAGES };

const struct sar_scheme sar_scheme_sparse_ps = {
    .name = "sparse_ps",
    .summary = "each rank serves a contiguous range; push to the server, pull from it (Parallax)",
    .obstacle = sar_sparse_obstacle,
    .seconds = seconds,
    .state_size = sizeof(struct sar_owner),
    .stages = stages,
};
