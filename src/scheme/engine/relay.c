/* SPDX-License-Identifier: BSD-3-Clause */
/* Routes of a relayed pull. Relays take turns, so that most messages find theirs in a few tries. All
 * routes of a step take at most n^2 / 3 searches and n^2 / 8 bytes for n ranks.
 *
 * A message of whole rows has a relay. Let its receiver be k, and let h of the n ranks have it. No relay
 * sends to k twice in a step, so that those which relay other messages to k are not available. These are
 * fewer than the owners that defer k. As windows have at most n / 3 ranks, and their stride is from 1 to n
 * / 4, these are at most 7 n / 12, and h is 2 n / 3. With sliced rows fewer ranks have a message that may
 * be relayed, and fewer owners defer one to k; tests/unit/scheme/relay tries all numbers of columns. */

#include "scheme/engine/relay.h"

#include <limits.h>
#include <math.h>

unsigned sar_relay_stride(int ranks, double window)
{
    double stride = fmax(fmin(window, ranks / 4.0), 1);
    return (unsigned)(stride * SAR_RELAY_STRIDE_UNIT);
}

/* Returns true if the owner's message to a receiver may be relayed. */
static bool is_relayable(const struct sar_columns *columns, int owner, int receiver)
{
    int group = sar_columns_group(columns, owner);
    return receiver != owner &&
           (!sar_columns_sliced(columns) || sar_columns_group(columns, receiver) == group ||
            sar_columns_list_sender(columns, group, receiver) != owner);
}

/* Returns the rank at a position of an owner's window. */
static int window_rank(const struct sar_relay_layout *layout, int owner, int position)
{
    uint64_t begin = (uint64_t)layout->stride * (uint64_t)owner / SAR_RELAY_STRIDE_UNIT;
    return (int)((begin + (uint64_t)position) % (uint64_t)layout->columns->ranks);
}

bool sar_relay_is_deferred(const struct sar_relay_layout *layout, int owner, int receiver)
{
    int position = receiver - window_rank(layout, owner, 0);
    position += position < 0 ? layout->columns->ranks : 0;
    return position < layout->window[owner] && is_relayable(layout->columns, owner, receiver);
}

/* Returns the receivers that get an owner's message with its index list: in each group of as many consecutive
 * ranks as own slices there is one, except in the owner's group. */
static int count_lists(const struct sar_columns *columns, int owner)
{
    int group = sar_columns_group(columns, owner), first = sar_columns_first_owner(columns, group),
        slices = sar_columns_first_owner(columns, group + 1) - first, position = owner - first;
    return sar_columns_sliced(columns) ? (columns->ranks - position + slices - 1) / slices - 1 : 0;
}

int sar_relay_set_window(const struct sar_relay_layout *layout, int owner, uint64_t bytes, uint64_t credit)
{
    int lists = count_lists(layout->columns, owner), most = layout->columns->ranks - 1 - lists,
        fewest = most - most / 3, direct = most, window = 0;
    uint64_t affordable = bytes > 0 ? credit / bytes : UINT64_MAX;
    if (affordable < (uint64_t)(most + lists))
        direct = affordable < (uint64_t)(fewest + lists) ? fewest : (int)affordable - lists;
    for (int deferred = 0; deferred < most - direct; window++)
        deferred += is_relayable(layout->columns, owner, window_rank(layout, owner, window));
    layout->window[owner] = window;
    return direct + lists;
}

/* Returns true if a rank has received the owner's message directly, and may relay it. */
static bool has_message(const struct sar_relay_layout *layout, int owner, int rank)
{
    return is_relayable(layout->columns, owner, rank) && !sar_relay_is_deferred(layout, owner, rank);
}

/* One message to route, and what the routes before have taken. */
struct search {
    const struct sar_relay_layout *layout;
    struct sar_relay_scratch *scratch;
    unsigned *next, total; /* messages relayed so far */
    int owner, receiver;
};

static bool is_free(const struct search *s, int rank)
{
    size_t pair = (size_t)rank * (size_t)s->layout->columns->ranks + (size_t)s->receiver;
    return rank != s->receiver && has_message(s->layout, s->owner, rank) &&
           (s->scratch->used[pair / 8] >> pair % 8 & 1) == 0;
}

/* Returns the next rank in turn that is free and relays at most `load` messages so far, or -1. */
static int find_relay(struct search *s, unsigned load)
{
    unsigned ranks = (unsigned)s->layout->columns->ranks;
    for (unsigned tries = 0; tries < ranks; tries++) {
        int rank = (int)*s->next;
        *s->next = *s->next + 1 < ranks ? *s->next + 1 : 0;
        if (s->scratch->load[rank] <= load && is_free(s, rank))
            return rank;
    }
    return -1;
}

/* Takes a relay with no more messages than the mean, if there is one. */
static int take_relay(struct search *s)
{
    unsigned ranks = (unsigned)s->layout->columns->ranks;
    int rank = find_relay(s, s->total / ranks);
    if (rank < 0)
        rank = find_relay(s, UINT_MAX);
    if (rank < 0)
        return rank;
    size_t pair = (size_t)rank * ranks + (size_t)s->receiver;
    s->scratch->used[pair / 8] |= (unsigned char)(1u << pair % 8);
    s->scratch->load[rank]++;
    s->total++;
    return rank;
}

bool sar_relay_route(const struct sar_relay_layout *layout, int rank, struct sar_relay_scratch *scratch,
                     struct sar_relay_routes *routes)
{
    int ranks = layout->columns->ranks;
    struct search s = { layout, scratch, &routes->next, 0, 0, 0 };
    for (int r = 0; r < ranks; r++)
        routes->incoming[r] = routes->outgoing[r] = -1;
    for (s.owner = 0; s.owner < ranks; s.owner++) {
        for (int position = 0; position < layout->window[s.owner]; position++) {
            s.receiver = window_rank(layout, s.owner, position);
            if (!is_relayable(layout->columns, s.owner, s.receiver))
                continue;
            int relay = take_relay(&s);
            if (relay < 0)
                return false;
            if (s.receiver == rank)
                routes->incoming[relay] = s.owner;
            if (relay == rank)
                routes->outgoing[s.receiver] = s.owner;
        }
    }
    return true;
}
