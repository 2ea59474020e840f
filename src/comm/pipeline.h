/* SPDX-License-Identifier: BSD-3-Clause */
/* Pipelined broadcast of a message in pieces, over the trees of bcast_tree.h. A rank sends a piece on to
 * its children as soon as it has arrived, and hands it to its user meanwhile. All ranks know the number of
 * pieces, so no content of a message decides how many messages a rank waits for. */

#ifndef SAR_COMM_PIPELINE_H
#define SAR_COMM_PIPELINE_H

#include <stdbool.h>

#include "base/arena.h"
#include "comm/bcast_tree.h"
#include "comm/watchdog.h"

/** Most pieces that a rank has in memory; those of a tree that it sends to a child at a time, at most;
 * requests of a piece. */
enum { SAR_PIPELINE_SLOTS = 64, SAR_PIPELINE_WINDOW = 32, SAR_PIPELINE_REQUESTS = 1 + SAR_BCAST_CHILDREN };

/** Memory of a piece. */
struct sar_pipeline_slot {
    unsigned char *memory; /**< piece_bytes, aligned to SAR_ALIGNMENT */
    uint64_t bytes;        /**< of the piece, as sent or as received; 0: it was not received */
    int sends;             /**< sends in flight */
    bool arrived;          /**< the piece is in memory */
    bool released;         /**< the user of the piece is done */
};

/** Pieces of a tree on their way to a child. */
struct sar_pipeline_child {
    uint64_t next; /**< first piece that has not been sent to it */
    int sending;   /**< sends in flight */
};

/** How a message is broadcast. Equal on all ranks. */
struct sar_pipeline_plan {
    int root, trees, window; /**< window: pieces of a tree that a rank sends to a child at a time */
    uint64_t piece_bytes;    /**< most bytes of a piece */
    uint64_t pieces;         /**< of all; piece i goes over tree i % trees */
};

/** The broadcast of one call. Only pipeline.c writes it. */
struct sar_pipeline {
    const struct sar_comm *comm;
    struct sar_pipeline_plan plan;
    unsigned char *memory;
    uint64_t memory_bytes;
    int tag, depth, window; /**< depth: slots of a tree; window: the plan's, at most depth */
    struct sar_bcast_links links[SAR_BCAST_TREES_MAX];
    uint64_t posted[SAR_BCAST_TREES_MAX]; /**< first piece of a tree that has no slot yet */
    struct sar_pipeline_child children[SAR_BCAST_TREES_MAX][SAR_BCAST_CHILDREN];
    uint64_t taken;                                     /**< pieces that the user has released */
    struct sar_pipeline_slot slots[SAR_PIPELINE_SLOTS]; /**< tree by tree */
    MPI_Request requests[SAR_PIPELINE_SLOTS * SAR_PIPELINE_REQUESTS];
    int active;             /**< requests in flight */
    enum sar_status status; /**< first failure of MPI, or SAR_OK */
    struct sar_wait_timer timer;
    uint64_t bytes_sent, bytes_received, messages_sent;
};

/** Allocates the memory of a broadcast. Local.
 * @param bytes  of all slots together; two slots a tree at least, of the plan that the broadcast begins
 * with */
enum sar_status sar_pipeline_open(const struct sar_comm *comm, uint64_t bytes, struct sar_arena *arena,
                                  struct sar_pipeline *p);

/** Begins the broadcast: posts receives on all ranks but the root. Local, with equal arguments on all
 * ranks. */
void sar_pipeline_begin(struct sar_pipeline *p, const struct sar_pipeline_plan *plan, uint32_t epoch);

/** Returns the pieces that the root can write now, from piece `first` on. Local. */
size_t sar_pipeline_writable(const struct sar_pipeline *p, uint64_t first);

/** Returns the pieces that have arrived and wait for their user, from p->taken on in their order. Local. */
size_t sar_pipeline_readable(const struct sar_pipeline *p);

/** Returns the slot of a piece. */
struct sar_pipeline_slot *sar_pipeline_slot_of(struct sar_pipeline *p, uint64_t piece);

/** On the root: sends a piece of slot->bytes bytes to the children. Pieces are sent in their order. */
void sar_pipeline_send(struct sar_pipeline *p, uint64_t piece);

/** On other ranks: ends the use of the piece p->taken. Local. */
void sar_pipeline_release(struct sar_pipeline *p);

/** Makes progress: sends arrived pieces on, posts receives. If `block`, waits inside MPI until something has
 * happened, unless warnings of long waits forbid it. Returns true if something has happened. */
bool sar_pipeline_advance(struct sar_pipeline *p, bool block);

/** True if no message is in flight, and the user has released all pieces. */
bool sar_pipeline_is_done(const struct sar_pipeline *p);

#endif
