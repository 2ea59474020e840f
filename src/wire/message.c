/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes and checks message headers. Costs one hash of 60 bytes a message, besides the payload. */

#include "wire/message.h"

#include <stddef.h>
#include <string.h>

#include "base/parallel.h"
#include "hash/murmur3.h"
#include "wire/round16.h"

static uint32_t checksum_of(const struct sar_msg_header *header)
{
    uint32_t words[offsetof(struct sar_msg_header, checksum) / 4], hash = 0;
    memcpy(words, header, sizeof words);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        hash = sar_murmur3(words[i], hash);
    return hash;
}

static struct sar_msg_header make_header(const struct sar_msg_key *key)
{
    return (struct sar_msg_header){
        .magic = SAR_MSG_MAGIC,
        .version = SAR_MSG_HEADER_VERSION,
        .wire = SAR_MSG_NO_WIRE,
        .fingerprint = key->fingerprint,
        .epoch = key->epoch,
        .slots = key->layout.slots,
        .user_word = key->user_word,
        .precision = key->layout.precision,
    };
}

/* Allocates the buffer of a message and writes the header. */
static enum sar_status begin(struct sar_msg_header header, struct sar_arena *arena, struct sar_msg *message)
{
    void *buffer;
    header.checksum = checksum_of(&header);
    if (header.bytes > SIZE_MAX - SAR_MSG_HEADER_BYTES)
        return SAR_NO_MEMORY;
    size_t bytes = SAR_MSG_HEADER_BYTES + header.bytes;
    if (header.detached != 0)
        SAR_TRY(sar_arena_alloc_zeroed(arena, SAR_MSG_DETACHED_BYTES, 1, &buffer));
    else
        SAR_TRY(sar_arena_alloc(arena, bytes, 1, &buffer));
    memcpy(buffer, &header, sizeof header);
    *message = (struct sar_msg){ .buffer = buffer, .bytes = bytes };
    return SAR_OK;
}

enum sar_status sar_msg_begin(const struct sar_msg_key *key, const struct sar_wire *wire,
                              const struct sar_spvec *vec, bool detached, struct sar_arena *arena,
                              struct sar_msg *message)
{
    struct sar_msg_header header = make_header(key);
    header.wire = sar_wire_number(wire);
    header.nnz = vec->nnz;
    header.bytes = sar_wire_bytes(wire, &key->layout, vec);
    header.detached = detached && header.bytes != 0;
    return begin(header, arena, message);
}

enum sar_status sar_msg_encode(const struct sar_msg_key *key, const struct sar_wire *wire,
                               const struct sar_spvec *vec, struct sar_arena *arena, struct sar_msg *message)
{
    struct sar_spvec sent = *vec;
    SAR_TRY(sar_round16_encode(&key->layout, arena, &sent));
    SAR_TRY(sar_msg_begin(key, wire, vec, false, arena, message));
    wire->encode(&key->layout, &sent, sar_msg_payload(message));
    return SAR_OK;
}

void sar_msg_failure(const struct sar_msg_key *key, struct sar_msg_header *header)
{
    *header = make_header(key);
    header->checksum = checksum_of(header);
}

bool sar_msg_read_header(const void *buffer, struct sar_msg_header *header)
{
    memcpy(header, buffer, sizeof *header);
    return header->magic == SAR_MSG_MAGIC && header->version == SAR_MSG_HEADER_VERSION &&
           header->checksum == checksum_of(header);
}

/* Reads a header, and checks all fields that every message has. */
static enum sar_status open_header(const struct sar_msg_key *key, const struct sar_msg *message,
                                   struct sar_msg_header *header)
{
    if (message->bytes < SAR_MSG_HEADER_BYTES || !sar_msg_read_header(message->buffer, header))
        return SAR_CORRUPT;
    if (header->fingerprint != key->fingerprint || header->epoch != key->epoch)
        return SAR_CORRUPT;
    if (header->wire == SAR_MSG_NO_WIRE)
        return SAR_PEER_FAILED;
    return header->slots == key->layout.slots && header->precision == key->layout.precision &&
                   header->bytes == message->bytes - SAR_MSG_HEADER_BYTES
               ? SAR_OK
               : SAR_CORRUPT;
}

