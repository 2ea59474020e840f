/* SPDX-License-Identifier: BSD-3-Clause */
/* What schemes of owners cost, and how long their segments are. */

#include <math.h>

#include "scheme/owner.h"

enum { MOST_SEGMENTS = 1024 };

/* Slots of a segment, so that a message between two ranks has about agreed->segment bytes. Whole lines, and
 * whole words of a bitmap. */
static uint64_t width_of(const struct sar_agreed *a, const struct sar_map *map, double push_bytes,
                         double pull_bytes)
{
    double messages = ceil(fmax(push_bytes, pull_bytes) / (double)a->segment);
    double slots = ceil((double)map->span / fmin(fmax(messages, 1), MOST_SEGMENTS));
    uint64_t unit = map->grain_shift > 6 ? (uint64_t)1 << map->grain_shift : 64;
    return ((uint64_t)fmax(slots, 1) + unit - 1) / unit * unit;
}

static bool contiguous(const struct sar_map *map)
{
    return map->kind == SAR_PARTITION_RANGE;
}

struct sar_owner_terms sar_owner_terms(const struct sar_agreed *a, const struct sar_map *map)
{
    double ranks = a->machine.ranks;
    struct sar_owner_terms terms = { 1 / ranks, 1 / ranks, NULL, NULL, map, 1 };
    if (contiguous(map)) {
        terms.push_share = sar_contiguous_share(a);
        terms.pull_share = sar_contiguous_union_share(a, ranks);
    }
    return terms;
}

/* Of the fullest rank, or of several together. */
static double pushed(const struct sar_agreed *a, const struct sar_owner_terms *terms)
{
    return (terms->together > 1 ? sar_agreed_union(a, terms->together) : a->nnz_max) * terms->push_share;
}

struct sar_owner_forecast sar_owner_forecast(const struct sar_agreed *a, const struct sar_owner_terms *terms)
{
    double sums = sar_agreed_union(a, a->machine.ranks);
    struct sar_owner_forecast f = { .width = terms->map->span, .segments = 1 };
    struct sar_layout layout = sar_agreed_layout(a, f.width, sar_index_size(f.width));
    f.push = sar_agreed_cost_in(a, false, terms->push_wire, &layout, fmin(pushed(a, terms), (double)f.width));
    f.pull = sar_agreed_cost_in(a, true, terms->pull_wire, &layout,
                                fmin(sums * terms->pull_share, (double)f.width));
    if (contiguous(terms->map) || terms->map->span == 0)
        return f;
    f.width = width_of(a, terms->map, f.push.bytes, f.pull.bytes);
    f.segments = (double)((terms->map->span + f.width - 1) / f.width);
    return f;
}

/* The first step pushes, the last one pulls, those between do both. */
double sar_owner_pipelined(const struct sar_agreed *a, const struct sar_owner_forecast *f, double peers,
                           double work,
                           double (*exchange)(const struct sar_agreed *, double messages, double bytes))
{
    double push = peers * f->push.bytes / f->segments, pull = peers * f->pull.bytes / f->segments;
    double moving = exchange(a, peers, push) + (f->segments - 1) * exchange(a, 2 * peers, push + pull) +
                    exchange(a, peers, pull);
    double working = work * a->machine.gamma, hidden = fmin(moving, working) * (1 - 1 / f->segments);
    return moving + working - (a->nodes > 1 ? hidden : 0);
}

double sar_owner_seconds(const struct sar_agreed *a, const struct sar_owner_terms *terms)
{
    struct sar_owner_forecast f = sar_owner_forecast(a, terms);
    double ranks = a->machine.ranks, sums = sar_agreed_union(a, ranks);
    double coding = (ranks - 1) * f.push.work + ranks / 2 * f.pull.work; /* the pull is written once */
    double work = a->nnz_max + a->nnz_mean * ranks * terms->push_share + sums + coding;
    return sar_owner_pipelined(a, &f, ranks - 1, work, sar_agreed_exchange);
}

const char *sar_owner_obstacle(const struct sar_map *map)
{
    return !contiguous(map) && map->span > UINT32_MAX ? "parts of more than 2^32 slots" : NULL;
}
