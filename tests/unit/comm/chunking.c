/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests messages in chunks. The receiver reassembles the sender's chunks, and knows which chunk is the last.
 * It refuses a chunk that is too long, and all chunks after it. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include "comm/chunking.h"

enum { CHUNK = 8192, MOST = 5 * CHUNK };

static unsigned char memory[MOST];

/* As in the exchange, the first of several chunks is present when the receiver learns the message's size. */
static void *place_of(struct sar_chunked_recv *r, uint64_t piece, uint64_t bytes)
{
    if (!sar_chunked_recv_is_first(r))
        return sar_chunked_recv_next(r, piece);
    bool whole = sar_chunked_recv_is_last(r, piece, CHUNK);
    r->buffer = memory;
    r->bytes = whole ? piece : bytes;
    if (whole)
        return sar_chunked_recv_next(r, piece);
    r->received = piece;
    return memory;
}

static void move(uint64_t bytes)
{
    struct sar_chunked_send s = { .buffer = memory, .bytes = bytes };
    struct sar_chunked_recv r = { .incomplete = true };
    do {
        uint64_t before = s.sent, piece = (uint64_t)sar_chunked_send_next(&s, CHUNK);
        assert_true(piece <= CHUNK && s.sent == before + piece);
        bool last = sar_chunked_recv_is_last(&r, piece, CHUNK);
        assert_ptr_equal(place_of(&r, piece, bytes), memory + before);
        assert_int_equal(last, !s.incomplete);
    } while (s.incomplete);
    assert_int_equal(s.sent, bytes);
    assert_int_equal(r.received, bytes);
}

/* Move everything after the header, each chunk from and to its own position. */
static void move_apart(uint64_t bytes)
{
    static unsigned char from[MOST], to[MOST];
    struct sar_chunked_send s = { .buffer = memory, .bytes = SAR_MSG_HEADER_BYTES + bytes, .payload = from };
    struct sar_chunked_recv r = { .incomplete = true };
    assert_ptr_equal(sar_chunked_send_data(&s), memory);
    assert_int_equal(sar_chunked_send_next(&s, CHUNK), SAR_FIRST_CHUNK_BYTES);
    assert_true(s.incomplete && !sar_chunked_recv_is_last(&r, SAR_FIRST_CHUNK_BYTES, CHUNK));
    r = (struct sar_chunked_recv){ .buffer = memory,
                                   .bytes = s.bytes,
                                   .received = SAR_MSG_HEADER_BYTES,
                                   .incomplete = true,
                                   .payload = to };
    while (s.incomplete) {
        uint64_t done = s.sent - SAR_MSG_HEADER_BYTES;
        assert_ptr_equal(sar_chunked_send_data(&s), from + done);
        uint64_t piece = (uint64_t)sar_chunked_send_next(&s, CHUNK);
        bool last = sar_chunked_recv_is_last(&r, piece, CHUNK);
        assert_ptr_equal(sar_chunked_recv_next(&r, piece), to + done);
        assert_int_equal(last, !s.incomplete);
    }
    assert_int_equal(s.sent, s.bytes);
    assert_int_equal(r.received, s.bytes);
    assert_null(sar_chunked_recv_next(&r, 1));
}

static void test_payloads_arrive_elsewhere(void **state)
{
    static const uint64_t sizes[] = { 1,         8,     SAR_FIRST_CHUNK_BYTES - SAR_MSG_HEADER_BYTES,
                                      CHUNK - 1, CHUNK, CHUNK + 1,
                                      3 * CHUNK };
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        move_apart(sizes[i]);
}

static void test_all_arrives(void **state)
{
    static const uint64_t units[] = { SAR_FIRST_CHUNK_BYTES, CHUNK };
    (void)state;
    for (uint64_t unit = 0; unit < 2; unit++)
        for (uint64_t at = 0; at + 1 < MOST; at += units[unit])
            for (uint64_t bytes = at == 0 ? 0 : at - 1; bytes <= at + 1; bytes++)
                move(bytes);
}

static void test_oversized_chunk_is_refused(void **state)
{
    struct sar_chunked_recv r = {
        .buffer = memory, .bytes = CHUNK, .received = SAR_FIRST_CHUNK_BYTES, .incomplete = true
    };
    (void)state;
    assert_ptr_equal(sar_chunked_recv_next(&r, CHUNK - SAR_FIRST_CHUNK_BYTES),
                     memory + SAR_FIRST_CHUNK_BYTES);
    assert_null(sar_chunked_recv_next(&r, 1));
    assert_null(sar_chunked_recv_next(&r, 0));
}

static void test_excess_chunk_is_refused(void **state)
{
    struct sar_chunked_recv r = { .buffer = memory, .bytes = CHUNK };
    (void)state;
    assert_false(sar_chunked_recv_is_first(&r));
    assert_null(sar_chunked_recv_next(&r, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_arrives),
        cmocka_unit_test(test_payloads_arrive_elsewhere),
        cmocka_unit_test(test_oversized_chunk_is_refused),
        cmocka_unit_test(test_excess_chunk_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
