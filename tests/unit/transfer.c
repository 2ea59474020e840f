/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages in pieces: what a sender cuts the receiver puts together, and it knows which piece is the last.
 * A piece that is too long, and all behind it, has no place. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include "net/transfer.h"

enum { CHUNK = 8192, MOST = 5 * CHUNK };

static unsigned char memory[MOST];

/* As the exchange does: the first of several pieces is there when the receiver learns how many bytes come. */
static void *place_of(struct sar_receiving *r, uint64_t piece, uint64_t bytes)
{
    if (!sar_receiving_begins(r))
        return sar_receiving_next(r, piece);
    bool whole = sar_receiving_ends(r, piece, CHUNK);
    r->buffer = memory;
    r->bytes = whole ? piece : bytes;
    if (whole)
        return sar_receiving_next(r, piece);
    r->seen = piece;
    return memory;
}

static void move(uint64_t bytes)
{
    struct sar_sending s = { .buffer = memory, .bytes = bytes };
    struct sar_receiving r = { .open = true };
    do {
        uint64_t before = s.sent, piece = (uint64_t)sar_sending_next(&s, CHUNK);
        assert_true(piece <= CHUNK && s.sent == before + piece);
        bool last = sar_receiving_ends(&r, piece, CHUNK);
        assert_ptr_equal(place_of(&r, piece, bytes), memory + before);
        assert_int_equal(last, !s.open);
    } while (s.open);
    assert_int_equal(s.sent, bytes);
    assert_int_equal(r.seen, bytes);
}

/* All that is behind the header, each piece from its place and to its place. */
static void move_apart(uint64_t bytes)
{
    static unsigned char from[MOST], to[MOST];
    struct sar_sending s = { .buffer = memory, .bytes = SAR_HEADER_BYTES + bytes, .payload = from };
    struct sar_receiving r = { .open = true };
    assert_ptr_equal(sar_sending_at(&s), memory);
    assert_int_equal(sar_sending_next(&s, CHUNK), SAR_FIRST_PIECE);
    assert_true(s.open && !sar_receiving_ends(&r, SAR_FIRST_PIECE, CHUNK));
    r = (struct sar_receiving){
        .buffer = memory, .bytes = s.bytes, .seen = SAR_HEADER_BYTES, .open = true, .payload = to
    };
    while (s.open) {
        uint64_t done = s.sent - SAR_HEADER_BYTES;
        assert_ptr_equal(sar_sending_at(&s), from + done);
        uint64_t piece = (uint64_t)sar_sending_next(&s, CHUNK);
        bool last = sar_receiving_ends(&r, piece, CHUNK);
        assert_ptr_equal(sar_receiving_next(&r, piece), to + done);
        assert_int_equal(last, !s.open);
    }
    assert_int_equal(s.sent, s.bytes);
    assert_int_equal(r.seen, s.bytes);
    assert_null(sar_receiving_next(&r, 1));
}

static void test_payloads_arrive_elsewhere(void **state)
{
    static const uint64_t sizes[] = { 1,         8,     SAR_FIRST_PIECE - SAR_HEADER_BYTES,
                                      CHUNK - 1, CHUNK, CHUNK + 1,
                                      3 * CHUNK };
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        move_apart(sizes[i]);
}

static void test_all_arrives(void **state)
{
    static const uint64_t units[] = { SAR_FIRST_PIECE, CHUNK };
    (void)state;
    for (uint64_t unit = 0; unit < 2; unit++)
        for (uint64_t at = 0; at + 1 < MOST; at += units[unit])
            for (uint64_t bytes = at == 0 ? 0 : at - 1; bytes <= at + 1; bytes++)
                move(bytes);
}

static void test_what_does_not_fit_has_no_place(void **state)
{
    struct sar_receiving r = { .buffer = memory, .bytes = CHUNK, .seen = SAR_FIRST_PIECE, .open = true };
    (void)state;
    assert_ptr_equal(sar_receiving_next(&r, CHUNK - SAR_FIRST_PIECE), memory + SAR_FIRST_PIECE);
    assert_null(sar_receiving_next(&r, 1));
    assert_null(sar_receiving_next(&r, 0));
}

static void test_what_is_over_has_no_place(void **state)
{
    struct sar_receiving r = { .buffer = memory, .bytes = CHUNK };
    (void)state;
    assert_false(sar_receiving_begins(&r));
    assert_null(sar_receiving_next(&r, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_arrives),
        cmocka_unit_test(test_payloads_arrive_elsewhere),
        cmocka_unit_test(test_what_does_not_fit_has_no_place),
        cmocka_unit_test(test_what_is_over_has_no_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
