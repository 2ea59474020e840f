/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages in pieces, of which MPI gets no more than a chunk of bytes at a time.
 *
 * A message longer than a chunk goes as its first SAR_FIRST_PIECE bytes, by whose number the receiver knows
 * that more will come and whose header tells it how much, then as pieces of a chunk each until a shorter one,
 * which may be empty. A message of just SAR_FIRST_PIECE bytes is sent that way, too. Every other message is
 * one piece.
 *
 * A message whose payload is not behind its header goes in the same way, however short it is. The first piece
 * then has nothing but the header, which says so, and bytes of no meaning, and all of the payload follows. */

#ifndef SAR_NET_TRANSFER_H
#define SAR_NET_TRANSFER_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/message.h"

enum { SAR_FIRST_PIECE = SAR_APART_BYTES };

/** A message on its way out. All zero but for what it is. */
struct sar_sending {
    unsigned char *buffer;
    uint64_t bytes;
    uint64_t sent;          /**< of them, handed to MPI */
    bool open;              /**< pieces are still to be sent */
    unsigned char *payload; /**< what is behind the header, if that is elsewhere; or NULL */
};

/** A message on its way in; open and else all zero until its first piece has been seen. */
struct sar_receiving {
    unsigned char *buffer;  /**< NULL when it is dropped */
    uint64_t bytes;         /**< as its first piece tells */
    uint64_t seen;          /**< of them */
    bool open;              /**< pieces are still to come */
    int posted;             /**< receives of pieces that are not over */
    unsigned char *payload; /**< where what is behind the header goes, if that is elsewhere; or NULL */
};

/** Where the next piece is, and its bytes; from the latter on it counts as sent. */
const unsigned char *sar_sending_at(const struct sar_sending *message);
int sar_sending_next(struct sar_sending *message, uint64_t chunk);

/** Whether a piece that is there is the message's first, and whether it is its last. */
bool sar_receiving_begins(const struct sar_receiving *message);
bool sar_receiving_ends(const struct sar_receiving *message, uint64_t piece, uint64_t chunk);

/** Where to receive the next piece, which counts as seen from then on. NULL without room for it: it and all
 * that follow are to be dropped. */
void *sar_receiving_next(struct sar_receiving *message, uint64_t piece);

#endif
