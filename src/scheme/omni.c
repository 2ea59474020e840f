/* SPDX-License-Identifier: BSD-3-Clause */
/* OmniReduce: blocks of 256 elements, of which those that hold anything are sent whole to their
 * aggregator and, reduced, back to all. Blocks are dealt out one by one or, with partition=range, in
 * contiguous ranges.
 *
 * Fast where elements stand close together: a block costs as much for one element as for 256, so at a
 * density d without clusters 1 - (1-d)^256 of all bytes are sent, 92 % at d = 1 %.
 *
 *     time = 2 alpha + (p-1) (m(z s) + m(Z S)) beta + (z + z s p + Z) gamma
 *
 * p ranks, z elements of the fullest rank, Z of the outcome, m(z) bytes of the blocks that z elements lie
 * in, s = S = 1 / p, or those of the fullest of contiguous ranges; sar_owner_seconds has the rest. */

#include "scheme/owner.h"

enum { BLOCK = 256 };

static struct sar_map map_of(const struct sar_agreed *a)
{
    bool range = a->partition == SAR_PARTITION_RANGE;
    return sar_map_make(range ? SAR_PARTITION_RANGE : SAR_PARTITION_CYCLIC, a->shape.count,
                        (uint32_t)a->machine.ranks, BLOCK, 0);
}

static const char *obstacle(const struct sar_agreed *a)
{
    const char *first = sar_sparse_obstacle(a);
    struct sar_map map = map_of(a);
    return first != NULL ? first : sar_owner_obstacle(&map);
}

static double seconds(const struct sar_agreed *a)
{
    struct sar_map map = map_of(a);
    struct sar_owner_terms terms = sar_owner_terms(a, &map);
    terms.push_wire = terms.pull_wire = &sar_wire_block;
    return sar_owner_seconds(a, &terms);
}

static void open(struct sar_request *request)
{
    struct sar_map map = map_of(request->agreed);
    request->own_wire[0] = request->own_wire[1] = &sar_wire_block;
    sar_owner_open(request, &map);
}

static const struct sar_stage stages[] = { { .post = open }, SAR_OWNER_STAGES };

const struct sar_scheme sar_scheme_omni = {
    .name = "omni",
    .summary = "blocks of 256 elements go whole to their aggregator and back (OmniReduce)",
    .obstacle = obstacle,
    .seconds = seconds,
    .partitions = 1u << SAR_PARTITION_CYCLIC | 1u << SAR_PARTITION_RANGE,
    .state_size = sizeof(struct sar_owner),
    .stages = stages,
};
