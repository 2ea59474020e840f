/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests messages: header fields and their checks, truncation, flipped bits, and failure messages. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "generate.h"
#include "wire/message.h"

enum { SPAN = 130, ROOM = 20 };

static struct sar_msg_key msg_key_make(void)
{
    return (
        struct sar_msg_key){ { SPAN, 4, 1, 4, true, SAR_PRECISION_FULL }, 0x12345678, 77, 0xfeedfacecafe };
}

/* A float vector in a vector of SPAN elements. */
static struct sar_spvec sample_run(struct sar_vec_desc *shape)
{
    struct rng rng = { 1 };
    uint64_t index[ROOM];
    *shape = vec_desc_make(SAR_FLOAT, SAR_SUM, SPAN, 1);
    size_t nnz = patterns[9].choose(&patterns[9], SPAN, ROOM, &rng, index);
    assert_in_range(nnz, 5, ROOM);
    return spvec_make(shape, index, nnz, VALUES_INEXACT, &rng);
}

static struct sar_msg sample_message(const struct sar_wire *wire, struct sar_arena *arena)
{
    struct sar_msg_key msg_key = msg_key_make();
    struct sar_vec_desc shape;
    struct sar_msg message;
    struct sar_spvec run = sample_run(&shape);
    assert_int_equal(sar_msg_encode(&msg_key, wire, &run, arena, &message), SAR_OK);
    spvec_free(&run);
    return message;
}

/* Decode a copy of the first `bytes` bytes, in memory of exactly their size. */
static enum sar_status try_decode(struct sar_msg_key *msg_key, const void *buffer, uint64_t bytes)
{
    struct sar_msg copy = { .buffer = memcpy(exact_alloc(bytes), buffer, bytes), .bytes = bytes };
    struct sar_arena arena = { 0 };
    struct sar_spvec run = { NULL, NULL, 0 };
    enum sar_status status = sar_msg_decode(msg_key, &copy, &arena, &run);
    if (status == SAR_OK)
        assert_true(spvec_ascends(&run, msg_key->layout.index_size, msg_key->layout.slots));
    sar_arena_free(&arena);
    free(copy.buffer);
    return status;
}

static void test_round_trips(void **state)
{
    (void)state;
    for (size_t w = 0; sar_wires[w] != NULL; w++) {
        struct sar_msg_key msg_key = msg_key_make();
        struct sar_arena arena = { 0 };
        struct sar_vec_desc shape;
        struct sar_spvec run = sample_run(&shape), arrived;
        struct sar_msg message = sample_message(sar_wires[w], &arena);
        assert_int_equal((uintptr_t)message.buffer % SAR_ALIGNMENT, 0);
        assert_int_equal(message.bytes,
                         SAR_MSG_HEADER_BYTES + sar_wire_bytes(sar_wires[w], &msg_key.layout, &run));
        msg_key.user_word = 0;
        assert_int_equal(sar_msg_decode(&msg_key, &message, &arena, &arrived), SAR_OK);
        assert_true(spvec_equal(&shape, &run, &arrived));
        assert_int_equal(msg_key.user_word, 0xfeedfacecafe);
        spvec_free(&run);
        sar_arena_free(&arena);
    }
}

/* Values alone: the receiver has the indices. */
static enum sar_status decode_values(const void *buffer, uint64_t bytes, uint32_t index_hash, size_t nnz,
                                     struct sar_spvec *vec)
{
    struct sar_msg_key msg_key = msg_key_make();
    struct sar_msg copy = { .buffer = memcpy(exact_alloc(bytes), buffer, bytes), .bytes = bytes };
    struct sar_arena arena = { 0 };
    vec->nnz = nnz;
    enum sar_status status = sar_msg_decode_values(&msg_key, index_hash, &copy, &arena, vec);
    assert_true(status != SAR_OK || msg_key.user_word == 0xfeedfacecafe);
    sar_arena_free(&arena);
    free(copy.buffer);
    return status;
}

