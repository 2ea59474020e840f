/* SPDX-License-Identifier: BSD-3-Clause */
/* The price of owner-based schemes, and the length of their segments. A call and its price use the same
 * numbers. */

#include <math.h>

#include "base/config.h"
#include "comm/exchange.h"
#include "scheme/engine/owner_internal.h"
#include "wire/message.h"

/* Bytes of a message of one segment, in long messages. Shorter ones cost more time than they hide. Others
 * fill memory and caches, unless their latencies take more than half of the time. Where segments hide work,
 * their price tells their length, up to a limit of memory alone. */
enum {
    MIN_SEGMENT = 1,
    MAX_SEGMENT = 4,
    MAX_HIDING_SEGMENT = 16,
    MAX_SEGMENTS = 1024,
    LONG_DEFAULT = 1 << 16
};

/* Latencies before a long message begins to move (a request, its answer and the first byte), and the largest
 * share of the time in which the link may be idle for them. */
static const double BEGIN_LATENCIES = 3, MAX_IDLE = 0.02;

/* Time of a relayed pull over that of a direct one, at most. Simulated calls gained up to 0.15 less than
 * predicted, because ranks reach the step of relays at different times. */
static const double RELAY_GAIN = 0.85;

/* Ranks of a relayed pull. Each owner sends to two thirds of the others itself, and so to both of two. The
 * routes take memory and time that grow with the square of the ranks. */
enum { MIN_RELAY_RANKS = 4, MAX_RELAY_RANKS = 2048 };

/* Share of moving in moving and working; below it segments do not pay. Measured with two emulated nodes on
 * one machine: at 7 % calls took a tenth longer. */
static const double MIN_MOVING_SHARE = 0.25;

/* Predicted time of reducing in flight over that of reducing before the next step, at most. The model adds up
 * all steps; in those that have more to move than to work, simulated calls gain more than it predicts. */
static const double IN_FLIGHT_LOSS = 1.03;

/* Weights in the choice of formats, of work against bytes where the call mostly works, and of bytes against
 * work where it mostly moves: the most, and one that is tried beside working / moving. */
static const double MAX_WEIGHT = 10, STRONG_WEIGHT = 3;

/* The most by which the excess of the largest part grows with segments. Simulated calls, 16 ranks, one
 * column: 1.7 to 2.1 times with 5 to 17 segments. */
static const double MAX_SEGMENT_EXCESS = 2;

/* Share of the smaller one of moving and working that is visible, over the excess of the largest part of a
 * segment. Simulated calls with work charged, 16 ranks, one column: 0.9 to 1.4. */
static const double VISIBLE_EXCESS = 1.2;

/* Largest over mean message up to which messages are equal. */
static const double EVEN = 1.01;

bool sar_owner_always_in_flight;

/* Returns the terms with the shares of the largest part, if they have those of the mean part. In the push
 * the owner receives its part from every rank, often with equal indices; in the pull all ranks receive the
 * largest part once. That of an earlier call counts if it was larger: indices may have a structure that no
 * hash divides, and other maps than hashes even more so, such as the caller's of a reduce_scatter. */
