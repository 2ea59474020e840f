/* SPDX-License-Identifier: BSD-3-Clause */
/* Relayed pull: which ranks hand on the sums of owners whose parts are large. In a direct pull each owner
 * sends its message to all other ranks, so that all wait for the owner of the longest message. In a
 * relayed pull an owner sends its message itself until it has sent a limit of bytes. The other ranks get a
 * deferral, a header with the size of the message. In the next step, ranks that have the message relay it
 * to them:
 *
 *     ranks 7, limit 6 messages of the mean size; the message of rank 2 is 1.4 times as long
 *     pull     rank 2 -> 1, 3, 4, 5     deferrals to 6 and 0
 *     relays   rank 3 -> 6, rank 4 -> 0
 *
 * All ranks know the sizes of all messages after the first step, from messages and deferrals. So all of
 * them compute the same routes. At most one message is relayed from one rank to another in a step.
 *
 * An owner defers consecutive ranks: its window. The windows of consecutive owners follow each other
 * around the ring of ranks, so that all ranks wait for about equally many relayed messages.
 *
 * With sliced rows only messages of values alone are relayed; see columns.h. */

#ifndef SAR_SCHEME_ENGINE_RELAY_H
#define SAR_SCHEME_ENGINE_RELAY_H

#include "scheme/engine/columns.h"

/** Unit of strides: 1 / SAR_RELAY_STRIDE_UNIT of a rank. */
enum { SAR_RELAY_STRIDE_UNIT = 16 };

/** Share of its messages that an owner sends itself, at least. */
#define SAR_RELAY_MIN_DIRECT (2. / 3)

/** Input of the routes. Equal on all ranks. */
struct sar_relay_layout {
    const struct sar_columns *columns; /**< ownership, whose ranks exchange the messages */
    unsigned stride;                   /**< from a window's begin to the next owner's; by sar_relay_stride */
    int *window;                       /**< by owner: ranks of its window; 0: it defers none */
};

/** Routes of a rank in one step. */
struct sar_relay_routes {
    int *incoming; /**< by sender: the owner whose message it relays to this rank; -1: none */
    int *outgoing; /**< by receiver: the owner whose message this rank relays to it; -1: none */
    unsigned next; /**< rank that relays the next message, if it can. Equal on all ranks */
};

/** Returns the stride for windows of this many ranks: from 1 to a quarter of the ranks, so that there is a
 * relay for each message. */
unsigned sar_relay_stride(int ranks, double window);

/** Returns true if an owner sends its message to a receiver by a relay. */
bool sar_relay_is_deferred(const struct sar_relay_layout *layout, int owner, int receiver);

/** Sets the window of an owner, as long as its credit demands. It sends to two thirds of the receivers at
 * least, so that there is a relay for each of the others.
 * @param bytes   of its message
 * @param credit  bytes that it may send
 * @return the messages that it sends itself */
int sar_relay_set_window(const struct sar_relay_layout *layout, int owner, uint64_t bytes, uint64_t credit);

/** Zeroed scratch memory of sar_relay_route. */
struct sar_relay_scratch {
    unsigned *load;      /**< by rank: messages that it relays */
    unsigned char *used; /**< sar_relay_pair_bytes: a bit for each pair of relay and receiver */
};

static inline size_t sar_relay_pair_bytes(int n_ranks)
{
    return ((size_t)n_ranks * (size_t)n_ranks + 7) / 8;
}

/** Computes the routes of a rank. All ranks relay about equally many messages.
 * @return false if a message has no relay, which sar_relay_set_window prevents */
bool sar_relay_route(const struct sar_relay_layout *layout, int rank, struct sar_relay_scratch *scratch,
                     struct sar_relay_routes *routes);

#endif
