/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/message.h"

#include <stddef.h>
#include <string.h>

#include "hash/murmur3.h"
#include "wire/narrow.h"

static uint32_t check_of(const struct sar_header *header)
{
    uint32_t words[offsetof(struct sar_header, check) / 4], hash = 0;
    memcpy(words, header, sizeof words);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        hash = sar_murmur3(words[i], hash);
    return hash;
}

static struct sar_header make_header(const struct sar_envelope *envelope)
{
    return (struct sar_header){
        .magic = SAR_MAGIC,
        .version = SAR_HEADER_VERSION,
        .wire = SAR_NO_WIRE,
        .fingerprint = envelope->fingerprint,
        .epoch = envelope->epoch,
        .span = envelope->layout.span,
        .note = envelope->note,
        .values = envelope->layout.values,
    };
}

static uint16_t number_of(const struct sar_wire *wire)
{
    uint16_t i = 0;
    while (sar_wires[i] != wire)
        i++;
    return i;
}

/* The format with a number that cannot be trusted, or NULL. */
static const struct sar_wire *wire_of(uint16_t number)
{
    for (size_t i = 0; sar_wires[i] != NULL; i++)
        if (i == number)
            return sar_wires[i];
    return NULL;
}

static struct sar_header header_of(const struct sar_envelope *envelope, const struct sar_wire *wire,
                                   const struct sar_run *run)
{
    struct sar_header header = make_header(envelope);
    header.wire = number_of(wire);
    header.nnz = run->nnz;
    header.bytes = sar_wire_bytes(wire, &envelope->layout, run);
    return header;
}

/* Take memory for a message, and put its header there. */
static enum sar_status begin(struct sar_header header, struct sar_arena *arena, struct sar_message *message)
{
    void *buffer;
    header.check = check_of(&header);
    if (header.bytes > SIZE_MAX - SAR_HEADER_BYTES)
        return SAR_NO_MEMORY;
    size_t bytes = SAR_HEADER_BYTES + header.bytes;
    if (header.apart != 0)
        SAR_TRY(sar_arena_take_zeroed(arena, SAR_APART_BYTES, 1, &buffer));
    else
        SAR_TRY(sar_arena_take(arena, bytes, 1, &buffer));
    memcpy(buffer, &header, sizeof header);
    *message = (struct sar_message){ .buffer = buffer, .bytes = bytes };
    return SAR_OK;
}

enum sar_status sar_message_begin(const struct sar_envelope *envelope, const struct sar_wire *wire,
                                  const struct sar_run *run, struct sar_arena *arena,
                                  struct sar_message *message)
{
    return begin(header_of(envelope, wire, run), arena, message);
}

enum sar_status sar_message_begin_apart(const struct sar_envelope *envelope, const struct sar_wire *wire,
                                        const struct sar_run *run, struct sar_arena *arena,
                                        struct sar_message *message)
{
    struct sar_header header = header_of(envelope, wire, run);
    header.apart = header.bytes != 0;
    return begin(header, arena, message);
}

enum sar_status sar_message_encode(const struct sar_envelope *envelope, const struct sar_wire *wire,
                                   const struct sar_run *run, struct sar_arena *arena,
                                   struct sar_message *message)
{
    struct sar_run sent = *run;
    SAR_TRY(sar_narrow_run(&envelope->layout, arena, &sent));
    SAR_TRY(sar_message_begin(envelope, wire, run, arena, message));
    wire->encode(&envelope->layout, &sent, sar_message_payload(message));
    return SAR_OK;
}

void sar_message_failed(const struct sar_envelope *envelope, struct sar_header *header)
{
    *header = make_header(envelope);
    header->check = check_of(header);
}

bool sar_message_header(const void *buffer, struct sar_header *header)
{
    memcpy(header, buffer, sizeof *header);
    return header->magic == SAR_MAGIC && header->version == SAR_HEADER_VERSION &&
           header->check == check_of(header);
}

enum sar_status sar_message_open(const struct sar_envelope *envelope, const struct sar_message *message,
                                 struct sar_content *content)
{
    struct sar_header header;
    if (message->bytes < SAR_HEADER_BYTES || !sar_message_header(message->buffer, &header))
        return SAR_CORRUPT;
    if (header.fingerprint != envelope->fingerprint || header.epoch != envelope->epoch)
        return SAR_CORRUPT;
    if (header.wire == SAR_NO_WIRE)
        return SAR_PEER_FAILED;
    const struct sar_wire *wire = wire_of(header.wire);
    if (wire == NULL || header.span != envelope->layout.span || header.values != envelope->layout.values ||
        header.bytes != message->bytes - SAR_HEADER_BYTES)
        return SAR_CORRUPT;
    *content =
        (struct sar_content){ wire, sar_message_payload(message), header.bytes, header.nnz, header.note };
    return SAR_OK;
}

enum sar_status sar_message_decode(struct sar_envelope *envelope, const struct sar_message *message,
                                   struct sar_arena *arena, struct sar_run *run)
{
    struct sar_content content;
    SAR_TRY(sar_message_open(envelope, message, &content));
    struct sar_run decoded = { NULL, NULL, (size_t)content.nnz };
    SAR_TRY(content.wire->decode(&envelope->layout, content.payload, content.bytes, arena, &decoded));
    SAR_TRY(sar_widen_run(&envelope->layout, arena, &decoded));
    envelope->note = content.note;
    *run = decoded;
    return SAR_OK;
}
