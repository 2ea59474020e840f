/* SPDX-License-Identifier: BSD-3-Clause */
/* OmniReduce: blocks of 256 values. Blocks with a nonzero element are sent whole to their aggregator, which
 * sends the sums to all ranks. Ranks aggregate blocks in turn or, with partition=range, contiguous ranges.
 *
 * A block has the largest power of two of elements that together have at most 256 values, or one element: 16
 * rows of 16 values, one row of 256 or more. A longer row is sent with one number, where OmniReduce sends one
 * for every 256 values, and may leave out blocks of zeros inside of the row.
 *
 * This is fast for clustered elements: a block costs as much for one element as for all of its n, so at a
 * density d without clusters 1 - (1-d)^n of all bytes are sent: 92 % at d = 1 % and n = 256, and d at n = 1.
 *
 *     time = 2 alpha + (p-1) (m(z s) + m(Z S)) beta + (z + z s p + v) gamma
 *
 * p ranks, z elements of the rank with most, Z of the result, m(z) bytes of the blocks that z elements are
 * in; s and S are 1 / p, or the shares of the largest contiguous range; sar_owner_seconds has the rest. */

#include "scheme/engine/owner.h"
#include "scheme/scheme.h"

static struct sar_partition_map map_of(const struct sar_agreed *a)
{
    unsigned grain = 1u << sar_wire_block_shift(a->desc.row_len);
    bool range = a->partition.kind == SAR_PARTITION_RANGE;
    return sar_partition_map_make(range ? SAR_PARTITION_RANGE : SAR_PARTITION_CYCLIC, a->desc.count,
                                  (uint32_t)a->machine.ranks, grain, 0);
}

static const char *unsupported_reason(const struct sar_agreed *a)
{
    return sar_owner_unsupported_reason(a, map_of(a));
}

static double seconds(const struct sar_agreed *a)
{
    struct sar_owner_cost_terms terms = sar_owner_cost_terms(a, map_of(a));
    terms.push_policy.preferred = terms.pull_policy.preferred = &sar_wire_block;
    return sar_owner_seconds(a, &terms);
}

static void open(struct sar_task *task)
{
    task->wire_policy[0].preferred = task->wire_policy[1].preferred = &sar_wire_block;
    sar_owner_open(task, map_of(task->agreed), NULL);
}

static const struct sar_stage stages[] = { { .post = open }, SAR_OWNER_STAGES };

const struct sar_scheme sar_scheme_omni = {
    .name = "omni",
    .summary = "blocks of 256 values go whole to their aggregator and back (OmniReduce)",
    .unsupported_reason = unsupported_reason,
    .seconds = seconds,
    .partition_mask = 1u << SAR_PARTITION_CYCLIC | 1u << SAR_PARTITION_RANGE,
    .state_size = sizeof(struct sar_owner),
    .stages = stages,
};
