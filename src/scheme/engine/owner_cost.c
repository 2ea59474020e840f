/* SPDX-License-Identifier: BSD-3-Clause */
/* The price of owner-based schemes, and the length of their segments. A call and its price use the same
 * numbers. */

#include <math.h>

#include "base/config.h"
#include "comm/exchange.h"
#include "scheme/engine/owner.h"
#include "wire/message.h"

/* Bytes of a message of one segment. Shorter messages cost more time than they hide; longer ones fill
 * memory and caches, unless their latencies take more than half of the time. */
enum { MIN_SEGMENT_BYTES = 1 << 16, MAX_SEGMENT_BYTES = 1 << 18, MAX_SEGMENTS = 1024 };

enum { MAX_THROTTLE = 16 }; /* long messages at a time; more gain nothing on links that queue them */

/* Share of moving in moving and working; below it segments do not pay. Measured with two pretended nodes on
 * one machine: at 7 % calls took a tenth longer. */
static const double MIN_MOVING_SHARE = 0.25;

static bool is_contiguous(const struct sar_partition_map *map)
{
    return map->kind == SAR_PARTITION_RANGE;
}

struct sar_owner_cost_terms sar_owner_cost_terms(const struct sar_agreed *a, struct sar_partition_map map)
{
    double ranks = a->machine.ranks;
    struct sar_owner_cost_terms terms = { 1 / ranks, 1 / ranks, NULL, NULL, map, (double)map.slots_max, 1 };
    if (is_contiguous(&map)) {
        terms.push_share = sar_range_parts_max_share(a);
        terms.pull_share = sar_range_parts_max_union_share(a, ranks);
    }
    return terms;
}

/* Returns the terms with the shares of the largest part, if they have those of the mean part. In the push
 * the owner receives its part from every rank, often with equal indices; in the pull all ranks receive the
 * largest part once. */
static struct sar_owner_cost_terms with_max_shares(const struct sar_agreed *a,
                                                   const struct sar_owner_cost_terms *terms)
{
    struct sar_owner_cost_terms max = *terms;
    double ranks = a->machine.ranks;
    if (is_contiguous(&terms->map))
        return max;
    max.push_share *= terms->group_ranks > 1
                          ? sar_agreed_max_load(a, terms->group_ranks, ceil(ranks / terms->group_ranks))
                          : sar_agreed_max_push_load(a);
    max.pull_share *= sar_agreed_max_load(a, ranks, 1);
    return max;
}

/* Elements of the largest part: of the rank with most elements, or of a group of ranks. */
static double pushed_nnz(const struct sar_agreed *a, const struct sar_owner_cost_terms *terms)
{
    return (terms->group_ranks > 1 ? sar_agreed_union_nnz(a, terms->group_ranks) : a->data.nnz_max) *
           terms->push_share;
}

/* Groups of ranks exchange no messages within their node. */
static double exchange(const struct sar_agreed *a, const struct sar_owner_cost_terms *terms, double messages,
                       double bytes)
{
    return terms->group_ranks > 1 ? sar_agreed_inter_exchange(a, messages, bytes)
                                  : sar_agreed_exchange(a, messages, bytes);
}

/* A rank partitions its own elements, reduces the part that it owns, and merges the parts of the result. In
 * a group it also reduces the elements of its node, and merges only its share of the result. The pull is
 * encoded once. */
static double work_of(const struct sar_agreed *a, const struct sar_owner_cost_terms *terms,
                      const struct sar_owner_estimate *estimate)
{
    double ranks = a->machine.ranks, parts = estimate->peers + 1, sums = sar_agreed_union_nnz(a, ranks);
    double coding = estimate->peers * estimate->push.work + parts / 2 * estimate->pull.work;
    double read = a->data.nnz_max + a->data.nnz_mean * ranks * terms->push_share;
    if (terms->group_ranks > 1)
        return read + parts * (sar_agreed_union_nnz(a, terms->group_ranks) + sums) * terms->push_share +
               coding;
    return read + sums + coding;
}

/* Returns the bytes of a message of one segment. Let h be the time that can be hidden, the smaller one of
 * moving and working. With t segments 1 / t of h stays visible, and handling the messages takes t m: h / t
 * + t m is least at t = sqrt(h / m). Within a node nothing is hidden. Each segment has a fixed cost, too,
 * which messages hide only if moving has a large share. */
static double segment_bytes(const struct sar_agreed *a, const struct sar_owner_cost_terms *terms,
                            const struct sar_owner_estimate *estimate)
{
    if (a->wire.segment_bytes != SAR_U64_AUTO)
        return (double)a->wire.segment_bytes;
    double largest = fmax(estimate->push.bytes, estimate->pull.bytes),
           both = estimate->push.bytes + estimate->pull.bytes;
    double moving = exchange(a, terms, 2 * estimate->peers, estimate->peers * both),
           working = estimate->work * a->machine.gamma;
    double handling = exchange(a, terms, 2 * estimate->peers, 0), hidden = fmin(moving, working);
    double limit = moving > 0 ? fmax(MAX_SEGMENT_BYTES, 2 * largest * handling / moving) : MAX_SEGMENT_BYTES;
    if (a->topo.nodes == 1 || hidden == 0 || moving < MIN_MOVING_SHARE * (moving + working))
        return limit;
    return fmin(fmax(largest * sqrt(handling / hidden), MIN_SEGMENT_BYTES), limit);
}

