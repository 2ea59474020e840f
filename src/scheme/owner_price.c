/* SPDX-License-Identifier: BSD-3-Clause */
/* What schemes of owners cost, and how long their segments are. */

#include <math.h>

#include "base/config.h"
#include "net/exchange.h"
#include "scheme/owner.h"
#include "wire/message.h"

/* Bytes of a message. Shorter ones cost more than they let hide; longer ones fill memory and caches, but
 * messages may have as many as take twice their latencies. */
enum { SHORTEST = 1 << 16, LONGEST = 1 << 18, MOST_SEGMENTS = 1024 };

enum { MANY_LONG = 16 /* messages at a time that are as good as all, in links with queues for them */ };

/* Share of moving and working below which shorter messages do not pay: on two nodes that were one in truth,
 * at 7 %, calls took a tenth longer. */
static const double LEAST_MOVING = 0.25;

static bool contiguous(const struct sar_map *map)
{
    return map->kind == SAR_PARTITION_RANGE;
}

struct sar_owner_terms sar_owner_terms(const struct sar_agreed *a, const struct sar_map *map)
{
    double ranks = a->machine.ranks;
    struct sar_owner_terms terms = { 1 / ranks, 1 / ranks, NULL, NULL, map, (double)map->span, 1 };
    if (contiguous(map)) {
        terms.push_share = sar_contiguous_share(a);
        terms.pull_share = sar_contiguous_union_share(a, ranks);
    }
    return terms;
}

/* With the shares of the fullest part where those of the mean one were given. What a rank receives in the
 * push is the sum of what all have for its part, of which many may have the same elements; in the pull all
 * receive what the fullest part has once. */
static struct sar_owner_terms fullest(const struct sar_agreed *a, const struct sar_owner_terms *terms)
{
    struct sar_owner_terms full = *terms;
    double ranks = a->machine.ranks;
    if (contiguous(terms->map))
        return full;
    full.push_share *= terms->together > 1
                           ? sar_agreed_fullest(a, terms->together, ceil(ranks / terms->together))
                           : sar_agreed_fullest_push(a);
    full.pull_share *= sar_agreed_fullest(a, ranks, 1);
    return full;
}

/* Of the fullest rank, or of several together. */
static double pushed(const struct sar_agreed *a, const struct sar_owner_terms *terms)
{
    return (terms->together > 1 ? sar_agreed_union(a, terms->together) : a->nnz_max) * terms->push_share;
}

/* Ranks that are together have no messages within their node. */
static double exchange(const struct sar_agreed *a, const struct sar_owner_terms *terms, double messages,
                       double bytes)
{
    return terms->together > 1 ? sar_agreed_far_exchange(a, messages, bytes)
                               : sar_agreed_exchange(a, messages, bytes);
}

/* A rank reads its own elements, adds up what it owns, and puts the outcome together, or of it a share for
 * its node, whose elements it has added up before. The pull is written once. */
static double work_of(const struct sar_agreed *a, const struct sar_owner_terms *terms,
                      const struct sar_owner_forecast *f)
{
    double ranks = a->machine.ranks, parts = f->peers + 1, sums = sar_agreed_union(a, ranks);
    double coding = f->peers * f->push.work + parts / 2 * f->pull.work;
    double read = a->nnz_max + a->nnz_mean * ranks * terms->push_share;
    if (terms->together > 1)
        return read + parts * (sar_agreed_union(a, terms->together) + sums) * terms->push_share + coding;
    return read + sums + coding;
}

/* Bytes of a message from which to work in segments. With t of them 1 / t of what can hide, the lesser of
 * moving and working, does not, and t times a segment's messages are handled one after the other:
 * h / t + t m is least where t is sqrt(h / m). Within a node nothing hides. Each segment has work of its own
 * besides, which hides behind messages only where there are enough of them. */
static double segment_bytes(const struct sar_agreed *a, const struct sar_owner_terms *terms,
                            const struct sar_owner_forecast *f)
{
    if (a->segment != SAR_WHOLE_AUTO)
        return (double)a->segment;
    double longer = fmax(f->push.bytes, f->pull.bytes), both = f->push.bytes + f->pull.bytes;
    double moving = exchange(a, terms, 2 * f->peers, f->peers * both), working = f->work * a->machine.gamma;
    double handling = exchange(a, terms, 2 * f->peers, 0), hidden = fmin(moving, working);
    double longest = moving > 0 ? fmax(LONGEST, 2 * longer * handling / moving) : LONGEST;
    if (a->nodes == 1 || hidden == 0 || moving < LEAST_MOVING * (moving + working))
        return longest;
    return fmin(fmax(longer * sqrt(handling / hidden), SHORTEST), longest);
}

