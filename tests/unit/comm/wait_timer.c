/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests when a wait is reported, and how ranks are listed. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "comm/watchdog.h"

/* Report once after the limit, and then each time that the wait has doubled. */
static void test_warnings(void **state)
{
    static const struct {
        double waited;
        bool tells;
    } looks[] = { { 0, false },   { 59.9, false }, { 60, true },   { 61, false },
                  { 119, false }, { 130, true },   { 259, false }, { 260, true } };
    struct sar_wait_timer stall = { 0, 0, 0 };
    (void)state;
    for (size_t i = 0; i < sizeof looks / sizeof *looks; i++)
        assert_int_equal(sar_wait_timer_must_warn(&stall, looks[i].waited, 60), looks[i].tells);
}

enum { RANKS = 8 };

/* Ranks in MPI_COMM_WORLD, which equal those of the communicator except for the last two; their places. */
static int numbers[RANKS] = { 0, 1, 2, 3, 4, 5, 60, 61 };
static struct sar_rank_place places[RANKS] = { { "a", 10 }, { "a", 11 }, { "a", 12 }, { "a", 13 },
                                               { "b", 10 }, { "b", 11 }, { "b", 12 }, { "c", 81206 } };

static bool is_marked(const void *marks, int rank)
{
    return ((const char *)marks)[rank] == 'x';
}

static void check_list(const char *marks, bool with_hosts, size_t room, const char *expected)
{
    char text[64];
    struct sar_rank_names rank_names = { (int)strlen(marks), numbers, with_hosts ? places : NULL };
    sar_rank_names_format(text, room, &rank_names, is_marked, marks);
    assert_string_equal(text, expected);
}

static void test_numbers(void **state)
{
    (void)state;
    check_list("", false, 64, "");
    check_list("...", false, 64, "");
    check_list("x", false, 64, "rank 0");
    check_list("..x.", false, 64, "rank 2");
    check_list("xx.x.xxx", false, 64, "ranks 0 to 1, 3, 5, 60 to 61");
    check_list("xxxxxxxx", false, 64, "ranks 0 to 5, 60 to 61");
}

static void test_hosts(void **state)
{
    (void)state;
    check_list("........", true, 64, "");
    check_list("..x.....", true, 64, "rank 2 on a (process 12)");
    check_list(".......x", true, 64, "rank 61 on c (process 81206)");
    check_list("xx.x.xxx", true, 64, "ranks 0 to 1, 3 on a; 5, 60 on b; 61 on c");
    check_list("xxxxxxxx", true, 64, "ranks 0 to 3 on a; 4 to 5, 60 on b; 61 on c");
}

/* An entry that does not fit is left out completely. */
static void test_room(void **state)
{
    (void)state;
    check_list("xx.x.xxx", false, 32, "ranks 0 to 1, 3, 5, 60 to 61");
    check_list("xx.x.xxx", false, 31, "ranks 0 to 1, 3, 5, ...");
    check_list("xx.x.xxx", false, 18, "ranks 0 to 1, ...");
    check_list("xx.x.xxx", false, 17, "ranks ...");
    check_list("..x.....", true, 9, "rank ...");
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_warnings), cmocka_unit_test(test_numbers),
                                        cmocka_unit_test(test_hosts), cmocka_unit_test(test_room) };
    return cmocka_run_group_tests_name("wait_timer", tests, NULL, NULL);
}
