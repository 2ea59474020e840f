/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages in chunks: MPI gets at most comm->chunk bytes at a time.
 *
 * A message that is longer than a chunk goes as its first SAR_FIRST_CHUNK_BYTES bytes, then as chunks of full
 * size, until a shorter chunk, which may be empty. The size of the first chunk tells the receiver that more
 * chunks follow, and the header in it tells the message's size. A message of exactly SAR_FIRST_CHUNK_BYTES
 * bytes is sent in this way, too. Every other message is one chunk.
 *
 * A message with a detached payload goes in the same way, however short it is. Its first chunk then has the
 * header, which says so, and padding; the whole payload follows. */

#ifndef SAR_COMM_CHUNKING_H
#define SAR_COMM_CHUNKING_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "wire/message.h"

enum { SAR_FIRST_CHUNK_BYTES = SAR_MSG_DETACHED_BYTES };

/** A message that is being sent. The sender sets buffer, bytes and payload, and the other members to 0. */
struct sar_chunked_send {
    unsigned char *buffer;  /**< header, and payload unless that is detached */
    uint64_t bytes;         /**< of header and payload */
    uint64_t sent;          /**< bytes handed to MPI */
    bool incomplete;        /**< chunks are still to be sent */
    unsigned char *payload; /**< the detached payload, or NULL */
};

/** A message that is being received. `incomplete` is true and all else 0 until the first chunk has been
 * probed. */
struct sar_chunked_recv {
    unsigned char
        *buffer;       /**< header, and payload unless that is detached; NULL if the message is discarded */
    uint64_t bytes;    /**< size of the message by its first chunk */
    uint64_t received; /**< bytes of the message, counted when their receive is posted */
    bool incomplete;   /**< chunks are still to be probed */
    int posted;        /**< receives of chunks in flight */
    unsigned char *payload; /**< buffer for a detached payload, or NULL */
};

/** Returns the address of the next chunk. */
const unsigned char *sar_chunked_send_data(const struct sar_chunked_send *message);

/** Returns the bytes of the next chunk, and counts it as sent.
 * @param chunk  most bytes of a chunk */
int sar_chunked_send_next(struct sar_chunked_send *message, uint64_t chunk);

/** True if the next chunk is the message's first. */
bool sar_chunked_recv_is_first(const struct sar_chunked_recv *message);

/** True if the next chunk, which has so many bytes, is the message's last. */
bool sar_chunked_recv_is_last(const struct sar_chunked_recv *message, uint64_t bytes, uint64_t chunk);

/** Returns the address to receive the next chunk at, and counts the chunk as received. Returns NULL if it
 * does not fit: then this chunk and all that follow are discarded. */
void *sar_chunked_recv_next(struct sar_chunked_recv *message, uint64_t bytes);

/** Posts the receive of a chunk that is discarded. Needs no memory for the chunk. Local. */
enum sar_status sar_chunk_discard(int bytes, int from, int tag, MPI_Comm comm, MPI_Request *request);

#endif