/* Slots of a segment: whole lines, and whole words of a bitmap. */
static uint64_t width_of(const struct sar_agreed *a, const struct sar_owner_terms *terms,
                         const struct sar_owner_forecast *f)
{
    const struct sar_map *map = terms->map;
    double messages = ceil(fmax(f->push.bytes, f->pull.bytes) / segment_bytes(a, terms, f));
    double slots = ceil((double)map->span / fmin(fmax(messages, 1), MOST_SEGMENTS));
    uint64_t unit = map->grain_shift > 6 ? (uint64_t)1 << map->grain_shift : 64;
    return ((uint64_t)fmax(slots, 1) + unit - 1) / unit * unit;
}

/* Long messages at a time. A rank starts none and takes none while it puts a segment together, the longest
 * that it works without a look. What is under way then should be as many as the link can move meanwhile. */
static int throttle_of(const struct sar_agreed *a, const struct sar_owner_terms *terms,
                       const struct sar_owner_forecast *f)
{
    double ranks = a->machine.ranks, parts = f->peers + 1;
    if (a->throttle != SAR_WHOLE_AUTO)
        return (int)a->throttle;
    double away = parts * sar_agreed_union(a, ranks) * terms->pull_share * a->machine.gamma;
    double message = (f->push.bytes + f->pull.bytes) / 2 * a->machine.beta;
    if (f->segments <= 1 || away <= SAR_FEW_LONG * message)
        return SAR_FEW_LONG;
    return (int)ceil(fmin(away / message, MANY_LONG));
}

struct sar_owner_forecast sar_owner_forecast(const struct sar_agreed *a, const struct sar_owner_terms *terms)
{
    struct sar_owner_terms full = fullest(a, terms);
    double sums = sar_agreed_union(a, a->machine.ranks);
    struct sar_owner_forecast f = { .width = terms->map->span, .segments = 1 };
    struct sar_layout layout = sar_agreed_layout(a, (uint64_t)full.span, sar_index_size(f.width));
    f.peers = ceil(a->machine.ranks / terms->together) - 1;
    f.push = sar_agreed_cost_in(a, false, terms->push_wire, &layout, fmin(pushed(a, &full), full.span));
    f.pull = sar_agreed_cost_in(a, true, terms->pull_wire, &layout, fmin(sums * full.pull_share, full.span));
    f.work = work_of(a, &full, &f);
    f.throttle = throttle_of(a, terms, &f);
    if (contiguous(terms->map) || terms->map->span == 0)
        return f;
    f.width = width_of(a, terms, &f);
    f.segments = (double)((terms->map->span + f.width - 1) / f.width);
    f.throttle = throttle_of(a, terms, &f);
    return f;
}

/* Bytes of one segment of it, which has a header of its own. */
static double segment_of(const struct sar_cost *message, double segments)
{
    return SAR_HEADER_BYTES + (message->bytes - SAR_HEADER_BYTES) / segments;
}

/* The first step pushes, the last one pulls, those between do both. */
double sar_owner_seconds(const struct sar_agreed *a, const struct sar_owner_terms *terms)
{
    struct sar_owner_forecast f = sar_owner_forecast(a, terms);
    double push = f.peers * segment_of(&f.push, f.segments), pull = f.peers * segment_of(&f.pull, f.segments);
    double moving = exchange(a, terms, f.peers, push) +
                    (f.segments - 1) * exchange(a, terms, 2 * f.peers, push + pull) +
                    exchange(a, terms, f.peers, pull);
    double working = f.work * a->machine.gamma, hidden = fmin(moving, working) * (1 - 1 / f.segments);
    return moving + working - (a->nodes > 1 ? hidden : 0);
}

const char *sar_owner_obstacle(const struct sar_map *map)
{
    return !contiguous(map) && map->span > UINT32_MAX ? "parts of more than 2^32 slots" : NULL;
}
