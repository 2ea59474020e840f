/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests the text about a selection: the table of prices, and the sentence in the report. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "agreed.h"
#include "generate.h"
#include "core/select.h"

static const struct sar_config learning = { .model = SAR_MODEL_MEASURED, .learn = true };
static const struct sar_config paper = { .model = SAR_MODEL_PAPER };

static struct sar_agreed agreed_make(int ranks)
{
    struct sar_machine machine = {
        ranks, 5e-6, 8e-10, 3e-9, 1e-10, 2e-5, 1.6e-9, 5e-6, 8e-10, 1e-6, 1e-6, 1
    };
    struct sar_agreed a = agreed_plain(vec_desc_make(SAR_DOUBLE, SAR_SUM, 1234567, 3), machine, 54321);
    a.data.nnz_max = 65432;
    a.data.densification = sar_densification_independent(0.04, ranks);
    return a;
}

enum { ROOM = 4096 };

static void write_table(const struct sar_selection *s, const struct sar_agreed *a,
                        const struct sar_cost_history *history, const struct sar_profile *profile,
                        char *table)
{
    FILE *to = fmemopen(table, ROOM, "w");
    assert_non_null(to);
    sar_selection_explain(s, a, history, profile, to);
    assert_int_equal(fclose(to), 0);
}

/* The line of a scheme, or NULL. */
static char *line_of(const char *table, const char *scheme, char *line, size_t room)
{
    char start[64];
    snprintf(start, sizeof start, "\n# %s ", scheme);
    const char *at = strstr(table, start);
    if (at == NULL)
        return NULL;
    snprintf(line, room, "%.*s", (int)strcspn(at + 1, "\n"), at + 1);
    return line;
}

/* Every scheme has a line with its prices, or the reason why it is not considered. The selected one is
 * marked. */
static void check_table(const struct sar_selection *s, const struct sar_agreed *a,
                        const struct sar_cost_history *history)
{
    char table[ROOM], line[256], number[64];
    write_table(s, a, history, NULL, table);
    for (int i = 0; sar_schemes[i] != NULL; i++) {
        assert_non_null(line_of(table, sar_schemes[i]->name, line, sizeof line));
        assert_true((strstr(line, "<-") != NULL) == (i == s->scheme));
        if (s->prices[i].unsupported_reason != NULL) {
            assert_non_null(strstr(line, s->prices[i].unsupported_reason));
            continue;
        }
        snprintf(number, sizeof number, " %.1f ", s->prices[i].predicted * 1e6);
        assert_non_null(strstr(line, number));
        snprintf(number, sizeof number, " %.1f ", s->prices[i].price * 1e6);
        assert_non_null(strstr(line, number));
        snprintf(number, sizeof number, " %u ", history->trials[i]);
        assert_non_null(strstr(line, number));
        if (i == s->scheme)
            assert_non_null(strstr(line, s->reason));
    }
    for (const char *at = table; *at != '\0'; at = strchr(at, '\n') + 1)
        assert_int_equal(*at, '#');
    assert_non_null(strstr(table, "1234567 elements of 24 B"));
    assert_non_null(strstr(table, "mean 54321 max 65432"));
}

static void test_the_table(void **state)
{
    const struct sar_config *configs[] = { &learning, &paper };
    struct sar_cost_history history = { .ratio = { 2, 3, 0.5, 4 }, .trials = { 31, 17, 0, 1 } };
    (void)state;
    for (unsigned k = 0; k < 16; k++) {
        struct sar_agreed a = agreed_make(k < 8 ? 8 : 3);
        struct sar_selection s;
        a.call.native = k % 2 == 0;
        a.call.dense_face = true;
        assert_int_equal(sar_select(&a, configs[k / 2 % 2], &history,
                                    k / 4 % 2 == 0 ? NULL : &sar_scheme_allgather, NULL, &s),
                         SAR_OK);
        check_table(&s, &a, &history);
    }
}

/* The table of a reduce_scatter names the collective, its blocks and the imbalance that its prices count. */
static void test_table_of_a_reduce_scatter(void **state)
{
    struct sar_agreed a = agreed_make(8);
    struct sar_cost_history history = { .trials = { 0 } };
    struct sar_selection even, skewed;
    char table[ROOM];
    (void)state;
    a.call.collective = SAR_REDUCE_SCATTER;
    a.call.block = 16;
    assert_int_equal(sar_select(&a, &learning, &history, NULL, NULL, &even), SAR_OK);
    write_table(&even, &a, &history, NULL, table);
    assert_non_null(strstr(table, "reduce_scatter, 8 ranks"));
    assert_non_null(
        strstr(table, "blocks of 16 elements, largest part over the mean in the last call: unknown"));
    a.data.pull_imbalance = 3.25;
    a.data.pull_parts = 8;
    assert_int_equal(sar_select(&a, &learning, &history, NULL, NULL, &skewed), SAR_OK);
    write_table(&skewed, &a, &history, NULL, table);
    assert_non_null(strstr(table, "last call: 3.250"));
    assert_ptr_equal(sar_schemes[even.scheme], &sar_scheme_balanced);
    assert_ptr_equal(sar_schemes[skewed.scheme], &sar_scheme_recursive_halving);
    a.call.block = 1234567 / 8 + 1;
    write_table(&skewed, &a, &history, NULL, table);
    assert_non_null(strstr(table, "largest part over the mean by the profile: "));
    assert_true(skewed.prices[even.scheme].predicted > 1.5 * even.prices[even.scheme].predicted);
}

