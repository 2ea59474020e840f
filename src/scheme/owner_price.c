/* SPDX-License-Identifier: BSD-3-Clause */
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

struct forecast {
    struct sar_cost push, pull; /* of one message of a whole part */
    uint64_t width;
    double segments;
};

static struct forecast forecast(const struct sar_agreed *a, const struct sar_owner_terms *terms)
{
    double ranks = a->machine.ranks, sums = sar_agreed_union(a, ranks);
    struct forecast f = { .width = terms->map->span, .segments = 1 };
    struct sar_layout layout = sar_agreed_layout(a, f.width, sar_index_size(f.width));
    f.push = sar_agreed_cost_in(a, false, terms->push_wire, &layout,
                                fmin(a->nnz_max * terms->push_share, (double)f.width));
    f.pull = sar_agreed_cost_in(a, true, terms->pull_wire, &layout,
                                fmin(sums * terms->pull_share, (double)f.width));
    if (contiguous(terms->map) || terms->map->span == 0)
        return f;
    f.width = width_of(a, terms->map, f.push.bytes, f.pull.bytes);
    f.segments = (double)((terms->map->span + f.width - 1) / f.width);
    return f;
}

/* The first step pushes, the last one pulls, those between do both. */
static double moving_seconds(const struct sar_agreed *a, const struct forecast *f)
{
    double peers = a->machine.ranks - 1, push = peers * f->push.bytes / f->segments,
           pull = peers * f->pull.bytes / f->segments;
    return sar_agreed_exchange(a, peers, push) +
           (f->segments - 1) * sar_agreed_exchange(a, 2 * peers, push + pull) +
           sar_agreed_exchange(a, peers, pull);
}

double sar_owner_seconds(const struct sar_agreed *a, const struct sar_owner_terms *terms)
{
    struct forecast f = forecast(a, terms);
    double ranks = a->machine.ranks, sums = sar_agreed_union(a, ranks);
    double coding = (ranks - 1) * f.push.work + ranks / 2 * f.pull.work; /* the pull is written once */
    double work = a->nnz_max + a->nnz_mean * ranks * terms->push_share + sums + coding;
    double moving = moving_seconds(a, &f), working = work * a->machine.gamma;
    double hidden = fmin(moving, working) * (1 - 1 / f.segments);
    return moving + working - (a->nodes > 1 ? hidden : 0);
}

void sar_owner_cut(const struct sar_agreed *a, const struct sar_owner_terms *terms, uint64_t *width,
                   uint32_t *segments)
{
    struct forecast f = forecast(a, terms);
    *width = f.width;
    *segments = (uint32_t)f.segments;
}