static void test_values_alone(void **state)
{
    (void)state;
    struct sar_msg_key msg_key = msg_key_make();
    struct sar_arena arena = { 0 };
    struct sar_vec_desc shape;
    struct sar_spvec run = sample_run(&shape), known = { run.index, NULL, run.nnz }, arrived;
    struct sar_msg message;
    uint32_t hash = sar_msg_index_hash(&run);
    assert_int_equal(sar_msg_encode_values(&msg_key, hash, &run, &arena, &message), SAR_OK);
    assert_int_equal(message.bytes, SAR_MSG_HEADER_BYTES + run.nnz * shape.element_size);
    assert_int_equal(sar_msg_decode_values(&msg_key, hash, &message, &arena, &known), SAR_OK);
    assert_true(spvec_equal(&shape, &run, &known));
    assert_int_equal(sar_msg_decode(&msg_key, &message, &arena, &arrived), SAR_CORRUPT);
    arrived = known;
    assert_int_equal(decode_values(message.buffer, message.bytes, hash ^ 1, run.nnz, &arrived), SAR_CORRUPT);
    assert_int_equal(decode_values(message.buffer, message.bytes, hash, run.nnz - 1, &arrived), SAR_CORRUPT);
    for (uint64_t bytes = 1; bytes < message.bytes; bytes++)
        assert_int_equal(decode_values(message.buffer, bytes, hash, run.nnz, &arrived), SAR_CORRUPT);
    for (size_t bit = 0; bit < 8 * (size_t)SAR_MSG_HEADER_BYTES; bit++) {
        unsigned char *byte = (unsigned char *)message.buffer + bit / 8;
        *byte ^= (unsigned char)(1 << bit % 8);
        assert_int_equal(decode_values(message.buffer, message.bytes, hash, run.nnz, &arrived), SAR_CORRUPT);
        *byte ^= (unsigned char)(1 << bit % 8);
    }
    assert_int_not_equal(sar_msg_index_hash(&(struct sar_spvec){ run.index, NULL, run.nnz - 1 }), hash);
    spvec_free(&run);
    sar_arena_free(&arena);
}

static void test_the_header(void **state)
{
    (void)state;
    for (uint16_t w = 0; sar_wires[w] != NULL; w++) {
        struct sar_arena arena = { 0 };
        struct sar_msg message = sample_message(sar_wires[w], &arena);
        struct sar_msg_header header, sealed;
        memcpy(&header, message.buffer, sizeof header);
        assert_int_equal(header.magic, SAR_MSG_MAGIC);
        assert_int_equal(header.version, SAR_MSG_HEADER_VERSION);
        assert_int_equal(header.wire, w);
        assert_int_equal(header.fingerprint, 0x12345678);
        assert_int_equal(header.epoch, 77);
        assert_int_equal(header.slots, SPAN);
        assert_int_equal(header.bytes, message.bytes - SAR_MSG_HEADER_BYTES);
        assert_int_equal(header.precision, SAR_PRECISION_FULL);
        assert_int_equal(header.detached | header.index_hash, 0);
        sealed = header;
        header_set_check(&sealed);
        assert_int_equal(header.checksum, sealed.checksum);
        sar_arena_free(&arena);
    }
}

/* One wrong field under a right checksum, so that the field's own check runs. */
struct wrong {
    const char *what;
    size_t offset, size;
    uint64_t add;
    enum sar_status status;
};

#define FIELD(name) offsetof(struct sar_msg_header, name), sizeof((struct sar_msg_header *)NULL)->name

static const struct wrong wrongs[] = {
    { "nothing", FIELD(user_word), 0, SAR_OK },
    { "magic", FIELD(magic), 1, SAR_CORRUPT },
    { "magic of the other byte order", FIELD(magic), 0x31524153u - SAR_MSG_MAGIC, SAR_CORRUPT },
    { "version", FIELD(version), 1, SAR_CORRUPT },
    { "older version", FIELD(version), (uint64_t)-1, SAR_CORRUPT },
    { "fingerprint", FIELD(fingerprint), 1, SAR_CORRUPT },
    { "epoch", FIELD(epoch), 1, SAR_CORRUPT },
    { "earlier epoch", FIELD(epoch), (uint64_t)-1, SAR_CORRUPT },
    { "format behind the last", FIELD(wire), 1000, SAR_CORRUPT },
    { "span", FIELD(slots), 1, SAR_CORRUPT },
    { "values", FIELD(precision), 1, SAR_CORRUPT },
    { "values behind the last", FIELD(precision), 3, SAR_CORRUPT },
    { "smaller span", FIELD(slots), (uint64_t)-1, SAR_CORRUPT },
    { "more bytes", FIELD(bytes), 1, SAR_CORRUPT },
    { "fewer bytes", FIELD(bytes), (uint64_t)-1, SAR_CORRUPT },
    { "more bytes than memory has", FIELD(bytes), (uint64_t)-65, SAR_CORRUPT },
    { "more elements than the span", FIELD(nnz), SPAN, SAR_CORRUPT },
    { "elements beyond count", FIELD(nnz), (uint64_t)1 << 61, SAR_CORRUPT },
    { "fewer elements", FIELD(nnz), (uint64_t)-1, SAR_CORRUPT },
};

