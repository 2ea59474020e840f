/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests the preload library's decisions for sequences of calls, and its report. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "preload/stats.h"

static const struct sar_preload_params params = { .limit = 0.02 };
static const struct sar_preload_key small = { 16384, SAR_FLOAT, SAR_SUM };    /* 64 KiB */
static const struct sar_preload_key large = { 1 << 22, SAR_DOUBLE, SAR_MAX }; /* 32 MiB */

/* Cost of probes, in bytes that the calls move themselves. */
static double cost_of(const struct sar_preload_key *key)
{
    double bytes = (double)sar_preload_key_bytes(key);
    return bytes < SAR_SAMPLE_COST_BYTES ? bytes : SAR_SAMPLE_COST_BYTES;
}

/* One call on dense data. Returns the decision. */
static enum sar_decision call_dense(struct sar_preload_entry *shape)
{
    enum sar_decision move = sar_preload_entry_decide(shape, &params);
    if (move == SAR_DECISION_SAMPLE)
        sar_preload_entry_sampled(shape, false);
    assert_int_not_equal(move, SAR_DECISION_SPARSE);
    return move;
}

/* The cost of probes never exceeds the limit, and probes become rarer. */
static void check_probes(const struct sar_preload_key *key, int calls, int least, int most)
{
    struct sar_preload_entry shape = sar_preload_entry_make(key);
    int probes = 0;
    for (int i = 1; i <= calls; i++) {
        probes += call_dense(&shape) == SAR_DECISION_SAMPLE;
        assert_true(probes * cost_of(key) <=
                    params.limit * i * (double)sar_preload_key_bytes(key) * (1 + 1e-9));
    }
    assert_in_range(probes, least, most);
}

static void test_probes_keep_to_the_limit(void **state)
{
    (void)state;
    check_probes(&small, 49, 0, 0);
    check_probes(&small, 50, 1, 1);
    check_probes(&small, 1000000, 11, 35);
    check_probes(&large, 1, 1, 1);
    check_probes(&large, 1000000, 1000, 3000);
}

/* An entry that repeatedly looks sparse, but runs slower with the library. The cost of consistency checks and
 * set-up is also paid before the next probe. */
static void check_disappointments(const struct sar_preload_key *key, int most)
{
    struct sar_preload_entry shape = sar_preload_entry_make(key);
    double spent = 0, bytes = 0;
    int looks = 0;
    for (int i = 0; i < 3000000; i++) {
        enum sar_decision move = sar_preload_entry_decide(&shape, &params);
        if (move == SAR_DECISION_SAMPLE) {
            assert_true(spent <= params.limit * bytes * (1 + 1e-9));
            sar_preload_entry_sampled(&shape, true);
            if (looks++ == 0) {
                sar_preload_entry_charge_setup(&shape, &params);
                spent += SAR_SETUP_COST_BYTES;
            }
            spent += cost_of(key);
        }
        if (shape.taken) {
            sar_preload_entry_update(&shape, &params, looks % 2 ? SAR_GAIN_NONE : SAR_GAIN_LOSS);
            spent += looks % 2 ? cost_of(key) : (double)sar_preload_key_bytes(key);
        }
        bytes += (double)sar_preload_key_bytes(key);
    }
    assert_in_range(looks, 3, most);
    assert_true(spent <= params.limit * bytes);
}

static void test_disappointments_are_paid_off(void **state)
{
    (void)state;
    check_disappointments(&small, 100);
    check_disappointments(&large, 8000);
}

/* Calls that MPI runs pay for another set-up within the limit; calls that gain pay sooner. */
static void test_budget(void **state)
{
    double budget = sar_budget_charge_setup(0, &params);
    int left = 0, gained = 0;
    (void)state;
    for (double d = budget; d > 0; d = sar_budget_repay(d, &large, &params, false))
        left++;
    for (double d = budget; d > 0; d = sar_budget_repay(d, &large, &params, true))
        gained++;
    assert_true(SAR_RESETUP_COST_BYTES <= params.limit * left * (double)sar_preload_key_bytes(&large));
    assert_in_range(left, 2, 13);
    assert_int_equal(gained, 1);
    assert_true(sar_budget_charge_setup(budget, &params) > budget);
}

/* Sparse data stay with the library from the first probe on. When they become dense, the library drops the
 * entry after a fixed number of calls. */
