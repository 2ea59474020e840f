/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests distances between names, and which setting a misspelt one is nearest to. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <limits.h>
#include <string.h>

#include "base/config.h"
#include "base/nearest.h"

static unsigned distance(const char *a, const char *b)
{
    unsigned found = sar_edit_distance(a, strlen(a), b);
    assert_int_equal(sar_edit_distance(b, strlen(b), a), found);
    return found;
}

static void test_distances(void **state)
{
    char longest[65];
    (void)state;
    assert_int_equal(distance("", ""), 0);
    assert_int_equal(distance("", "abc"), 3);
    assert_int_equal(distance("SCHEME", "scheme"), 0);
    assert_int_equal(distance("SHEME", "SCHEME"), 1);
    assert_int_equal(distance("kitten", "sitting"), 3);
    assert_int_equal(distance("flaot", "float"), 1);
    assert_int_equal(distance("ba", "ab"), 1);
    assert_int_equal(distance("ca", "abc"), 3);
    assert_int_equal(sar_edit_distance("SCHEME=ring", 6, "SCHEME"), 0);
    memset(longest, 'a', 64);
    longest[64] = '\0';
    assert_int_equal(distance(longest + 1, "a"), 62);
    assert_int_equal(distance(longest, "a"), UINT_MAX);
}

static void test_nearest(void **state)
{
    (void)state;
    assert_string_equal(sar_config_nearest("sheme", 5), "SCHEME");
    assert_string_equal(sar_config_nearest("LOG_FLIE=warn", 8), "LOG_FILE");
    assert_string_equal(sar_config_nearest("SCHEME", 6), "SCHEME");
    assert_null(sar_config_nearest("", 0));
    assert_null(sar_config_nearest("COLOUR_OF_EYES", 14));
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_distances), cmocka_unit_test(test_nearest) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
