/* SPDX-License-Identifier: BSD-3-Clause */
/* Terms of the price of an owner-based scheme: the partition map, and the slices of rows. */

#include <math.h>

#include "scheme/engine/owner_internal.h"

struct sar_owner_cost_terms sar_owner_cost_terms(const struct sar_agreed *a, struct sar_partition_map map)
{
    double ranks = a->machine.ranks;
    struct sar_owner_cost_terms terms = { .push_share = 1 / ranks,
                                          .pull_share = 1 / ranks,
                                          .map = map,
                                          .columns = sar_columns_make(&a->desc, a->machine.ranks, 1, 1),
                                          .max_slots = (double)map.slots_max,
                                          .group_ranks = 1 };
    if (sar_owner_is_contiguous(&map)) {
        double even = sar_range_parts_even_share(&map);
        terms.push_share = fmax(sar_range_parts_max_share(a), even);
        terms.pull_share = fmax(sar_range_parts_max_union_share(a, ranks), even);
    }
    return terms;
}

const char *sar_owner_unsupported_reason(const struct sar_agreed *a, struct sar_partition_map map)
{
    const char *reason = sar_agreed_sparse_unsupported(a);
    bool fits = sar_owner_is_contiguous(&map) || map.slots_max <= UINT32_MAX;
    return reason == NULL && !fits ? "parts of more than 2^32 slots" : reason;
}

/* Returns the terms with at most this many slices of a row. */
static struct sar_owner_cost_terms sliced_terms(const struct sar_agreed *a, int group_ranks, uint64_t columns)
{
    bool even = a->topo.nodes * group_ranks == a->machine.ranks || group_ranks == 1;
    struct sar_columns sliced =
        sar_columns_make(&a->desc, a->machine.ranks, even ? group_ranks : 1, even ? columns : 1);
    struct sar_owner_cost_terms terms =
        sar_owner_cost_terms(a, sar_agreed_partition_map_of(a, (uint32_t)sliced.groups));
    terms.columns = sliced;
    terms.push_share = terms.pull_share = 1.0 / sliced.groups;
    terms.group_ranks = group_ranks;
    terms.may_relay = group_ranks <= 1;
    return terms;
}

static double seconds_or_never(const struct sar_agreed *a, const struct sar_owner_cost_terms *terms)
{
    return sar_owner_unsupported_reason(a, terms->map) == NULL ? sar_owner_seconds(a, terms) : INFINITY;
}

/* Fewer slices than asked for, where the parts of so few row groups would have too many slots. */
static struct sar_owner_cost_terms forced_terms(const struct sar_agreed *a, int group_ranks, uint64_t columns)
{
    struct sar_owner_cost_terms terms = sliced_terms(a, group_ranks, columns);
    for (; columns > 1 && sar_owner_unsupported_reason(a, terms.map) != NULL; columns /= 2)
        terms = sliced_terms(a, group_ranks, columns / 2);
    return terms;
}

static bool is_power_of_two(uint64_t n)
{
    return (n & (n - 1)) == 0;
}

/* Returns the next number of slices to price: with a divisor of the ranks all row groups have equally many; a
 * power of two, or three times one, is near any number. After `most` comes a greater one. */
static uint64_t next_columns(uint64_t ranks, uint64_t most, uint64_t columns)
{
    bool priced;
    do {
        columns++;
        priced = ranks % columns == 0 || is_power_of_two(columns % 3 == 0 ? columns / 3 : columns);
    } while (columns < most && !priced);
    return columns;
}

struct sar_owner_cost_terms sar_owner_columns_terms(const struct sar_agreed *a, int group_ranks)
{
    uint64_t ranks = (uint64_t)a->machine.ranks, forced = a->partition.columns;
    struct sar_owner_cost_terms best = sar_owner_cost_terms(a, sar_agreed_partition_map(a));
    best.group_ranks = group_ranks;
    best.may_relay = group_ranks <= 1 && !sar_owner_is_contiguous(&best.map);
    if (sar_owner_is_contiguous(&best.map) || a->desc.row_len == 1 || ranks == 1)
        return best;
    if (forced != SAR_U64_AUTO)
        return forced_terms(a, group_ranks, forced);
    struct sar_columns all = sar_columns_make(&a->desc, a->machine.ranks, 1, ranks);
    uint64_t most = (uint64_t)sar_columns_max_slices(&all);
    double fewest = seconds_or_never(a, &best);
    int groups = a->machine.ranks;
    for (uint64_t columns = 2; columns <= most; columns = next_columns(ranks, most, columns)) {
        struct sar_owner_cost_terms terms = sliced_terms(a, group_ranks, columns);
        if (terms.columns.groups == groups)
            continue;
        groups = terms.columns.groups;
        double seconds = seconds_or_never(a, &terms);
        if (seconds < fewest) {
            fewest = seconds;
            best = terms;
        }
    }
    return best;
}
