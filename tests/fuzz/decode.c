/* SPDX-License-Identifier: BSD-3-Clause */
/* A libFuzzer target: bytes from a peer that cannot be trusted. Whatever they are, sar_msg_decode, or for a
 * piece of a broadcast sar_piece_open and its format, refuses them or makes a valid run of them, one that the
 * format can write and read again.
 *
 * By chance no input would get past the header's checks, so they are made to fit, but for the share of
 * inputs that asks for a header of its own. See input.h.
 *
 * Built by tests/fuzz/run: with clang -fsanitize=fuzzer,address,undefined, or together with main.c. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "hash/murmur3.h"
#include "input.h"
#include "wire/piece.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool good)
{
    if (!good)
        abort();
}

static void seal(struct sar_msg_header *header)
{
    uint32_t hash = 0, word;
    for (size_t i = 0; i < offsetof(struct sar_msg_header, checksum); i += sizeof word) {
        memcpy(&word, (const char *)header + i, sizeof word);
        hash = sar_murmur3(word, hash);
    }
    header->checksum = hash;
}

static struct sar_msg_header fitting_header(const uint8_t *control, uint64_t bytes)
{
    struct sar_wire_layout layout = input_layout(control);
    struct sar_msg_header header = { .magic = SAR_MSG_MAGIC,
                                     .version = SAR_MSG_HEADER_VERSION,
                                     .wire = input_wire(control),
                                     .fingerprint = FINGERPRINT,
                                     .epoch = EPOCH,
                                     .slots = layout.slots,
                                     .nnz = input_nnz(control),
                                     .bytes = bytes,
                                     .precision = layout.precision };
    seal(&header);
    return header;
}

/* The message in memory of exactly its size; the payload is cut or padded with zeros to `bytes`. */
static struct sar_msg make_message(const struct sar_msg_header *header, const uint8_t *payload, size_t size,
                                   uint64_t bytes)
{
    struct sar_msg message = { .buffer = malloc(SAR_MSG_HEADER_BYTES + bytes),
                               .bytes = SAR_MSG_HEADER_BYTES + bytes };
    require(message.buffer != NULL);
    memcpy(message.buffer, header, SAR_MSG_HEADER_BYTES);
    unsigned char *to = (unsigned char *)message.buffer + SAR_MSG_HEADER_BYTES;
    memset(to, 0, bytes);
    if (size != 0)
        memcpy(to, payload, size < bytes ? size : bytes);
    return message;
}

/* NULL where the input is too short for its own header. */
static struct sar_msg input_message(const uint8_t *data, size_t size)
{
    const uint8_t *payload = data + CONTROL;
    struct sar_msg_header header;
    size -= CONTROL;
    if (!(data[1] & FIT_HEADER)) {
        if (size < SAR_MSG_HEADER_BYTES)
            return (struct sar_msg){ .buffer = NULL };
        memcpy(&header, payload, sizeof header);
        return make_message(&header, payload + sizeof header, size - sizeof header, size - sizeof header);
    }
    struct sar_wire_layout layout = input_layout(data);
    uint64_t bytes =
        data[1] & FIT_LENGTH ? sar_wires[input_wire(data)]->min_bytes(&layout, input_nnz(data)) : size;
    header = fitting_header(data, bytes);
    return make_message(&header, payload, size, bytes);
}

static size_t value_bytes(const struct sar_wire_layout *layout)
{
    return layout->precision == SAR_PRECISION_FULL ? layout->element_size : 2 * layout->element_size;
}

static void check_run(const struct sar_wire_layout *layout, const struct sar_spvec *run)
{
    unsigned char any = 0;
    require(run->nnz <= layout->slots);
    for (size_t i = 0; i < run->nnz; i++) {
        uint64_t index = sar_index_get(run->index, layout->index_size, i);
        require(index < layout->slots);
        require(i == 0 || index > sar_index_get(run->index, layout->index_size, i - 1));
    }
    for (size_t i = 0; i < run->nnz * value_bytes(layout); i++)
        any |= ((const unsigned char *)run->value)[i];
    volatile unsigned char read = any; /* so that reading the values is not left out */
    (void)read;
}