static struct sar_owner_cost_terms with_max_shares(const struct sar_agreed *a,
                                                   const struct sar_owner_cost_terms *terms)
{
    struct sar_owner_cost_terms max = *terms;
    double ranks = a->machine.ranks, parts = terms->columns.groups;
    if (sar_owner_is_contiguous(&terms->map) || a->call.collective == SAR_ALLGATHER)
        return max;
    max.push_share *= terms->group_ranks > 1 ? sar_agreed_max_load(a, parts, terms->group_ranks,
                                                                   ceil(ranks / terms->group_ranks))
                                             : sar_agreed_max_push_load(a, parts);
    if (a->call.collective == SAR_REDUCE_SCATTER && a->data.pull_parts == terms->columns.groups)
        max.push_share = fmin(fmax(max.push_share, terms->push_share * a->data.pull_imbalance), 1);
    double max_load = sar_agreed_max_load(a, parts, ranks, 1);
    if (terms->group_ranks <= 1 && a->data.pull_parts == terms->columns.groups)
        max_load = fmin(fmax(max_load, a->data.pull_imbalance), parts);
    max.pull_share *= max_load;
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

/* Returns the latencies that messages of a step wait for others: at most so many are in flight. */
static double rounds_seconds(const struct sar_agreed *a, double messages)
{
    return floor(messages / SAR_EXCHANGE_MAX_THROTTLE) * a->machine.alpha;
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
    double unit = a->wire.long_message > 0 ? (double)a->wire.long_message : LONG_DEFAULT;
    double largest = fmax(estimate->push.bytes, estimate->pull.bytes),
           both = estimate->push.bytes + estimate->pull.bytes;
    double moving = exchange(a, terms, 2 * estimate->peers, estimate->peers * both),
           working = estimate->work * a->machine.gamma;
    double handling = exchange(a, terms, 2 * estimate->peers, 0) + rounds_seconds(a, 2 * estimate->peers),
           hidden = fmin(moving, working);
    double limit = fmax(MAX_SEGMENT * unit, moving > 0 ? 2 * largest * handling / moving : 0);
    if (a->topo.nodes == 1 || hidden == 0 || moving < MIN_MOVING_SHARE * (moving + working))
        return limit;
    limit = fmax(limit, MAX_HIDING_SEGMENT * unit);
    return fmin(fmax(largest * sqrt(handling / hidden), MIN_SEGMENT * unit), limit);
}

/* Returns the slots that segments are made of: whole stripes, and whole words of a bitmap unless blocks have
 * another length. */
static uint64_t unit_of(const struct sar_partition_map *map)
{
    if (map->kind == SAR_PARTITION_BLOCKS)
        return map->grain < 64 ? map->grain * 64 : map->grain;
    return map->grain > 64 ? map->grain : 64;
}

/* Returns the most slots of a segment. The partition makes slots of 32 bits, which count from the segment
 * on. */
static uint64_t max_slots_of(const struct sar_agreed *a, const struct sar_partition_map *map, uint64_t unit)
{
    uint64_t slots = (uint64_t)UINT32_MAX + 1;
    return sar_owner_is_unowned(a, map) ? UINT64_MAX : slots - slots % unit;
}

static struct sar_segments segments_of(const struct sar_agreed *a, const struct sar_owner_cost_terms *terms,
                                       double messages)
{
    const struct sar_partition_map *map = &terms->map;
    double slots = ceil((double)map->slots_max / fmin(fmax(messages, 1), MAX_SEGMENTS));
    uint64_t unit = unit_of(map), most = max_slots_of(a, map, unit);
    uint64_t equal = ((uint64_t)fmax(slots, 1) + unit - 1) / unit * unit;
    return sar_segments_equal(map->slots_max, equal < most ? equal : most, unit);
}

/* Returns the long messages to have in flight. Two things leave the link idle. Messages that are in flight at
 * once end at once, and then the next ones take latencies to begin: of the time of so many messages, that
 * should be a small share. And the longest time without progress is the merge of a segment: as many messages
 * should be in flight as the link moves in that time. */
static int throttle_of(const struct sar_agreed *a, const struct sar_owner_cost_terms *terms,
                       const struct sar_owner_estimate *estimate)
{
    double ranks = a->machine.ranks, parts = estimate->peers + 1;
    if (a->wire.throttle != SAR_U64_AUTO)
        return (int)a->wire.throttle;
    double share = fmin(terms->columns.groups, parts) * terms->pull_share / terms->columns.shares;
    double merge = sar_agreed_union_nnz(a, ranks) * share * a->machine.gamma;
    double message = (estimate->push.bytes + estimate->pull.bytes) / 2 * a->machine.beta;
    double longest =
        fmax(estimate->push.bytes, estimate->pull.bytes) / estimate->segments.n * a->machine.beta;
    double wanted = fmax(SAR_EXCHANGE_THROTTLE, BEGIN_LATENCIES * a->machine.alpha / (MAX_IDLE * longest));
    if (estimate->segments.n > 1)
        wanted = fmax(wanted, merge / message);
    return (int)ceil(fmin(wanted, SAR_EXCHANGE_MAX_THROTTLE));
}

/* Returns the bytes of a message of values alone. */
static double values_bytes(const struct sar_wire_layout *layout, double nnz)
{
    return SAR_MSG_HEADER_BYTES + nnz * (double)layout->element_size;
}

/* Returns the cost of the mean pull message. With sliced rows, ranks of the owner's row group get values
 * alone; the others get one index list a group. */
static struct sar_cost pull_cost(const struct sar_agreed *a, const struct sar_owner_cost_terms *terms,
                                 const struct sar_wire_layout *layout, double nnz)
{
    double peers = ceil(a->machine.ranks / terms->group_ranks) - 1;
    struct sar_cost whole = sar_agreed_cost_with(a, true, &terms->pull_policy, layout, nnz);
    if (!sar_columns_sliced(&terms->columns))
        return whole;
    double values = values_bytes(layout, nnz);
    double lists = (terms->columns.groups - 1) / fmax(peers, 1);
    return (struct sar_cost){ values + (whole.bytes - values) * lists, whole.work * lists };
}

/* The messages of a step, and the bytes of each. */
struct step {
    double messages, bytes;
};

/* Returns the seconds of the messages of some classes at once. */
static double step_seconds(const struct sar_agreed *a, const struct sar_owner_cost_terms *terms,
                           const struct step steps[], int n)
{
    double messages = 0, bytes = 0;
    for (int i = 0; i < n; i++) {
        messages += steps[i].messages;
        bytes += steps[i].messages * steps[i].bytes;
    }
    return exchange(a, terms, messages, bytes);
}

/* Bytes of a message of one segment; each has a header. */
static double segment_message_bytes(double message_bytes, double segments)
{
    return SAR_MSG_HEADER_BYTES + (message_bytes - SAR_MSG_HEADER_BYTES) / segments;
}

/* Returns the bytes of the largest message of a segment. Parts of segments differ more than whole parts do,
 * by the root of their number; a rank that is behind in one segment catches up in the next. */
static double largest_bytes(double mean, double largest, double segments)
{
    double excess = fmax(largest - mean, 0) * fmin(sqrt(segments), MAX_SEGMENT_EXCESS);
    return segment_message_bytes(fmax(largest, mean + excess), segments);
}

/* Returns the bytes of a push message of the fullest rank of a segment. */
static double pushed_bytes(const struct sar_agreed *a, const struct sar_owner_estimate *e)
{
    double imbalance = sar_agreed_segment_imbalance(a, e->segments.n);
    return imbalance * largest_bytes(e->mean_push, e->push.bytes, e->segments.n);
}

static double pulled_bytes(const struct sar_owner_estimate *e)
{
    return largest_bytes(e->mean_pull, e->pull.bytes, e->segments.n);
}

/* Returns the seconds of the messages of all steps. The first step pushes, the last one pulls, the others do
 * both. If segments are reduced in flight, the first two push, and the last two pull. Half an allreduce has
 * one class of messages in all steps. */
static double direct_seconds(const struct sar_agreed *a, const struct sar_owner_cost_terms *terms,
                             const struct sar_owner_estimate *e)
{
    const struct step steps[] = { { e->peers, pushed_bytes(a, e) }, { e->peers, pulled_bytes(e) } };
    double lag = e->reduces_in_flight ? 2 : 1;
    if (a->call.collective != SAR_ALLREDUCE)
        return e->segments.n * step_seconds(a, terms, &steps[a->call.collective == SAR_ALLGATHER], 1);
    return lag * step_seconds(a, terms, &steps[0], 1) +
           (e->segments.n - lag) * step_seconds(a, terms, steps, 2) +
           lag * step_seconds(a, terms, &steps[1], 1);
}

/* As direct_seconds. In the pull no rank sends more than the mean, or two thirds of the largest part, and
 * none receives less, as it may be that nobody defers it. One step more has the relays; ranks that nothing
 * is relayed to get headers alone. */
static double relayed_seconds(const struct sar_agreed *a, const struct sar_owner_cost_terms *terms,
                              const struct sar_owner_estimate *e)
{
    double relays = e->relays * segment_message_bytes(e->relayable, e->segments.n);
    double pull = fmax(e->mean_pull, SAR_RELAY_MIN_DIRECT * e->pull.bytes);
    const struct step steps[] = { { e->peers, pushed_bytes(a, e) },
                                  { e->peers, segment_message_bytes(pull, e->segments.n) },
                                  { e->peers, relays / e->peers + SAR_MSG_HEADER_BYTES } };
    double ends = step_seconds(a, terms, &steps[0], 1) + step_seconds(a, terms, &steps[2], 1);
    if (e->segments.n <= 1)
        return ends + step_seconds(a, terms, &steps[1], 1);
    return ends + step_seconds(a, terms, &steps[0], 2) + step_seconds(a, terms, &steps[1], 2) +
           (e->segments.n - 2) * step_seconds(a, terms, steps, 3);
}

/* Sets the numbers of a relayed pull. Parts are normally distributed; the largest of p is N(p) standard
 * deviations above the mean, N(p) = sar_max_of_normal, and the excess of parts above the mean is 0.4
 * deviations on average. Every second owner defers half a message more than that. Let m messages of a rank be
 * deferred on average; they are few and independent, so that of one of n ranks m + sqrt(2 m ln n) are, and it
 * receives as many in the step of relays. */
static void estimate_relays(const struct sar_agreed *a, const struct sar_owner_cost_terms *terms,
                            const struct sar_wire_layout *layout, struct sar_owner_estimate *e)
{
    const double MEAN_EXCESS = 0.4, ROUNDING = 0.25;
    double nnz = sar_agreed_union_nnz(a, a->machine.ranks) * terms->pull_share;
    if (!terms->may_relay)
        return;
    e->relayable = e->mean_pull;
    if (sar_columns_sliced(&terms->columns))
        e->relayable = values_bytes(layout, nnz);
    double parts = terms->columns.groups, payload = e->mean_pull - SAR_MSG_HEADER_BYTES;
    if (parts > 1 && payload > 0) {
        double deviation = fmax(e->pull.bytes - e->mean_pull, 0) / payload / sar_max_of_normal(parts);
        e->deferred =
            fmin(e->peers * MEAN_EXCESS * deviation, e->peers * (1 - SAR_RELAY_MIN_DIRECT)) + ROUNDING;
    }
    e->relays = e->deferred + sqrt(2 * e->deferred * log(a->machine.ranks)) + 1;
    e->relay_stride = sar_relay_stride(a->machine.ranks, e->deferred);
}

/* Relays the pull of `balanced` where that is cheaper. With one row group all parts are equal. */
static uint64_t relay_limit_of(const struct sar_agreed *a, const struct sar_owner_cost_terms *terms,
                               const struct sar_owner_estimate *e)
{
    bool can = terms->may_relay && terms->columns.groups > 1 && a->machine.ranks >= MIN_RELAY_RANKS &&
               a->machine.ranks <= MAX_RELAY_RANKS,
         forced = a->wire.relay == SAR_RELAY_ON;
    if (!can || a->wire.relay == SAR_RELAY_OFF)
        return 0;
    if (!forced && relayed_seconds(a, terms, e) > RELAY_GAIN * direct_seconds(a, terms, e))
        return 0;
    return (uint64_t)ceil(e->peers * segment_message_bytes(e->relayable, e->segments.n));
}

static double moving_seconds(const struct sar_agreed *a, const struct sar_owner_cost_terms *terms,
                             const struct sar_owner_estimate *e)
{
    return e->relay_limit > 0 ? relayed_seconds(a, terms, e) : direct_seconds(a, terms, e);
}

/* Returns the share of the smaller one of moving and working that is not hidden. In a segment whose largest
 * part is longer than the mean by a share, some ranks wait for messages, others for their own work. */
static double visible_share(const struct sar_owner_estimate *e)
{
    double n = e->segments.n, push = segment_message_bytes(e->mean_push, n),
           pull = segment_message_bytes(e->mean_pull, n);
    double excess = fmax(push > 0 ? largest_bytes(e->mean_push, e->push.bytes, n) / push - 1 : 0,
                         pull > 0 ? pulled_bytes(e) / pull - 1 : 0);
    return fmin(1 / n + VISIBLE_EXCESS * excess, 1);
}

/* Returns the seconds of moving and working. Between nodes the smaller one is hidden but for its visible
 * share; the reduction only if it is done in flight. */
static double seconds_of(const struct sar_agreed *a, const struct sar_owner_cost_terms *terms,
                         const struct sar_owner_estimate *e)
{
    double moving = moving_seconds(a, terms, e);
    double work = e->reduces_in_flight ? e->work : e->work - e->reduce_work;
    double hidden = fmin(moving, work * a->machine.gamma) * (1 - visible_share(e));
    return moving + e->work * a->machine.gamma - (a->topo.nodes > 1 ? hidden : 0);
}

/* A reduction in flight takes one more step of messages, which must take less than the reduction. */
static bool reduces_in_flight(const struct sar_agreed *a, const struct sar_owner_cost_terms *terms,
                              const struct sar_owner_estimate *e)
{
    struct sar_owner_estimate later = *e;
    later.reduces_in_flight = true;
    if (a->topo.nodes == 1 || terms->group_ranks > 1 || e->segments.n == 1 || e->relay_limit > 0)
        return false;
    double reducing = e->reduce_work * a->machine.gamma;
    double step = direct_seconds(a, terms, &later) - direct_seconds(a, terms, e);
    return sar_owner_always_in_flight ||
           (step < reducing && seconds_of(a, terms, &later) < IN_FLIGHT_LOSS * seconds_of(a, terms, e));
}

/* Returns the estimate with so many messages of a part. */
static struct sar_owner_estimate with_segments(const struct sar_agreed *a,
                                               const struct sar_owner_cost_terms *terms,
                                               const struct sar_wire_layout *layout,
                                               const struct sar_owner_estimate *whole, double messages)
{
    struct sar_owner_estimate e = *whole;
    e.segments = segments_of(a, terms, messages);
    e.throttle = throttle_of(a, terms, &e);
    estimate_relays(a, terms, layout, &e);
    e.relay_limit = relay_limit_of(a, terms, &e);
    e.reduces_in_flight = reduces_in_flight(a, terms, &e);
    return e;
}

/* True if segments have fullest ranks or largest parts that all wait for. */
static bool is_unequal(const struct sar_agreed *a, const struct sar_owner_estimate *e)
{
    return sar_agreed_segment_imbalance(a, e->segments.n) > 1 || e->push.bytes > EVEN * e->mean_push ||
           e->pull.bytes > EVEN * e->mean_pull;
}

/* Fewer segments than segment_bytes wants where that is cheaper, as segments are unequal. */
static struct sar_owner_estimate best_segments(const struct sar_agreed *a,
                                               const struct sar_owner_cost_terms *terms,
                                               const struct sar_wire_layout *layout,
                                               const struct sar_owner_estimate *whole, double messages)
{
    struct sar_owner_estimate best = with_segments(a, terms, layout, whole, messages);
    bool unequal = is_unequal(a, &best);
    double fewest = unequal ? seconds_of(a, terms, &best) : 0;
    while (unequal && a->wire.segment_bytes == SAR_U64_AUTO && messages > 1) {
        messages = ceil(messages / 2);
        struct sar_owner_estimate fewer = with_segments(a, terms, layout, whole, messages);
        double seconds = seconds_of(a, terms, &fewer);
        if (seconds < fewest) {
            best = fewer;
            fewest = seconds;
        }
    }
    return best;
}

/* Sets the messages of the push: the largest, and the mean of the rank with most elements. */
static void set_push(const struct sar_agreed *a, const struct sar_owner_cost_terms *terms,
                     const struct sar_owner_cost_terms *max, const struct sar_wire_layout *layout,
                     struct sar_owner_estimate *e)
{
    double nnz = fmin(pushed_nnz(a, max), max->max_slots), mean = fmin(pushed_nnz(a, terms), nnz);
    e->push = sar_agreed_cost_with(a, false, &terms->push_policy, layout, nnz);
    e->mean_push =
        mean == nnz ? e->push.bytes : sar_agreed_cost_with(a, false, &terms->push_policy, layout, mean).bytes;
}

/* Sets the messages of the pull: the largest, and the mean. */
static void set_pull(const struct sar_agreed *a, const struct sar_owner_cost_terms *terms,
                     const struct sar_owner_cost_terms *max, const struct sar_wire_layout *layout,
                     struct sar_owner_estimate *e)
{
    double sums = sar_agreed_union_nnz(a, a->machine.ranks);
    double nnz = fmin(sums * max->pull_share, max->max_slots), mean = fmin(sums * terms->pull_share, nnz);
    e->pull = pull_cost(a, terms, layout, nnz);
    e->mean_pull = mean == nnz ? e->pull.bytes : pull_cost(a, terms, layout, mean).bytes;
}

/* Returns the estimate with this weight of work in the choice of formats. */
static struct sar_owner_estimate estimate_weighted(const struct sar_agreed *a,
                                                   struct sar_owner_cost_terms weighted, double weight)
{
    const struct sar_owner_cost_terms *terms = &weighted;
    weighted.push_policy.work_weight = weighted.pull_policy.work_weight = weight;
    weighted.pull_policy.block = sar_owner_assembles(a, terms) ? 1u << terms->map.grain_shift : 0;
    struct sar_owner_cost_terms max = with_max_shares(a, terms);
    uint64_t slots = terms->map.slots_max;
    struct sar_owner_estimate estimate = { .segments = sar_segments_equal(slots, slots, 1),
                                           .push_policy = weighted.push_policy,
                                           .pull_policy = weighted.pull_policy };
    struct sar_wire_layout layout = sar_agreed_layout(a, (uint64_t)max.max_slots, sar_index_size(slots));
    if (sar_columns_sliced(&terms->columns))
        sar_columns_slice_layout(&terms->columns, sar_columns_max_slice_len(&terms->columns), &layout);
    estimate.peers = ceil(a->machine.ranks / terms->group_ranks) - 1;
    if (a->call.collective != SAR_ALLGATHER)
        set_push(a, terms, &max, &layout, &estimate);
    if (a->call.collective != SAR_REDUCE_SCATTER)
        set_pull(a, terms, &max, &layout, &estimate);
    estimate.reduce_work = sar_owner_reduce_work(a, &max);
    estimate.work = sar_owner_work(a, &max, &estimate);
    estimate.throttle = throttle_of(a, terms, &estimate);
    if (sar_owner_is_contiguous(&terms->map) || slots == 0)
        return estimate;
    double messages =
        ceil(fmax(estimate.push.bytes, estimate.pull.bytes) / segment_bytes(a, terms, &estimate));
    return best_segments(a, terms, &layout, &estimate, messages);
}

/* In a pipeline between nodes, the longer one of moving and working hides most of the other. Each counts in
 * the choice of formats as much as it takes, or more, unless that makes the call longer. */
struct sar_owner_estimate sar_owner_estimate(const struct sar_agreed *a,
                                             const struct sar_owner_cost_terms *terms)
{
    struct sar_owner_estimate best = estimate_weighted(a, *terms, 1);
    if (a->topo.nodes == 1 || best.segments.n == 1)
        return best;
    double moving = moving_seconds(a, terms, &best), working = best.work * a->machine.gamma;
    if (!(working > 0 && moving > 0))
        return best;
    double fewest = seconds_of(a, terms, &best),
           fair = fmin(fmax(working / moving, 1 / MAX_WEIGHT), MAX_WEIGHT);
    double weights[] = { fair, fair < 1 ? 1 / STRONG_WEIGHT : STRONG_WEIGHT };
    for (int i = 0; i < 2; i++) {
        struct sar_owner_estimate weighted = estimate_weighted(a, *terms, weights[i]);
        double seconds = seconds_of(a, terms, &weighted);
        if (seconds < fewest || (i == 0 && seconds == fewest)) {
            best = weighted;
            fewest = seconds;
        }
    }
    return best;
}

double sar_owner_seconds(const struct sar_agreed *a, const struct sar_owner_cost_terms *terms)
{
    struct sar_owner_estimate estimate = sar_owner_estimate(a, terms);
    return seconds_of(a, terms, &estimate);
}
