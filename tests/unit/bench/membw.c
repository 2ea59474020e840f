/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests that the benchmark's memory bounds write the bytes they should, by every kind of store. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "bench/lib/base.h"
#include "bench/limits/membw.h"

enum { GROUPS = 7, ROOM = GROUPS * PERF_GROUP_BYTES + 100 };

static unsigned char *written;

static int open_room(void **state)
{
    (void)state;
    written = aligned_alloc(PERF_CACHE_LINE, (ROOM / PERF_CACHE_LINE + 1) * PERF_CACHE_LINE);
    return written == NULL;
}

static int close_room(void **state)
{
    (void)state;
    free(written);
    return 0;
}

static void test_fill(void **state)
{
    static const size_t sizes[] = { 0, 1, 63, 64, 4095, 4096, 4097, 5 * 4096, ROOM - 1 };
    (void)state;
    for (size_t s = 0; s < 2 * sizeof sizes / sizeof *sizes; s++) {
        size_t bytes = sizes[s / 2];
        memset(written, 1, ROOM);
        perf_membw_fill(written, bytes, s % 2 == 1);
        for (size_t i = 0; i < ROOM; i++)
            assert_int_equal(written[i], i >= bytes);
    }
}

/* Number of bytes of a cache line to write. */
static size_t bytes_of(const uint64_t *lines, size_t line, bool whole)
{
    bool has = lines[line / PERF_GROUP_LINES] >> line % PERF_GROUP_LINES & 1;
    return !has ? 0 : whole ? PERF_CACHE_LINE : sizeof(uint64_t);
}

static void test_lines(void **state)
{
    static const uint64_t lines[GROUPS] = { 0, UINT64_MAX, 1, UINT64_C(1) << 63, 0x5a5a, 0, 3 };
    (void)state;
    for (int way = 0; way < 4; way++) {
        bool whole = way % 2 == 1, streams = way / 2 == 1;
        memset(written, 1, ROOM);
        perf_membw_fill_lines(written, lines, GROUPS, whole, streams);
        for (size_t i = 0; i < ROOM; i++) {
            size_t line = i / PERF_CACHE_LINE;
            size_t bytes = line < GROUPS * PERF_GROUP_LINES ? bytes_of(lines, line, whole || streams) : 0;
            assert_int_equal(written[i], i % PERF_CACHE_LINE >= bytes);
        }
    }
}

/* No read goes past the end; valgrind and sanitizers check this. */
static void test_read(void **state)
{
    static const size_t sizes[] = { 0, 1, 7, 64, 255, 256, 257, 10000 };
    (void)state;
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        unsigned char *exact = malloc(sizes[s] == 0 ? 1 : sizes[s]);
        assert_non_null(exact);
        memset(exact, 1, sizes[s]);
        perf_membw_read(exact, sizes[s]);
        free(exact);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fill),
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_read),
    };
    return cmocka_run_group_tests(tests, open_room, close_room);
}