static void corrupt(unsigned char *buffer, const struct wrong *wrong, bool seal)
{
    struct sar_msg_header header;
    uint64_t value = 0;
    memcpy(&value, buffer + wrong->offset, wrong->size);
    value += wrong->add;
    memcpy(buffer + wrong->offset, &value, wrong->size);
    memcpy(&header, buffer, sizeof header);
    if (seal)
        header_set_check(&header);
    memcpy(buffer, &header, sizeof header);
}

static void test_malformed_headers(void **state)
{
    (void)state;
    for (size_t w = 0; sar_wires[w] != NULL; w++) {
        for (size_t i = 0; i < LENGTH(wrongs); i++) {
            struct sar_arena arena = { 0 };
            struct sar_msg message = sample_message(sar_wires[w], &arena);
            struct sar_msg_key msg_key = msg_key_make();
            corrupt(message.buffer, &wrongs[i], true);
            enum sar_status status = try_decode(&msg_key, message.buffer, message.bytes);
            if (status != wrongs[i].status)
                fail_msg("%s, wrong %s: status %d", sar_wires[w]->name, wrongs[i].what, (int)status);
            sar_arena_free(&arena);
        }
    }
}

/* The number of a format that does not match the payload. */
static void test_mismatched_format(void **state)
{
    (void)state;
    for (uint16_t w = 0; sar_wires[w] != NULL; w++) {
        for (uint16_t other = 0; sar_wires[other] != NULL; other++) {
            struct sar_arena arena = { 0 };
            struct sar_msg message = sample_message(sar_wires[w], &arena);
            struct sar_msg_key msg_key = msg_key_make();
            struct wrong wrong = { "", FIELD(wire), (uint64_t)other - w, SAR_CORRUPT };
            corrupt(message.buffer, &wrong, true);
            assert_int_equal(try_decode(&msg_key, message.buffer, message.bytes),
                             other == w ? SAR_OK : SAR_CORRUPT);
            sar_arena_free(&arena);
        }
    }
}

/* Sender and receiver expect different things: another layout, call, or epoch. */
static void test_other_expectations(void **state)
{
    (void)state;
    for (size_t w = 0; sar_wires[w] != NULL; w++) {
        struct sar_arena arena = { 0 };
        struct sar_msg message = sample_message(sar_wires[w], &arena);
        struct sar_msg_key others[] = { msg_key_make(), msg_key_make(), msg_key_make(), msg_key_make(),
                                        msg_key_make() };
        others[0].layout.slots++;
        others[1].layout.slots--;
        others[2].layout.element_size = 8;
        others[3].fingerprint ^= 1;
        others[4].epoch++;
        for (size_t i = 0; i < LENGTH(others); i++)
            assert_int_equal(try_decode(&others[i], message.buffer, message.bytes), SAR_CORRUPT);
        sar_arena_free(&arena);
    }
}

/* Every flipped bit of the header is refused; a flipped bit of the payload is refused or harmless. */
static void test_single_bit_flips(void **state)
{
    (void)state;
    for (size_t w = 0; sar_wires[w] != NULL; w++) {
        struct sar_arena arena = { 0 };
        struct sar_msg message = sample_message(sar_wires[w], &arena);
        unsigned char *buffer = message.buffer;
        for (size_t bit = 0; bit < 8 * message.bytes; bit++) {
            struct sar_msg_key msg_key = msg_key_make();
            buffer[bit / 8] ^= (unsigned char)(1u << (bit % 8));
            enum sar_status status = try_decode(&msg_key, buffer, message.bytes);
            assert_true(status == SAR_CORRUPT || (status == SAR_OK && bit >= 8 * SAR_MSG_HEADER_BYTES));
            buffer[bit / 8] ^= (unsigned char)(1u << (bit % 8));
        }
        sar_arena_free(&arena);
    }
}

/* Every flipped bit of the header under a right checksum, so that the checks of fields must detect it. */
static void test_single_bit_flips_with_right_checksum(void **state)
{
    (void)state;
    for (size_t w = 0; sar_wires[w] != NULL; w++) {
        for (size_t bit = 0; bit < 8 * offsetof(struct sar_msg_header, checksum); bit++) {
            struct sar_arena arena = { 0 };
            struct sar_msg message = sample_message(sar_wires[w], &arena);
            struct sar_msg_key msg_key = msg_key_make();
            struct wrong nothing = { "", FIELD(user_word), 0, SAR_OK };
            ((unsigned char *)message.buffer)[bit / 8] ^= (unsigned char)(1u << (bit % 8));
            corrupt(message.buffer, &nothing, true);
            enum sar_status status = try_decode(&msg_key, message.buffer, message.bytes);
            bool free_to_differ = bit / 8 >= offsetof(struct sar_msg_header, user_word) &&
                                  bit / 32 != offsetof(struct sar_msg_header, precision) / 4;
            assert_true(status == SAR_CORRUPT || status == SAR_OK);
            if (free_to_differ)
                assert_int_equal(status, SAR_OK);
            sar_arena_free(&arena);
        }
    }
}