static void test_sparse_is_kept(void **state)
{
    struct sar_preload_entry shape = sar_preload_entry_make(&large);
    (void)state;
    assert_int_equal(sar_preload_entry_decide(&shape, &params), SAR_DECISION_SAMPLE);
    sar_preload_entry_sampled(&shape, true);
    for (int i = 0; i < 1000; i++) {
        sar_preload_entry_update(&shape, &params, i % 100 > 90 ? SAR_GAIN_TRIAL : SAR_GAIN_FASTER);
        assert_int_equal(sar_preload_entry_decide(&shape, &params), SAR_DECISION_SPARSE);
        assert_true(shape.sparse);
    }
    sar_preload_entry_update(&shape, &params, SAR_GAIN_NONE);
    sar_preload_entry_update(&shape, &params, SAR_GAIN_FASTER);
    for (int i = 0; i < SAR_DENSE_STREAK_MAX; i++) {
        assert_true(shape.taken);
        sar_preload_entry_update(&shape, &params, SAR_GAIN_NONE);
    }
    assert_false(shape.taken);
    assert_false(shape.sparse);
    assert_int_equal(sar_preload_entry_decide(&shape, &params), SAR_DECISION_MPI);
}

/* The backoff of probes is limited: dense data that become sparse are detected. */
static void test_backoff_has_an_end(void **state)
{
    struct sar_preload_entry shape = sar_preload_entry_make(&small);
    int last = 0;
    (void)state;
    for (int i = 0; i < 10000000; i++)
        last = call_dense(&shape) == SAR_DECISION_SAMPLE ? i : last;
    assert_in_range(10000000 - last, 0, 50 * 1024);
}

static void test_limits(void **state)
{
    const struct sar_preload_params never = { .limit = 0 }, always = { .limit = 1e9 },
                                    later = { .limit = 1, .first_calls = 3 };
    struct sar_preload_entry a = sar_preload_entry_make(&small), b = sar_preload_entry_make(&small),
                             c = sar_preload_entry_make(&large);
    (void)state;
    for (int i = 0; i < 3; i++)
        assert_int_equal(sar_preload_entry_decide(&c, &later), SAR_DECISION_MPI);
    assert_int_equal(sar_preload_entry_decide(&c, &later), SAR_DECISION_SAMPLE);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(sar_preload_entry_decide(&a, &never), SAR_DECISION_MPI);
        assert_int_equal(sar_preload_entry_decide(&b, &always), SAR_DECISION_SAMPLE);
        sar_preload_entry_sampled(&b, false);
    }
}

/* Entries used once evict each other, not those used repeatedly. */
static void test_oldest_goes(void **state)
{
    struct sar_preload_table table = { 0 };
    struct sar_preload_key other = small;
    (void)state;
    for (int i = 0; i < 1000; i++) {
        sar_preload_table_find(&table, &small)->calls++;
        other.count = 20000 + i;
        assert_int_equal(sar_preload_table_find(&table, &other)->calls, 0);
    }
    assert_int_equal(sar_preload_table_find(&table, &small)->calls, 1000);
    assert_int_equal(table.used, SAR_POLICY_ENTRIES);
}

static void test_duplicates_inherit_what_is_dense(void **state)
{
    struct sar_preload_table table = { 0 }, twin;
    (void)state;
    while (call_dense(sar_preload_table_find(&table, &small)) != SAR_DECISION_SAMPLE)
        ;
    sar_preload_table_find(&table, &large)->taken = true;
    sar_preload_table_inherit(&twin, &table);
    assert_int_equal(twin.used, 1);
    for (int i = 0; i < 99; i++)
        assert_int_equal(call_dense(sar_preload_table_find(&twin, &small)), SAR_DECISION_MPI);
    assert_int_equal(call_dense(sar_preload_table_find(&twin, &small)), SAR_DECISION_SAMPLE);
}

/* A report, read back as words. */
struct reader {
    char text[4096];
    char *word[160];
    int words;
};

static void read_report(struct reader *r, const struct sar_stats_row *rows)
{
    FILE *file = fmemopen(r->text, sizeof r->text, "w");
    assert_non_null(file);
    sar_stats_write(file, rows, 5);
    fclose(file);
    r->words = 0;
    for (char *w = strtok(r->text, " \n"); w != NULL && r->words < 160; w = strtok(NULL, " \n"))
        r->word[r->words++] = w;
}

