/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_WIRE_MESSAGE_H
#define SAR_WIRE_MESSAGE_H

#include "wire/wire.h"

/** What every message begins with, in the sender's byte order; 64 bytes. */
struct sar_header {
    uint32_t magic;       /**< SAR_MAGIC; another value also tells a peer of the other byte order */
    uint16_t version;     /**< SAR_HEADER_VERSION */
    uint16_t wire;        /**< place of the format in sar_wires, or SAR_NO_WIRE from a rank that failed */
    uint32_t fingerprint; /**< of the call: interface, count, type, op, scheme */
    uint32_t epoch;       /**< calls on this communicator before this one */
    uint64_t span;        /**< slots of the part */
    uint64_t nnz;         /**< elements in the payload */
    uint64_t bytes;       /**< of payload behind the header */
    uint64_t note;        /**< a number for the scheme's own use */
    uint32_t values;      /**< enum sar_values */
    uint32_t apart;       /**< 1 where the payload is not behind the header when the message leaves */
    uint32_t spare;
    uint32_t check; /**< hash of the bytes before it */
};

enum { SAR_HEADER_BYTES = 64, SAR_HEADER_VERSION = 1, SAR_NO_WIRE = 0xffff };

/** What stands in the place of a payload that is elsewhere, header included: bytes of no meaning. */
enum { SAR_APART_BYTES = 4096 };
#define SAR_MAGIC 0x53415231u

_Static_assert(sizeof(struct sar_header) == SAR_HEADER_BYTES, "the header is part of the wire format");

/** A header and its payload, in one piece of memory aligned to SAR_ALIGNMENT, unless that is elsewhere. */
struct sar_message {
    void *buffer;
    uint64_t bytes; /**< header included */
    void *payload;  /**< in memory that the host may not be able to touch; NULL behind the header */
};

/** Where its payload is. */
static inline void *sar_message_payload(const struct sar_message *message)
{
    return message->payload != NULL ? message->payload : (unsigned char *)message->buffer + SAR_HEADER_BYTES;
}

/** What both ends know of a message before it is sent. */
struct sar_envelope {
    struct sar_layout layout;
    uint32_t fingerprint, epoch;
    uint64_t note;
};

/** Write a run as a message in a format. */
enum sar_status sar_message_encode(const struct sar_envelope *envelope, const struct sar_wire *wire,
                                   const struct sar_run *run, struct sar_arena *arena,
                                   struct sar_message *message);

/** The same up to the payload, which is left to be written. */
enum sar_status sar_message_begin(const struct sar_envelope *envelope, const struct sar_wire *wire,
                                  const struct sar_run *run, struct sar_arena *arena,
                                  struct sar_message *message);

/** The header of a message whose payload will be elsewhere, for which message->payload is to be set; there is
 * none in a message of SAR_HEADER_BYTES. */
enum sar_status sar_message_begin_apart(const struct sar_envelope *envelope, const struct sar_wire *wire,
                                        const struct sar_run *run, struct sar_arena *arena,
                                        struct sar_message *message);

/** The message of a rank that failed: a header without payload. */
void sar_message_failed(const struct sar_envelope *envelope, struct sar_header *header);

/** Read the header that a message begins with. False when that is none. */
bool sar_message_header(const void *buffer, struct sar_header *header);

/** What is behind a header that fits the envelope. */
struct sar_content {
    const struct sar_wire *wire;
    void *payload;  /**< where the message says */
    uint64_t bytes; /**< of it */
    uint64_t nnz, note;
};

/** Read the header of a message that cannot be trusted.
 * @return as sar_message_decode */
enum sar_status sar_message_open(const struct sar_envelope *envelope, const struct sar_message *message,
                                 struct sar_content *content);

/** Read a message that cannot be trusted.
 * @param envelope  what is expected; its note is set to the sender's
 * @param run       may point into the message
 * @return SAR_PEER_FAILED when the sender says so, SAR_CORRUPT when anything does not fit */
enum sar_status sar_message_decode(struct sar_envelope *envelope, const struct sar_message *message,
                                   struct sar_arena *arena, struct sar_run *run);

#endif
