/* SPDX-License-Identifier: BSD-3-Clause */
/* Pieces of a broadcast: a header of 32 bytes and a payload in a wire format. Pieces are short and many, and
 * all ranks plan them alike; so their header is half that of other messages. */

#ifndef SAR_WIRE_PIECE_H
#define SAR_WIRE_PIECE_H

#include "wire/message.h"

/** Header of a piece, in the byte order of the sender. */
struct sar_piece_header {
    uint32_t magic;        /**< SAR_PIECE_MAGIC; differs if the peer has another byte order */
    uint16_t version;      /**< SAR_PIECE_HEADER_VERSION */
    uint16_t wire;         /**< position of the format in sar_wires; SAR_MSG_NO_WIRE: the root failed */
    uint32_t epoch;        /**< earlier calls on this communicator */
    uint32_t nnz;          /**< elements in the payload */
    uint64_t user_word;    /**< number for the caller's use */
    uint32_t content_hash; /**< number for the caller's use, such as a hash of the elements */
    uint32_t checksum;     /**< hash of the bytes before this field, of the key's fingerprint, and of the
                            * slots of the piece */
};

enum { SAR_PIECE_HEADER_BYTES = 32, SAR_PIECE_HEADER_VERSION = 1 };

#define SAR_PIECE_MAGIC 0x53415032u

_Static_assert(sizeof(struct sar_piece_header) == SAR_PIECE_HEADER_BYTES,
               "the header is part of the wire format");

/** Content of a piece. */
struct sar_piece {
    const struct sar_wire *wire;
    void *payload;
    uint64_t bytes; /**< of the payload */
    uint32_t nnz;
    uint64_t user_word;
    uint32_t content_hash;
};

/** Encodes vec, which has 4-byte indices, as a piece in a buffer that is aligned to SAR_ALIGNMENT. Of the
 * piece, its wire, user_word and content_hash are read. Returns the bytes of header and payload, or 0 if
 * these are more than `capacity`. */
uint64_t sar_piece_encode(const struct sar_msg_key *key, const struct sar_piece *piece,
                          const struct sar_spvec *vec, void *buffer, uint64_t capacity);

/** Writes the piece of a root that failed: a header without payload. */
void sar_piece_failure(const struct sar_msg_key *key, void *buffer);

/** Checks the header of a piece that may be damaged, and describes its content. Returns SAR_PEER_FAILED if
 * the root failed, SAR_CORRUPT if the piece does not fit the key. */
enum sar_status sar_piece_open(const struct sar_msg_key *key, void *buffer, uint64_t bytes,
                               struct sar_piece *piece);

#endif
