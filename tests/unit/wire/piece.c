/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests pieces of broadcasts in every format: round trips, truncation, flipped bits of the header, the checks
 * of numbers that are not sent, and the pieces of a root that failed. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "generate.h"
#include "wire/piece.h"

enum { SLOTS = 130, NNZ_MAX = 20, CAPACITY = 2048 };

static struct sar_msg_key key_make(void)
{
    return (struct sar_msg_key){ .layout = { SLOTS, 4, 1, 4, false, SAR_PRECISION_FULL },
                                 .fingerprint = 0x12345678,
                                 .epoch = 77 };
}

static struct sar_spvec sample(struct sar_vec_desc *desc)
{
    struct rng rng = { 1 };
    uint64_t index[NNZ_MAX];
    *desc = vec_desc_make(SAR_FLOAT, SAR_SUM, SLOTS, 1);
    size_t nnz = patterns[9].choose(&patterns[9], SLOTS, NNZ_MAX, &rng, index);
    return spvec_make(desc, index, nnz, VALUES_INEXACT, &rng);
}

/* Returns the bytes of the sample's piece. */
static uint64_t encode(const struct sar_wire *wire, void *buffer, uint64_t capacity)
{
    struct sar_msg_key key = key_make();
    struct sar_vec_desc desc;
    struct sar_spvec vec = sample(&desc);
    struct sar_piece piece = { .wire = wire, .user_word = 0xfeedfacecafe, .content_hash = 99 };
    uint64_t bytes = sar_piece_encode(&key, &piece, &vec, buffer, capacity);
    spvec_free(&vec);
    return bytes;
}

/* Opens a copy of the first `bytes` bytes, in memory of exactly their size. */
static enum sar_status open_copy(const struct sar_msg_key *key, const void *buffer, uint64_t bytes)
{
    struct sar_piece piece;
    void *copy = memcpy(exact_alloc(bytes), buffer, bytes);
    enum sar_status status = sar_piece_open(key, copy, bytes, &piece);
    free(copy);
    return status;
}

static void test_round_trips(void **state)
{
    (void)state;
    for (size_t i = 0; sar_wires[i] != NULL; i++) {
        _Alignas(SAR_ALIGNMENT) unsigned char buffer[CAPACITY];
        struct sar_msg_key key = key_make();
        struct sar_arena arena = { 0 };
        struct sar_vec_desc desc;
        struct sar_spvec vec = sample(&desc);
        struct sar_piece piece;
        uint64_t bytes = encode(sar_wires[i], buffer, CAPACITY);
        assert_int_equal(bytes, SAR_PIECE_HEADER_BYTES + sar_wire_bytes(sar_wires[i], &key.layout, &vec));
        assert_int_equal(sar_piece_open(&key, buffer, bytes, &piece), SAR_OK);
        assert_ptr_equal(piece.wire, sar_wires[i]);
        assert_int_equal(piece.user_word, 0xfeedfacecafe);
        assert_int_equal(piece.content_hash, 99);
        struct sar_spvec arrived = { NULL, NULL, piece.nnz };
        assert_int_equal(piece.wire->decode(&key.layout, piece.payload, piece.bytes, &arena, &arrived),
                         SAR_OK);
        assert_true(spvec_equal(&desc, &vec, &arrived));
        assert_int_equal(encode(sar_wires[i], buffer, bytes), bytes);
        assert_int_equal(encode(sar_wires[i], buffer, bytes - 1), 0);
        spvec_free(&vec);
        sar_arena_free(&arena);
    }
}

static void test_damage(void **state)
{
    (void)state;
    _Alignas(SAR_ALIGNMENT) unsigned char buffer[CAPACITY];
    struct sar_msg_key key = key_make();
    uint64_t bytes = encode(&sar_wire_coo, buffer, CAPACITY);
    assert_int_equal(open_copy(&key, buffer, bytes), SAR_OK);
    for (size_t bit = 0; bit < 8 * (size_t)SAR_PIECE_HEADER_BYTES; bit++) {
        buffer[bit / 8] ^= (unsigned char)(1 << bit % 8);
        assert_int_equal(open_copy(&key, buffer, bytes), SAR_CORRUPT);
        buffer[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    for (uint64_t n = 0; n < SAR_PIECE_HEADER_BYTES; n++)
        assert_int_equal(open_copy(&key, buffer, n), SAR_CORRUPT);
}

/* A piece of another call, or other slots of this one, is refused though its header is intact. */
static void test_other_keys(void **state)
{
    (void)state;
    _Alignas(SAR_ALIGNMENT) unsigned char buffer[CAPACITY];
    struct sar_msg_key keys[] = { key_make(), key_make(), key_make() };
    uint64_t bytes = encode(&sar_wire_coo, buffer, CAPACITY);
    keys[0].epoch++;
    keys[1].fingerprint++;
    keys[2].layout.slots++;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        assert_int_equal(open_copy(&keys[i], buffer, bytes), SAR_CORRUPT);
}

static void test_failed_root(void **state)
{
    (void)state;
    unsigned char buffer[SAR_PIECE_HEADER_BYTES];
    struct sar_msg_key key = key_make();
    sar_piece_failure(&key, buffer);
    assert_int_equal(open_copy(&key, buffer, sizeof buffer), SAR_PEER_FAILED);
    key.epoch++;
    assert_int_equal(open_copy(&key, buffer, sizeof buffer), SAR_CORRUPT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trips),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_other_keys),
        cmocka_unit_test(test_failed_root),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
