/* SPDX-License-Identifier: BSD-3-Clause */
/* A libFuzzer target: bytes from a peer that cannot be trusted. Whatever they are, sar_message_decode
 * refuses them or makes a valid run of them.
 *
 * The first bytes of the input choose what is expected and what the header says; the rest is the payload.
 * By chance no input would get past the header's checks, so they are made to fit, but for the share of
 * inputs that asks for a header of its own.
 *
 *     byte 0      element size; index size; whether zeros are absent
 *     byte 1      format; whether the header and the payload's length are made to fit
 *     bytes 2-3   span
 *     bytes 4-5   nnz
 *     then        the header where it is the input's own, and the payload
 *
 * Built with clang -fsanitize=fuzzer,address,undefined, or together with tests/fuzz/main.c. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "hash/murmur3.h"
#include "wire/message.h"

/* Small numbers, since large ones show nothing more and take longer. */
enum { CONTROL = 6, FIT_HEADER = 0x80, FIT_LENGTH = 0x40, SPANS = 1200, NUMBERS = 1300 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct sar_layout layout_from(const uint8_t *control)
{
    static const size_t sizes[] = { 4, 8, 12, 256 };
    return (struct sar_layout){ .span = (control[2] + 256u * control[3]) % SPANS,
                                .element_size = sizes[control[0] % 4],
                                .index_size = control[0] & 4 ? 8 : 4,
                                .zero_is_absent = (control[0] & 8) != 0 };
}

static uint64_t nnz_from(const uint8_t *control)
{
    return (control[4] + 256u * control[5]) % NUMBERS;
}

static uint16_t wire_from(uint8_t control)
{
    uint16_t wires = 0;
    while (sar_wires[wires] != NULL)
        wires++;
    return (uint16_t)((control & 0x3f) % wires);
}

static void seal(struct sar_header *header)
{
    uint32_t hash = 0, word;
    for (size_t i = 0; i < offsetof(struct sar_header, check); i += sizeof word) {
        memcpy(&word, (const char *)header + i, sizeof word);
        hash = sar_murmur3(word, hash);
    }
    header->check = hash;
}

/* The message in memory of exactly its size; its payload is cut or padded with zeros to `bytes`. */
static struct sar_message message_from(const struct sar_header *header, const uint8_t *payload, size_t size,
                                       uint64_t bytes)
{
    struct sar_message message = { malloc(SAR_HEADER_BYTES + bytes), SAR_HEADER_BYTES + bytes };
    if (message.buffer == NULL)
        abort();
    memcpy(message.buffer, header, SAR_HEADER_BYTES);
    unsigned char *to = (unsigned char *)message.buffer + SAR_HEADER_BYTES;
    memset(to, 0, bytes);
    if (size != 0)
        memcpy(to, payload, size < bytes ? size : bytes);
    return message;
}

static void check_run(const struct sar_layout *layout, const struct sar_run *run)
{
    unsigned char any = 0;
    if (run->nnz > layout->span)
        abort();
    for (size_t i = 0; i < run->nnz; i++) {
        uint64_t index = sar_index_get(run->index, layout->index_size, i);
        if (index >= layout->span || (i > 0 && index <= sar_index_get(run->index, layout->index_size, i - 1)))
            abort();
        for (size_t k = 0; k < layout->element_size; k++)
            any |= ((const unsigned char *)run->value)[i * layout->element_size + k];
    }
    volatile unsigned char read = any; /* so that reading the values is not left out */
    (void)read;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sar_arena arena = { 0 };
    struct sar_run run = { NULL, NULL, 0 };
    if (size < CONTROL + SAR_HEADER_BYTES)
        return 0;
    struct sar_envelope envelope = { layout_from(data), 1, 2, 0 };
    uint16_t wire = wire_from(data[1]);
    const uint8_t *payload = data + CONTROL;
    struct sar_header header;
    memcpy(&header, payload, sizeof header);
    if (data[1] & FIT_HEADER) {
        header = (struct sar_header){ .magic = SAR_MAGIC,
                                      .version = SAR_HEADER_VERSION,
                                      .wire = wire,
                                      .fingerprint = 1,
                                      .epoch = 2,
                                      .span = envelope.layout.span };
        header.nnz = nnz_from(data);
    } else {
        payload += sizeof header;
    }
    uint64_t bytes = (uint64_t)(data + size - payload);
    if (data[1] & FIT_LENGTH)
        bytes = sar_wires[wire]->least(&envelope.layout, nnz_from(data));
    if (data[1] & FIT_HEADER) {
        header.bytes = bytes;
        seal(&header);
    }
    struct sar_message message = message_from(&header, payload, (size_t)(data + size - payload), bytes);
    if (sar_message_decode(&envelope, &message, &arena, &run) == SAR_OK)
        check_run(&envelope.layout, &run);
    sar_arena_free(&arena);
    free(message.buffer);
    return 0;
}