/* With a profile the table has the measured figures; without one it says that nothing was measured. */
static void test_table_shows_the_profile(void **state)
{
    struct sar_agreed a = agreed_make(8);
    struct sar_cost_history history = { .trials = { 0 } };
    struct sar_profile profile = { .overlap = 0.375, .skewness = 2.25 };
    struct sar_selection s;
    char with[ROOM], without[ROOM];
    (void)state;
    a.data.densification = (struct sar_densification){ 4, { 1, 2, 4, 8 }, { 1, 1.625, 2.5, 3.875 } };
    assert_int_equal(sar_select(&a, &learning, &history, NULL, NULL, &s), SAR_OK);
    write_table(&s, &a, &history, &profile, with);
    write_table(&s, &a, &history, NULL, without);
    static const char *const in_both[] = { " 2:1.625", " 4:2.500", " 8:3.875" };
    for (size_t i = 0; i < LENGTH(in_both); i++) {
        assert_non_null(strstr(with, in_both[i]));
        assert_non_null(strstr(without, in_both[i]));
    }
    assert_non_null(strstr(with, "0.375"));
    assert_non_null(strstr(with, "2.25"));
    assert_null(strstr(without, "overlap"));
    assert_non_null(strstr(without, "independent"));
}

/* Build a selection by hand, in which `runs` has the given price in seconds. */
static struct sar_selection selection_make(const char *why, int runs, int choice)
{
    struct sar_selection s = {
        .reason = why, .scheme = runs, .choice = choice, .forced_by = SAR_SOURCE_PLAN_INFO
    };
    for (int i = 0; sar_schemes[i] != NULL; i++) {
        s.prices[i].predicted = 1;
        s.prices[i].price = i == choice ? 0.001 : 0.002 * (i + 1);
    }
    return s;
}

/* The sentence names the selected scheme and its best alternative, with prices in milliseconds. */
static void test_the_reason(void **state)
{
    static const struct {
        const char *why;
        int runs, choice;
        const char *parts[3];
    } cases[] = {
        { "cheapest", 1, 1, { "cheapest", "1 ms", "2 ms" } },
        { "on trial", 2, 1, { "on trial", "6 ms", "1 ms" } },
        { "asked for", 3, 1, { "asked for (info of the plan)", "allgather", "1 ms" } },
        { "in place of the scheme asked for", 1, 1, { "in place of", "1 ms", "dense" } },
    };
    (void)state;
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct sar_selection s = selection_make(cases[i].why, cases[i].runs, cases[i].choice);
        char text[256];
        sar_selection_reason(&s, text, sizeof text);
        for (size_t k = 0; k < LENGTH(cases[i].parts); k++) {
            if (strstr(text, cases[i].parts[k]) == NULL)
                fail_msg("no '%s' in: %s", cases[i].parts[k], text);
        }
    }
}

static void test_reasons_without_a_candidate(void **state)
{
    struct sar_agreed a = agreed_make(8);
    struct sar_cost_history history = { .trials = { 0 } };
    struct sar_selection s;
    char text[256];
    (void)state;
    a.call.native = false;
    assert_int_equal(sar_select(&a, &learning, &history, NULL, NULL, &s), SAR_OK);
    sar_selection_reason(&s, text, sizeof text);
    assert_non_null(strstr(text, "no other"));
    s = selection_make("cheapest", 0, 0);
    for (int i = 1; sar_schemes[i] != NULL; i++)
        s.prices[i].price = 1.0 / 0.0;
    sar_selection_reason(&s, text, sizeof text);
    assert_non_null(strstr(text, "no other"));
}

static void test_a_reason_keeps_to_its_room(void **state)
{
    struct sar_selection s = selection_make("cheapest", 1, 1);
    (void)state;
    for (size_t room = 1; room < 30; room++) {
        char text[64];
        memset(text, '#', sizeof text);
        sar_selection_reason(&s, text, room);
        assert_int_equal(strlen(text), room - 1);
        assert_int_equal(text[room], '#');
    }
}

/* Powers of two, enough for the elements, from 64 to 64 thousand. */
static void test_slots_of_a_profile(void **state)
{
    uint32_t before = 0;
    (void)state;
    for (int k = 0; k < 64; k++) {
        uint64_t nnz = (uint64_t)1 << k;
        uint32_t slots = sar_profile_slots(nnz);
        assert_true((slots & (slots - 1)) == 0);
        assert_in_range(slots, 64, 65536);
        assert_true(slots >= before);
        assert_true(slots == 65536 || slots >= 16 * nnz);
        before = slots;
    }
    assert_int_equal(sar_profile_slots(0), 64);
    assert_int_equal(sar_profile_slots(UINT64_MAX), 65536);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_table),
        cmocka_unit_test(test_table_of_a_reduce_scatter),
        cmocka_unit_test(test_table_shows_the_profile),
        cmocka_unit_test(test_the_reason),
        cmocka_unit_test(test_reasons_without_a_candidate),
        cmocka_unit_test(test_a_reason_keeps_to_its_room),
        cmocka_unit_test(test_slots_of_a_profile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
