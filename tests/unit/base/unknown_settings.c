/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests the detection of environment variables that look like settings and are unknown. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/config.h"
#include "generate.h"

static void test_unknown_names(void **state)
{
    char *const environment[] = {
        (char *)"HOME=here",
        (char *)"MPIX_SPARSE_SCHEME=dense",
        (char *)"MPIX_SPARSE_SCHEM=dense",
        (char *)"MPIX_SPARSE_SCHEMES=",
        (char *)"MPIX_SPARSE_=1",
        (char *)"MPIX_SPARSE=1",
        (char *)"MPIX_SPARSE_scheme=1",
        (char *)"MPIX_SPARSE_PROFILE_EVERY",
        (char *)"XMPIX_SPARSE_FOO=1",
        (char *)"MPIX_SPARSE_FOO",
        (char *)"",
        NULL,
    };
    static const char *const unknown[] = { "MPIX_SPARSE_SCHEM", "MPIX_SPARSE_SCHEMES", "MPIX_SPARSE_",
                                           "MPIX_SPARSE_scheme", "MPIX_SPARSE_FOO" };
    size_t at = 0, length = 0;
    (void)state;
    for (size_t i = 0; i < LENGTH(unknown); i++) {
        const char *name = sar_config_unknown(environment, &at, &length);
        assert_non_null(name);
        assert_int_equal(length, strlen(unknown[i]));
        assert_memory_equal(name, unknown[i], length);
    }
    assert_null(sar_config_unknown(environment, &at, &length));
    assert_null(sar_config_unknown(environment, &at, &length));
}

/* Names of the library itself are known. */
static void test_known_names(void **state)
{
    const char *name, *fallback, *help;
    (void)state;
    for (size_t i = 0; sar_config_setting(i, &name, &fallback, &help); i++) {
        char entry[128];
        char *const environment[] = { entry, NULL };
        size_t at = 0, length;
        snprintf(entry, sizeof entry, "MPIX_SPARSE_%s=%s", name, fallback);
        assert_null(sar_config_unknown(environment, &at, &length));
        assert_int_equal(at, 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unknown_names),
        cmocka_unit_test(test_known_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