enum sar_status sar_msg_open(const struct sar_msg_key *key, const struct sar_msg *message,
                             struct sar_msg_content *content)
{
    struct sar_msg_header header;
    SAR_TRY(open_header(key, message, &header));
    const struct sar_wire *wire = sar_wire_of_number(header.wire);
    if (wire == NULL)
        return SAR_CORRUPT;
    *content = (struct sar_msg_content){ wire,       sar_msg_payload(message), header.bytes,
                                         header.nnz, header.user_word,         header.index_hash };
    return SAR_OK;
}

enum sar_status sar_msg_decode(struct sar_msg_key *key, const struct sar_msg *message,
                               struct sar_arena *arena, struct sar_spvec *vec)
{
    struct sar_msg_content content;
    SAR_TRY(sar_msg_open(key, message, &content));
    struct sar_spvec decoded = { NULL, NULL, (size_t)content.nnz };
    SAR_TRY(content.wire->decode(&key->layout, content.payload, content.bytes, arena, &decoded));
    SAR_TRY(sar_round16_decode(&key->layout, arena, &decoded));
    key->user_word = content.user_word;
    *vec = decoded;
    return SAR_OK;
}

/* A sum, so that any number of threads can make it, also on a device. */
uint32_t sar_msg_index_hash(const struct sar_spvec *vec)
{
    const uint32_t *index = vec->index;
    uint32_t hash = (uint32_t)vec->nnz;
    for (size_t i = 0; i < vec->nnz; i++)
        hash += sar_murmur3(index[i], (uint32_t)i);
    return hash;
}

enum sar_status sar_msg_begin_values(const struct sar_msg_key *key, uint32_t index_hash, size_t nnz,
                                     bool detached, struct sar_arena *arena, struct sar_msg *message)
{
    struct sar_msg_header header = make_header(key);
    header.wire = SAR_MSG_VALUES;
    header.nnz = nnz;
    header.bytes = sar_mul_saturate(nnz, key->layout.element_size);
    header.index_hash = index_hash;
    header.detached = detached && header.bytes != 0;
    return begin(header, arena, message);
}

enum sar_status sar_msg_encode_values(const struct sar_msg_key *key, uint32_t index_hash,
                                      const struct sar_spvec *vec, struct sar_arena *arena,
                                      struct sar_msg *message)
{
    struct sar_spvec sent = *vec;
    SAR_TRY(sar_round16_encode(&key->layout, arena, &sent));
    SAR_TRY(sar_msg_begin_values(key, index_hash, vec->nnz, false, arena, message));
    sar_parallel_copy(sar_msg_payload(message), sent.value, message->bytes - SAR_MSG_HEADER_BYTES);
    return SAR_OK;
}

enum sar_status sar_msg_open_values(const struct sar_msg_key *key, const struct sar_msg *message, size_t nnz,
                                    struct sar_msg_content *content)
{
    struct sar_msg_header header;
    SAR_TRY(open_header(key, message, &header));
    if (header.wire != SAR_MSG_VALUES || header.nnz != nnz ||
        header.bytes != sar_mul_saturate(nnz, key->layout.element_size))
        return SAR_CORRUPT;
    *content = (struct sar_msg_content){ NULL,       sar_msg_payload(message), header.bytes,
                                         header.nnz, header.user_word,         header.index_hash };
    return SAR_OK;
}

enum sar_status sar_msg_decode_values(struct sar_msg_key *key, uint32_t index_hash,
                                      const struct sar_msg *message, struct sar_arena *arena,
                                      struct sar_spvec *vec)
{
    struct sar_msg_content content;
    SAR_TRY(sar_msg_open_values(key, message, vec->nnz, &content));
    if (content.index_hash != index_hash)
        return SAR_CORRUPT;
    vec->value = content.payload;
    SAR_TRY(sar_round16_decode(&key->layout, arena, vec));
    key->user_word = content.user_word;
    return SAR_OK;
}

enum sar_status sar_msg_encode_deferral(const struct sar_msg_key *key, const struct sar_msg_size *size,
                                        struct sar_arena *arena, struct sar_msg *message)
{
    struct sar_msg_header header = make_header(key);
    header.wire = SAR_MSG_DEFERRED;
    header.nnz = size->nnz;
    header.user_word = size->bytes;
    return begin(header, arena, message);
}

enum sar_status sar_msg_read_size(const struct sar_msg_key *key, const struct sar_msg *message,
                                  struct sar_msg_size *size)
{
    struct sar_msg_header header;
    SAR_TRY(open_header(key, message, &header));
    *size = (struct sar_msg_size){ header.nnz,
                                   header.wire == SAR_MSG_DEFERRED ? header.user_word : message->bytes };
    return SAR_OK;
}