/* A segment has whole stripes, and whole words of a bitmap. */
static uint64_t segment_slots_of(const struct sar_agreed *a, const struct sar_owner_cost_terms *terms,
                                 const struct sar_owner_estimate *estimate)
{
    const struct sar_partition_map *map = &terms->map;
    double messages =
        ceil(fmax(estimate->push.bytes, estimate->pull.bytes) / segment_bytes(a, terms, estimate));
    double slots = ceil((double)map->slots_max / fmin(fmax(messages, 1), MAX_SEGMENTS));
    uint64_t unit = map->grain_shift > 6 ? (uint64_t)1 << map->grain_shift : 64;
    return ((uint64_t)fmax(slots, 1) + unit - 1) / unit * unit;
}

/* Returns the long messages to have in flight. The longest time without progress is the merge of a segment;
 * as many messages should be in flight as the link moves in that time. */
static int throttle_of(const struct sar_agreed *a, const struct sar_owner_cost_terms *terms,
                       const struct sar_owner_estimate *estimate)
{
    double ranks = a->machine.ranks, parts = estimate->peers + 1;
    if (a->wire.throttle != SAR_U64_AUTO)
        return (int)a->wire.throttle;
    double merge = parts * sar_agreed_union_nnz(a, ranks) * terms->pull_share * a->machine.gamma;
    double message = (estimate->push.bytes + estimate->pull.bytes) / 2 * a->machine.beta;
    if (estimate->segments <= 1 || merge <= SAR_EXCHANGE_THROTTLE * message)
        return SAR_EXCHANGE_THROTTLE;
    return (int)ceil(fmin(merge / message, MAX_THROTTLE));
}

struct sar_owner_estimate sar_owner_estimate(const struct sar_agreed *a,
                                             const struct sar_owner_cost_terms *terms)
{
    struct sar_owner_cost_terms max = with_max_shares(a, terms);
    double sums = sar_agreed_union_nnz(a, a->machine.ranks);
    struct sar_owner_estimate estimate = { .segment_slots = terms->map.slots_max, .segments = 1 };
    struct sar_wire_layout layout =
        sar_agreed_layout(a, (uint64_t)max.max_slots, sar_index_size(estimate.segment_slots));
    estimate.peers = ceil(a->machine.ranks / terms->group_ranks) - 1;
    estimate.push =
        sar_agreed_cost_with(a, false, terms->push_wire, &layout, fmin(pushed_nnz(a, &max), max.max_slots));
    estimate.pull =
        sar_agreed_cost_with(a, true, terms->pull_wire, &layout, fmin(sums * max.pull_share, max.max_slots));
    estimate.work = work_of(a, &max, &estimate);
    estimate.throttle = throttle_of(a, terms, &estimate);
    if (is_contiguous(&terms->map) || terms->map.slots_max == 0)
        return estimate;
    estimate.segment_slots = segment_slots_of(a, terms, &estimate);
    estimate.segments =
        (double)((terms->map.slots_max + estimate.segment_slots - 1) / estimate.segment_slots);
    estimate.throttle = throttle_of(a, terms, &estimate);
    return estimate;
}

/* Bytes of a message of one segment; each has a header. */
static double segment_message_bytes(const struct sar_cost *message, double segments)
{
    return SAR_MSG_HEADER_BYTES + (message->bytes - SAR_MSG_HEADER_BYTES) / segments;
}

/* The first step pushes, the last one pulls, the others do both. */
double sar_owner_seconds(const struct sar_agreed *a, const struct sar_owner_cost_terms *terms)
{
    struct sar_owner_estimate estimate = sar_owner_estimate(a, terms);
    double push = estimate.peers * segment_message_bytes(&estimate.push, estimate.segments),
           pull = estimate.peers * segment_message_bytes(&estimate.pull, estimate.segments);
    double moving = exchange(a, terms, estimate.peers, push) +
                    (estimate.segments - 1) * exchange(a, terms, 2 * estimate.peers, push + pull) +
                    exchange(a, terms, estimate.peers, pull);
    double working = estimate.work * a->machine.gamma,
           hidden = fmin(moving, working) * (1 - 1 / estimate.segments);
    return moving + working - (a->topo.nodes > 1 ? hidden : 0);
}

const char *sar_owner_unsupported_reason(const struct sar_agreed *a, struct sar_partition_map map)
{
    const char *reason = sar_agreed_sparse_unsupported(a);
    bool fits = is_contiguous(&map) || map.slots_max <= UINT32_MAX;
    return reason == NULL && !fits ? "parts of more than 2^32 slots" : reason;
}