/* Truncate at any position, also with a header that announces the shorter length, and append one byte. */
static void test_lengths(void **state)
{
    (void)state;
    for (size_t w = 0; sar_wires[w] != NULL; w++) {
        struct sar_arena arena = { 0 };
        struct sar_msg message = sample_message(sar_wires[w], &arena);
        struct sar_msg_key msg_key = msg_key_make();
        unsigned char *longer = memcpy(exact_alloc(message.bytes + 1), message.buffer, message.bytes);
        longer[message.bytes] = 0;
        assert_int_equal(try_decode(&msg_key, longer, message.bytes), SAR_OK);
        assert_int_equal(try_decode(&msg_key, longer, message.bytes + 1), SAR_CORRUPT);
        for (uint64_t bytes = 0; bytes < message.bytes; bytes++) {
            memcpy(longer, message.buffer, message.bytes);
            assert_int_equal(try_decode(&msg_key, longer, bytes), SAR_CORRUPT);
            struct wrong told = { "", FIELD(bytes), bytes - message.bytes, SAR_CORRUPT };
            corrupt(longer, &told, true);
            assert_int_equal(try_decode(&msg_key, longer, bytes), SAR_CORRUPT);
        }
        free(longer);
        sar_arena_free(&arena);
    }
}

/* A failed rank sends a header alone; that of another call is ignored. */
static void test_failure_messages(void **state)
{
    struct sar_msg_key msg_key = msg_key_make(), other = msg_key_make();
    struct sar_msg_header header, wrong;
    (void)state;
    memset(&header, 0xff, sizeof header);
    sar_msg_failure(&msg_key, &header);
    assert_int_equal(try_decode(&msg_key, &header, sizeof header), SAR_PEER_FAILED);
    other.epoch++;
    assert_int_equal(try_decode(&other, &header, sizeof header), SAR_CORRUPT);
    wrong = header;
    wrong.checksum ^= 1;
    assert_int_equal(try_decode(&msg_key, &wrong, sizeof wrong), SAR_CORRUPT);
    assert_int_equal(try_decode(&msg_key, &header, sizeof header - 1), SAR_CORRUPT);
}

/* A refused message changes neither the user word nor the vector. */
static void test_refusals_change_nothing(void **state)
{
    struct sar_msg_key msg_key = msg_key_make();
    struct sar_arena arena = { 0 };
    struct sar_msg message = sample_message(sar_wires[0], &arena);
    struct sar_spvec run = { &msg_key, &message, 5 };
    (void)state;
    message.bytes--;
    msg_key.user_word = 3;
    assert_int_equal(sar_msg_decode(&msg_key, &message, &arena, &run), SAR_CORRUPT);
    assert_int_equal(msg_key.user_word, 3);
    assert_true(run.index == &msg_key && run.value == &message && run.nnz == 5);
    sar_arena_free(&arena);
}

/* Sizes beyond the maximum of a message are refused. */
static void test_sizes_that_overflow(void **state)
{
    struct sar_msg_key msg_key = { { UINT64_MAX, 256, 64, 8, false, SAR_PRECISION_FULL }, 1, 1, 0 };
    struct sar_spvec run = { NULL, NULL, SIZE_MAX / 2 };
    (void)state;
    for (size_t w = 0; sar_wires[w] != NULL; w++) {
        struct sar_arena arena = { 0 };
        struct sar_msg message = { .buffer = &run, .bytes = 1 };
        assert_int_equal(sar_msg_encode(&msg_key, sar_wires[w], &run, &arena, &message), SAR_NO_MEMORY);
        assert_true(message.buffer == &run && message.bytes == 1);
        sar_arena_free(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trips),
        cmocka_unit_test(test_values_alone),
        cmocka_unit_test(test_the_header),
        cmocka_unit_test(test_malformed_headers),
        cmocka_unit_test(test_mismatched_format),
        cmocka_unit_test(test_other_expectations),
        cmocka_unit_test(test_single_bit_flips),
        cmocka_unit_test(test_single_bit_flips_with_right_checksum),
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_failure_messages),
        cmocka_unit_test(test_refusals_change_nothing),
        cmocka_unit_test(test_sizes_that_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
