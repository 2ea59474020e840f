/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests that every status has its own sentence, and that every sentence takes two texts. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/status.h"

/* Format the sentence with two texts, which it must contain in order. */
static void fill_in(int status, char *sentence, size_t room)
{
    const char *text = sar_status_text((enum sar_status)status);
    assert_non_null(text);
    int length = snprintf(sentence, room, text, "<first>", "<second>");
    assert_in_range(length, 20, room - 1);
    const char *first = strstr(sentence, "<first>"), *second = strstr(sentence, "<second>");
    assert_true(first != NULL && second != NULL && first < second);
}

static void test_sentences_take_two_texts(void **state)
{
    char sentence[256];
    (void)state;
    for (int status = 0; status < SAR_STATUSES; status++) {
        const char *percent = sar_status_text((enum sar_status)status);
        unsigned conversions = 0;
        for (; (percent = strchr(percent, '%')) != NULL; percent++, conversions++)
            assert_int_equal(percent[1], 's');
        assert_int_equal(conversions, 2);
        fill_in(status, sentence, sizeof sentence);
    }
}

static void test_sentences_differ(void **state)
{
    (void)state;
    for (int a = 0; a < SAR_STATUSES; a++) {
        for (int b = 0; b < a; b++)
            assert_string_not_equal(sar_status_text((enum sar_status)a), sar_status_text((enum sar_status)b));
    }
}

static void test_numbers_that_are_no_status(void **state)
{
    static const int numbers[] = { SAR_STATUSES, SAR_STATUSES + 1, 1000, -1 };
    char sentence[256];
    (void)state;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        fill_in(numbers[i], sentence, sizeof sentence);
        assert_non_null(strstr(sentence, "unknown"));
    }
}

/* The maximum of several ranks' statuses is the worst. A mismatch between ranks explains the errors that it
 * causes. */
static void test_order_of_severity(void **state)
{
    (void)state;
    assert_int_equal(SAR_OK, 0);
    assert_true(SAR_NO_MEMORY < SAR_PEER_FAILED);
    assert_true(SAR_PEER_FAILED < SAR_BAD_COUNT);
    for (int status = SAR_MISMATCHED_CALL; status <= SAR_MISMATCHED_IN_PLACE; status++)
        assert_true(status > SAR_BAD_INDEX);
}

static enum sar_status leave_with(enum sar_status status, int *reached)
{
    SAR_TRY(status);
    *reached = 1;
    return SAR_OK;
}

static void test_try_leaves_with_what_failed(void **state)
{
    (void)state;
    for (int status = 0; status < SAR_STATUSES; status++) {
        int reached = 0;
        assert_int_equal(leave_with((enum sar_status)status, &reached), status);
        assert_int_equal(reached, status == SAR_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sentences_take_two_texts),    cmocka_unit_test(test_sentences_differ),
        cmocka_unit_test(test_numbers_that_are_no_status),  cmocka_unit_test(test_order_of_severity),
        cmocka_unit_test(test_try_leaves_with_what_failed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
