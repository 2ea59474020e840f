/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes and checks headers of pieces. Numbers that both ends know are not sent; they are part of the
 * checksum. */

#include "wire/piece.h"

#include <stddef.h>
#include <string.h>

#include "hash/murmur3.h"

static uint32_t checksum_of(const struct sar_msg_key *key, const struct sar_piece_header *header)
{
    uint32_t words[offsetof(struct sar_piece_header, checksum) / 4];
    uint32_t hash = sar_murmur3_u64(key->layout.slots, key->fingerprint);
    memcpy(words, header, sizeof words);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        hash = sar_murmur3(words[i], hash);
    return hash;
}

static void write_header(const struct sar_msg_key *key, struct sar_piece_header header, void *buffer)
{
    header.magic = SAR_PIECE_MAGIC;
    header.version = SAR_PIECE_HEADER_VERSION;
    header.epoch = key->epoch;
    header.checksum = checksum_of(key, &header);
    memcpy(buffer, &header, sizeof header);
}

uint64_t sar_piece_encode(const struct sar_msg_key *key, const struct sar_piece *piece,
                          const struct sar_spvec *vec, void *buffer, uint64_t capacity)
{
    uint64_t bytes = sar_wire_bytes(piece->wire, &key->layout, vec);
    if (vec->nnz > UINT32_MAX || bytes > capacity - SAR_PIECE_HEADER_BYTES)
        return 0;
    write_header(key,
                 (struct sar_piece_header){ .wire = sar_wire_number(piece->wire),
                                            .nnz = (uint32_t)vec->nnz,
                                            .user_word = piece->user_word,
                                            .content_hash = piece->content_hash },
                 buffer);
    piece->wire->encode(&key->layout, vec, (unsigned char *)buffer + SAR_PIECE_HEADER_BYTES);
    return SAR_PIECE_HEADER_BYTES + bytes;
}

void sar_piece_failure(const struct sar_msg_key *key, void *buffer)
{
    write_header(key, (struct sar_piece_header){ .wire = SAR_MSG_NO_WIRE }, buffer);
}

enum sar_status sar_piece_open(const struct sar_msg_key *key, void *buffer, uint64_t bytes,
                               struct sar_piece *piece)
{
    struct sar_piece_header header;
    if (bytes < SAR_PIECE_HEADER_BYTES)
        return SAR_CORRUPT;
    memcpy(&header, buffer, sizeof header);
    if (header.magic != SAR_PIECE_MAGIC || header.version != SAR_PIECE_HEADER_VERSION ||
        header.checksum != checksum_of(key, &header) || header.epoch != key->epoch)
        return SAR_CORRUPT;
    if (header.wire == SAR_MSG_NO_WIRE)
        return SAR_PEER_FAILED;
    const struct sar_wire *wire = sar_wire_of_number(header.wire);
    if (wire == NULL)
        return SAR_CORRUPT;
    *piece = (struct sar_piece){ wire,
                                 (unsigned char *)buffer + SAR_PIECE_HEADER_BYTES,
                                 bytes - SAR_PIECE_HEADER_BYTES,
                                 header.nnz,
                                 header.user_word,
                                 header.content_hash };
    return SAR_OK;
}
