/* SPDX-License-Identifier: BSD-3-Clause */
/* What the ranks of one node share: a place to meet, and shelves on which each puts what the others read. */

#ifndef SAR_NET_WINDOW_H
#define SAR_NET_WINDOW_H

#include <stdatomic.h>

#include "net/net.h"
#include "net/segment.h"

/** SAR_CARD: most bytes that a rank tells the others when they meet. SAR_SPARES: outcomes that nobody may
 * need any more, kept for later calls. Of the shelves the last is for what `two_level` begins with, the
 * others for `shared`, with which it ends. */
enum { SAR_CARD = 248, SAR_SHELVES = 4, SAR_SPARES = 2 };

/** One rank's memory of one purpose, and how the others see theirs. */
struct sar_shelf {
    struct sar_segment own;
    struct sar_segment_name name;    /**< of own */
    struct sar_segment *views;       /**< of each other rank, mapped when first looked at */
    struct sar_segment_name *viewed; /**< what is mapped there */
    uint64_t told;                   /**< the meeting at which others hear of it, to map it; or 0 */
};

struct sar_storage;

/** Calls on one communicator use it one after the other. Ranks are those of the node, in their order. */
struct sar_window {
    int rank, ranks;
    struct sar_shelf desks; /**< with the cards */
    struct sar_shelf shelves[SAR_SHELVES];
    unsigned turn;        /**< of two shelves, the one that the next call may write to */
    uint64_t meeting;     /**< number of the last one that this rank went to */
    bool telling;         /**< of a shelf that others still have to map */
    bool lacking;         /**< in the last call this rank could not share memory, of which not all heard */
    enum sar_status lack; /**< why a rank heard of last cannot share memory, or SAR_OK */
    const char *what;     /**< it is for, in words */
    struct sar_stall stall;
    int seen;   /**< ranks found to be there, in order */
    bool far;   /**< some of them are: what all are to read had better be in memory than in one's caches */
    bool timed; /**< lines can be, to find that */
    uint64_t timings; /**< so far */
    uint64_t waits;   /**< calls in which all ranks waited */
    struct sar_storage *spares[SAR_SPARES];
};

/** Open a window between the ranks of each node of net. Collective: *window is NULL on all ranks where one of
 * them cannot map the memory of another one on its node. */
enum sar_status sar_window_open(const struct sar_net *net, struct sar_window **window);

/** Local; nobody looks into this rank's shelves any more. NULL does no harm. */
void sar_window_close(struct sar_window *window);

/** Go to the next meeting with a card. All ranks go to the same ones; what they wrote before is seen by who
 * has met them.
 * @param what  it is for, in words that stay */
void sar_window_arrive(struct sar_window *window, const char *what, const void *card, size_t bytes);

/** Whether all ranks have come to the meeting that this one went to; true where there is no window. */
bool sar_window_met(const struct sar_net *net, bool block);

/** A line of cache of a rank's own on its desk, to be timed: lines of net/line.h. */
atomic_uint_least64_t *sar_window_line(const void *window, int rank);

/** The card of a rank, until this one goes to the next meeting. */
const void *sar_window_card(const struct sar_window *window, int rank);

/** Let a shelf of this rank have so many bytes. What was there may be lost. */
enum sar_status sar_shelf_room(struct sar_shelf *shelf, size_t bytes);

/** The same where that is still needed: *before is what the shelf was until now, to be unmapped, or nothing
 * where it is the same as before. */
enum sar_status sar_shelf_replace(struct sar_shelf *shelf, size_t bytes, struct sar_segment *before);

/** Whether others still have to map a shelf of this rank, once they hear of it at the next meeting. */
bool sar_shelf_tell(struct sar_window *window, struct sar_shelf *shelf);

/** At a meeting to which all have come who fare well: of what was told at the one before, which they have
 * mapped since, the file descriptors are given back. */
void sar_window_settle(struct sar_window *window);

/** Drop the shelves of this rank that others may not have mapped, since they do without. */
void sar_window_drop(struct sar_window *window);

/** What another rank has put on a shelf of that name. */
enum sar_status sar_shelf_view(struct sar_shelf *shelf, int rank, const struct sar_segment_name *name,
                               void **memory);

#endif
