/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests the growable array: it keeps its data, refuses impossible sizes, and releases excess memory. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/buffer.h"

static void test_growing(void **state)
{
    struct sar_buffer buffer = { 0 };
    (void)state;
    assert_int_equal(sar_buffer_reserve(&buffer, 0, 8), SAR_OK);
    assert_non_null(buffer.memory);
    assert_int_equal(sar_buffer_reserve(&buffer, 1000, 1), SAR_OK);
    memset(buffer.memory, 7, 1000);
    assert_int_equal(sar_buffer_reserve(&buffer, 1000000, 4), SAR_OK);
    for (size_t i = 0; i < 1000; i++)
        assert_int_equal(((unsigned char *)buffer.memory)[i], 7);
    memset(buffer.memory, 7, 4000000);
    sar_buffer_free(&buffer);
    assert_null(buffer.memory);
}

static void test_overflow(void **state)
{
    struct sar_buffer buffer = { 0 };
    (void)state;
    assert_int_equal(sar_buffer_reserve(&buffer, 10, 1), SAR_OK);
    struct sar_buffer before = buffer;
    assert_int_equal(sar_buffer_reserve(&buffer, SIZE_MAX / 4, 8), SAR_NO_MEMORY);
    assert_int_equal(sar_buffer_reserve(&buffer, SIZE_MAX, 1), SAR_NO_MEMORY);
    assert_ptr_equal(buffer.memory, before.memory);
    assert_int_equal(buffer.bytes, before.bytes);
    sar_buffer_free(&buffer);
}

static size_t bytes_after(struct sar_buffer *buffer, size_t use)
{
    assert_int_equal(sar_buffer_reserve(buffer, use, 1), SAR_OK);
    sar_buffer_reset(buffer);
    return buffer->bytes;
}

/* Memory is kept until many consecutive uses have needed less than a quarter of it. */
static void test_reset(void **state)
{
    static const size_t uses[] = { 1000000, 900000, 400000, 200000, 100, 1000000 };
    struct sar_buffer buffer = { 0 };
    (void)state;
    for (size_t i = 0; i < sizeof uses / sizeof *uses; i++)
        assert_true(bytes_after(&buffer, uses[i]) >= 1000000);
    for (int use = 1; use < SAR_TRIM_USES; use++)
        assert_true(bytes_after(&buffer, 200000) >= 1000000);
    assert_int_equal(bytes_after(&buffer, 200000), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_growing),
        cmocka_unit_test(test_overflow),
        cmocka_unit_test(test_reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