static const char *const titles[] = {
    "#how",    "ranks",  "count",    "type",    "op",       "calls",    "taken",    "looks",
    "density", "scheme", "price_us", "look_us", "taken_us", "plain_us", "gained_s", "missed_s",
};

enum { COLUMNS = sizeof titles / sizeof titles[0] };

static int place_of_titles(const struct reader *r)
{
    int at = 0;
    while (at < r->words && strcmp(r->word[at], titles[0]) != 0)
        at++;
    return at;
}

static void check_words(const struct reader *r, int from, const char *const *wanted, int n)
{
    assert_in_range(from + n, 0, r->words);
    for (int i = 0; i < n; i++)
        assert_string_equal(r->word[from + i], wanted[i]);
}

static void add(struct sar_stats_row **rows, struct sar_stats_call note)
{
    note.key.base = SAR_DOUBLE;
    note.key.op = note.kind == SAR_STATS_BLOCKING ? SAR_SUM : SAR_PROD;
    note.key.count = 12345;
    note.ranks = 4;
    sar_stats_add(rows, &note);
}

/* The fastest call that MPI runs, of 4 ms, is compared. One call of MPI alone is no measure. */
static void test_report(void **state)
{
    static const char *const blocking[COLUMNS] = { "blocking", "4",      "12345",    "double",
                                                   "sum",      "4",      "2",        "1",
                                                   "0.2000",   "ring",   "700.0",    "50.0",
                                                   "1000.0",   "4000.0", "0.006000", "0.006000" };
    static const char *const passing[COLUMNS] = { "nonblocking", "4", "12345", "double", "prod", "1",
                                                  "1",           "0", "-",     "-",      "-",    "-",
                                                  "-",           "-", "-",     "-" };
    static const char *const totals[] = { "#",        "other",    "calls:",   "5",        "#",
                                          "blocking", "calls",    "took",     "0.015000", "s,",
                                          "probes",   "0.000050", "s;",       "gained",   "0.006000",
                                          "s,",       "missed",   "0.006000", "s" };
    struct sar_stats_row *rows = NULL;
    struct reader r;
    (void)state;
    add(&rows, (struct sar_stats_call){ .seconds = 9e-3, .density = -1 });
    add(&rows,
        (struct sar_stats_call){ .seconds = 4e-3, .density = 0.1, .sampled = true, .sample_seconds = 5e-5 });
    add(&rows, (struct sar_stats_call){
                   .seconds = 1e-3, .density = 0.2, .taken = true, .scheme = "dense", .predicted = 5e-4 });
    add(&rows, (struct sar_stats_call){
                   .seconds = 1e-3, .density = 0.3, .taken = true, .scheme = "ring", .predicted = 7e-4 });
    add(&rows, (struct sar_stats_call){ .kind = SAR_STATS_NONBLOCKING, .taken = true, .density = -1 });
    read_report(&r, rows);
    int at = place_of_titles(&r);
    check_words(&r, at, titles, COLUMNS);
    check_words(&r, at + COLUMNS, blocking, COLUMNS);
    check_words(&r, at + 2 * COLUMNS, passing, COLUMNS);
    check_words(&r, at + 3 * COLUMNS, totals, sizeof totals / sizeof totals[0]);
    sar_stats_free(&rows);
    assert_null(rows);
}

static void test_gain_is_unknown_by_one_call(void **state)
{
    struct sar_stats_row *rows = NULL;
    struct reader r;
    (void)state;
    add(&rows, (struct sar_stats_call){ .seconds = 9e-3, .density = -1 });
    add(&rows, (struct sar_stats_call){ .seconds = 1e-3, .density = 0.2, .taken = true, .scheme = "ring" });
    read_report(&r, rows);
    int at = place_of_titles(&r) + COLUMNS;
    check_words(&r, at + COLUMNS - 3, (const char *const[]){ "9000.0", "-", "-" }, 3);
    sar_stats_free(&rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_probes_keep_to_the_limit),
        cmocka_unit_test(test_disappointments_are_paid_off),
        cmocka_unit_test(test_sparse_is_kept),
        cmocka_unit_test(test_backoff_has_an_end),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_oldest_goes),
        cmocka_unit_test(test_duplicates_inherit_what_is_dense),
        cmocka_unit_test(test_budget),
        cmocka_unit_test(test_report),
        cmocka_unit_test(test_gain_is_unknown_by_one_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
