/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages: a header of 64 bytes and a payload in a wire format. */

#ifndef SAR_WIRE_MESSAGE_H
#define SAR_WIRE_MESSAGE_H

#include "wire/wire.h"

/** Header of every message, in the byte order of the sender. */
struct sar_msg_header {
    uint32_t magic;       /**< SAR_MSG_MAGIC; differs if the peer has another byte order */
    uint16_t version;     /**< SAR_MSG_HEADER_VERSION */
    uint16_t wire;        /**< position of the format in sar_wires; SAR_MSG_NO_WIRE: the sender failed;
                           * SAR_MSG_VALUES: values alone; SAR_MSG_DEFERRED: another rank sends them */
    uint32_t fingerprint; /**< hash of the call's interface, count, type, op and scheme */
    uint32_t epoch;       /**< earlier calls on this communicator */
    uint64_t slots;       /**< slots of the part */
    uint64_t nnz;         /**< elements in the payload */
    uint64_t bytes;       /**< bytes of the payload */
    uint64_t user_word;   /**< number for the scheme's use; of SAR_MSG_DEFERRED the bytes of the message */
    uint32_t precision;   /**< enum sar_wire_precision */
    uint32_t detached;    /**< 1: the payload does not follow the header in memory */
    uint32_t index_hash;  /**< of SAR_MSG_VALUES: hash of the absent indices; else 0 */
    uint32_t checksum;    /**< hash of the bytes before this field */
};

enum {
    SAR_MSG_HEADER_BYTES = 64,
    SAR_MSG_HEADER_VERSION = 1,
    SAR_MSG_NO_WIRE = 0xffff,
    SAR_MSG_VALUES = 0xfffe,
    SAR_MSG_DEFERRED = 0xfffd
};

/** Bytes of the buffer of a detached message: the header, and filler in place of the payload. MPI sends so
 * many at once. In a simulation of scaled tensors (bench/sim/smpi.h) it does not, and a number is set that
 * messages rarely have. */
#ifndef SAR_MSG_DETACHED_BYTES
#define SAR_MSG_DETACHED_BYTES 4096
#endif
#define SAR_MSG_MAGIC 0x53415231u

_Static_assert(sizeof(struct sar_msg_header) == SAR_MSG_HEADER_BYTES,
               "the header is part of the wire format");

/** A message: header and payload in one buffer aligned to SAR_ALIGNMENT, unless the payload is detached. */
struct sar_msg {
    void *buffer;
    uint64_t bytes; /**< bytes of header and payload */
    void *payload;  /**< detached payload, perhaps in device memory; NULL: follows the header */
};

/** Returns the address of the payload. */
static inline void *sar_msg_payload(const struct sar_msg *message)
{
    return message->payload != NULL ? message->payload
                                    : (unsigned char *)message->buffer + SAR_MSG_HEADER_BYTES;
}

/** Values that sender and receiver know before the message is sent. */
struct sar_msg_key {
    struct sar_wire_layout layout;
    uint32_t fingerprint, epoch;
    uint64_t user_word;
};

/** Encodes vec as a message, in memory of the arena. */
enum sar_status sar_msg_encode(const struct sar_msg_key *key, const struct sar_wire *wire,
                               const struct sar_spvec *vec, struct sar_arena *arena, struct sar_msg *message);

/** Hash of an index list of 4-byte indices. */
uint32_t sar_msg_index_hash(const struct sar_spvec *vec);

/** Encodes the values of vec alone, for receivers that know its index list.
 * @param index_hash  sar_msg_index_hash(vec) */
enum sar_status sar_msg_encode_values(const struct sar_msg_key *key, uint32_t index_hash,
                                      const struct sar_spvec *vec, struct sar_arena *arena,
                                      struct sar_msg *message);

/** Decodes a message of values alone, as sar_msg_decode. vec->index and vec->nnz are the known index list.
 * Returns SAR_CORRUPT also if the sender had another list. */
enum sar_status sar_msg_decode_values(struct sar_msg_key *key, uint32_t index_hash,
                                      const struct sar_msg *message, struct sar_arena *arena,
                                      struct sar_spvec *vec);

/** Size of a message that its owner sends to some ranks itself, and to the others by relays. */
struct sar_msg_size {
    uint64_t nnz;
    uint64_t bytes; /**< header included */
};

/** Encodes a deferral: a header that tells the size of a message which another rank will send. */
enum sar_status sar_msg_encode_deferral(const struct sar_msg_key *key, const struct sar_msg_size *size,
                                        struct sar_arena *arena, struct sar_msg *message);

/** Reads the size of a message from its header, or from a deferral. Errors as sar_msg_decode. */
enum sar_status sar_msg_read_size(const struct sar_msg_key *key, const struct sar_msg *message,
                                  struct sar_msg_size *size);

/** As sar_msg_encode, with an uninitialised payload. If `detached`, the caller sets message->payload, unless
 * message->bytes is SAR_MSG_HEADER_BYTES. */
enum sar_status sar_msg_begin(const struct sar_msg_key *key, const struct sar_wire *wire,
                              const struct sar_spvec *vec, bool detached, struct sar_arena *arena,
                              struct sar_msg *message);

/** As sar_msg_begin, for the values alone of nnz elements. */
enum sar_status sar_msg_begin_values(const struct sar_msg_key *key, uint32_t index_hash, size_t nnz,
                                     bool detached, struct sar_arena *arena, struct sar_msg *message);

/** Writes the message of a rank that failed: a header without payload. */
void sar_msg_failure(const struct sar_msg_key *key, struct sar_msg_header *header);

/** Copies the header from a buffer. Returns false if magic, version or checksum are wrong. */
bool sar_msg_read_header(const void *buffer, struct sar_msg_header *header);

/** Content of a message whose header fits its key. */
struct sar_msg_content {
    const struct sar_wire *wire; /**< NULL: values alone */
    void *payload;               /**< address of the payload */
    uint64_t bytes;              /**< bytes of the payload */
    uint64_t nnz, user_word;
    uint32_t index_hash; /**< of values alone */
};

/** Checks the header of a message that may be damaged, and describes its content. Returns as
 * sar_msg_decode. */
enum sar_status sar_msg_open(const struct sar_msg_key *key, const struct sar_msg *message,
                             struct sar_msg_content *content);

/** As sar_msg_open, for a message of the values alone of nnz elements. The caller compares the hash. */
enum sar_status sar_msg_open_values(const struct sar_msg_key *key, const struct sar_msg *message, size_t nnz,
                                    struct sar_msg_content *content);

/** Decodes a message that may be damaged. vec may point into the message. Sets key->user_word to the
 * sender's. Returns SAR_PEER_FAILED if the sender failed, SAR_CORRUPT if the message does not fit the key. */
enum sar_status sar_msg_decode(struct sar_msg_key *key, const struct sar_msg *message,
                               struct sar_arena *arena, struct sar_spvec *vec);

#endif