/* Decoded elements survive another encoding unchanged, except for the bits of NaNs rounded to 16 bits. */
static void check_again(struct sar_msg_key *msg_key, const struct sar_wire *wire, const struct sar_spvec *run,
                        struct sar_arena *arena)
{
    const struct sar_wire_layout *layout = &msg_key->layout;
    struct sar_msg message;
    struct sar_spvec again;
    require(sar_msg_encode(msg_key, wire, run, arena, &message) == SAR_OK);
    require(sar_msg_decode(msg_key, &message, arena, &again) == SAR_OK);
    require(again.nnz == run->nnz);
    if (run->nnz == 0)
        return;
    require(memcmp(again.index, run->index, run->nnz * layout->index_size) == 0);
    if (layout->precision == SAR_PRECISION_FULL)
        require(memcmp(again.value, run->value, run->nnz * layout->element_size) == 0);
}

static struct sar_piece_header fitting_piece_header(const uint8_t *control)
{
    struct sar_piece_header header = { .magic = SAR_PIECE_MAGIC,
                                       .version = SAR_PIECE_HEADER_VERSION,
                                       .wire = input_wire(control),
                                       .epoch = EPOCH,
                                       .nnz = (uint32_t)input_nnz(control) };
    uint32_t words[offsetof(struct sar_piece_header, checksum) / 4];
    uint32_t hash = sar_murmur3_u64(input_layout(control).slots, FINGERPRINT);
    memcpy(words, &header, sizeof words);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        hash = sar_murmur3(words[i], hash);
    header.checksum = hash;
    return header;
}

/* The piece in memory of exactly its size, and aligned as in a broadcast. */
static void try_piece(const uint8_t *data, size_t size, struct sar_arena *arena)
{
    struct sar_msg_key msg_key = { input_layout(data), FINGERPRINT, EPOCH, 0 };
    struct sar_piece_header header = fitting_piece_header(data);
    size_t own = data[1] & FIT_HEADER ? sizeof header : 0, rest = size - CONTROL;
    struct sar_piece piece;
    unsigned char *buffer = malloc(own + rest);
    require(buffer != NULL || own + rest == 0);
    if (own > 0)
        memcpy(buffer, &header, own);
    if (rest > 0)
        memcpy(buffer + own, data + CONTROL, rest);
    if (sar_piece_open(&msg_key, buffer, own + rest, &piece) == SAR_OK) {
        struct sar_spvec run = { NULL, NULL, piece.nnz };
        if (piece.wire->decode(&msg_key.layout, piece.payload, piece.bytes, arena, &run) == SAR_OK) {
            check_run(&msg_key.layout, &run);
            check_again(&msg_key, piece.wire, &run, arena);
        }
    }
    free(buffer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct sar_arena arena; /* whose memory is the sanitizer's business, see src/base/arena.c */
    struct sar_spvec run = { NULL, NULL, 0 };
    if (size < CONTROL)
        return 0;
    if (data[0] & PIECE) {
        try_piece(data, size, &arena);
        sar_arena_recycle(&arena);
        return 0;
    }
    struct sar_msg_key msg_key = { input_layout(data), FINGERPRINT, EPOCH, 0 };
    struct sar_msg message = input_message(data, size);
    if (message.buffer == NULL)
        return 0;
    if (sar_msg_decode(&msg_key, &message, &arena, &run) == SAR_OK) {
        struct sar_msg_header header;
        memcpy(&header, message.buffer, sizeof header);
        check_run(&msg_key.layout, &run);
        check_again(&msg_key, sar_wires[header.wire], &run, &arena);
    }
    sar_arena_recycle(&arena);
    free(message.buffer);
    return 0;
}
