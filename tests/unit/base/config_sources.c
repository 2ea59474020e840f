/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests the sources of settings, and how settings are printed. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "array_length.h"
#include "base/config.h"
#include "settings.h"

static void load(struct sar_config *config)
{
    struct setting none = { NULL, NULL };
    char sentence[256];
    assert_int_equal(sar_config_load(config, setting_find, &none, sentence, sizeof sentence), SAR_OK);
}

/* Apply a source with one setting. */
static enum sar_status apply_one(struct sar_config *config, enum sar_config_source origin, const char *name,
                                 const char *text)
{
    struct setting settings[] = { { name, text }, { NULL, NULL } };
    char sentence[256];
    return sar_config_apply(config, &(struct sar_config_layer){ origin, setting_find, settings }, sentence,
                            sizeof sentence);
}

static size_t place_of(const char *setting)
{
    const char *name = "", *fallback, *help;
    size_t i = 0;
    while (sar_config_setting(i, &name, &fallback, &help) && strcmp(name, setting) != 0)
        i++;
    return i;
}

static void check_shown(const struct sar_config *config, const char *setting, const char *text,
                        enum sar_config_source origin)
{
    char shown[256];
    enum sar_config_source from;
    assert_true(sar_config_format(config, place_of(setting), shown, sizeof shown, &from));
    assert_string_equal(shown, text);
    assert_int_equal(from, origin);
}

static const struct setting good[] = {
    { "SCHEME", "balanced" },
    { "WIRE", "coo" },
    { "WIRE", "coo/hash_bitmap" },
    { "WIRE", "smallest/auto" },
    { "PARTITION", "cyclic" },
    { "GRAIN", "64" },
    { "GRAIN", "auto" },
    { "IMBALANCE", "2500" },
    { "IMBALANCE", "1.0999999999999999" },
    { "MODEL", "paper" },
    { "LEARN", "off" },
    { "SEED", "18446744073709551615" },
    { "SEGMENT", "1" },
    { "CHUNK", "1073741824" },
    { "ALPHA", "3e-09" },
    { "BETA", "8.1e-11" },
    { "GAMMA", "0.333333333333333315" },
    { "CALIBRATION", "a/b c.json" },
    { "EXPLAIN", "on" },
    { "STALL", "1.5" },
    { "LOG", "debug:comm,core" },
    { "TRACE", "/tmp/trace.%r" },
    { "LOG_FILE", "/tmp/log.%h.%p" },
};

/* A printed value, parsed again, gives the same value. */
static void test_values_are_shown(void **state)
{
    (void)state;
    for (size_t i = 0; i < LENGTH(good); i++) {
        struct sar_config config, again;
        char shown[256];
        enum sar_config_source origin;
        load(&config);
        load(&again);
        assert_int_equal(apply_one(&config, SAR_SOURCE_ENVIRONMENT, good[i].name, good[i].text), SAR_OK);
        assert_true(sar_config_format(&config, place_of(good[i].name), shown, sizeof shown, &origin));
        assert_int_equal(origin, SAR_SOURCE_ENVIRONMENT);
        assert_int_equal(apply_one(&again, SAR_SOURCE_ENVIRONMENT, good[i].name, shown), SAR_OK);
        assert_memory_equal(&config, &again, sizeof config);
        assert_true(strlen(shown) <= strlen(good[i].text));
    }
}

/* Every word for a switch is printed as on or off. */
static void test_switches_are_shown(void **state)
{
    static const char *const words[] = { "off", "on", "0", "1", "no", "yes" };
    (void)state;
    for (size_t i = 0; i < LENGTH(words); i++) {
        struct sar_config config;
        load(&config);
        assert_int_equal(apply_one(&config, SAR_SOURCE_ENVIRONMENT, "EXPLAIN", words[i]), SAR_OK);
        check_shown(&config, "EXPLAIN", words[i % 2], SAR_SOURCE_ENVIRONMENT);
    }
}

static void test_defaults_are_shown(void **state)
{
    struct sar_config config;
    char shown[256];
    const char *name, *fallback, *help;
    enum sar_config_source origin;
    size_t i = 0;
    (void)state;
    load(&config);
    for (; sar_config_setting(i, &name, &fallback, &help); i++)
        check_shown(&config, name, fallback, SAR_SOURCE_DEFAULT);
    assert_false(sar_config_format(&config, i, shown, sizeof shown, &origin));
    assert_false(sar_config_format(&config, SIZE_MAX, shown, sizeof shown, &origin));
}

/* The source of higher precedence wins, in any order of application. */
static void test_sources(void **state)
{
    (void)state;
    for (int first = SAR_SOURCE_CALIBRATION; first < SAR_SOURCES; first++) {
        for (int second = SAR_SOURCE_CALIBRATION; second < SAR_SOURCES; second++) {
            struct sar_config config;
            load(&config);
            assert_int_equal(apply_one(&config, (enum sar_config_source)first, "ALPHA", "1e-06"), SAR_OK);
            check_shown(&config, "ALPHA", "1e-06", (enum sar_config_source)first);
            assert_int_equal(apply_one(&config, (enum sar_config_source)second, "ALPHA", "2e-06"), SAR_OK);
            bool later = second >= first;
            check_shown(&config, "ALPHA", later ? "2e-06" : "1e-06",
                        (enum sar_config_source)(later ? second : first));
            check_shown(&config, "BETA", "0", SAR_SOURCE_DEFAULT);
        }
    }
}

static void test_a_bad_source_changes_nothing(void **state)
{
    struct setting settings[] = { { "SCHEME", "dense" }, { "GRAIN", "3" }, { NULL, NULL } };
    struct sar_config config, before;
    char sentence[256];
    (void)state;
    load(&config);
    assert_int_equal(apply_one(&config, SAR_SOURCE_ENVIRONMENT, "ALPHA", "1"), SAR_OK);
    before = config;
    assert_int_equal(
        sar_config_apply(&config, &(struct sar_config_layer){ SAR_SOURCE_PLAN_INFO, setting_find, settings },
                         sentence, sizeof sentence),
        SAR_BAD_SETTING);
    assert_memory_equal(&config, &before, sizeof config);
}

/* An error names the setting as the user wrote it. */
static void test_spelling(void **state)
{
    static const struct {
        enum sar_config_source origin;
        const char *name;
    } cases[] = {
        { SAR_SOURCE_ENVIRONMENT, "MPIX_SPARSE_PROFILE_EVERY" },
        { SAR_SOURCE_COMM_INFO, "mpix_sparse_profile_every" },
        { SAR_SOURCE_PLAN_INFO, "mpix_sparse_profile_every" },
    };
    struct setting settings[] = { { "PROFILE_EVERY", "0" }, { NULL, NULL } };
    (void)state;
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct sar_config config;
        struct sar_config_layer source = { cases[i].origin, setting_find, settings };
        char sentence[256], spelled[64];
        load(&config);
        assert_int_equal(sar_config_apply(&config, &source, sentence, sizeof sentence), SAR_BAD_SETTING);
        assert_ptr_equal(strstr(sentence, cases[i].name), sentence);
        sar_config_spell("PROFILE_EVERY", cases[i].origin, spelled, sizeof spelled);
        assert_string_equal(spelled, cases[i].name);
    }
}

static void test_source_of_a_setting(void **state)
{
    struct sar_config config;
    (void)state;
    load(&config);
    assert_int_equal(apply_one(&config, SAR_SOURCE_COMM_INFO, "GRAIN", "8"), SAR_OK);
    assert_int_equal(sar_config_source_of(&config, "GRAIN"), SAR_SOURCE_COMM_INFO);
    assert_int_equal(sar_config_source_of(&config, "SEED"), SAR_SOURCE_DEFAULT);
    assert_int_equal(sar_config_source_of(&config, "NO_KNOB"), SAR_SOURCE_DEFAULT);
}

/* Comparison uses values, not their spelling or source. */
static void test_comparison(void **state)
{
    struct sar_config a, b;
    size_t at;
    (void)state;
    load(&a);
    load(&b);
    assert_true(sar_config_equal(&a, &b, &at));
    assert_int_equal(apply_one(&a, SAR_SOURCE_COMM_INFO, "LEARN", "yes"), SAR_OK);
    assert_int_equal(apply_one(&b, SAR_SOURCE_PLAN_INFO, "LEARN", "1"), SAR_OK);
    assert_true(sar_config_equal(&a, &b, &at));
    for (size_t i = 0; i < LENGTH(good); i++) {
        load(&a);
        load(&b);
        assert_int_equal(apply_one(&b, SAR_SOURCE_PLAN_INFO, good[i].name, good[i].text), SAR_OK);
        if (sar_config_equal(&a, &b, &at))
            assert_string_equal(good[i].text, "auto");
        else
            assert_int_equal(at, place_of(good[i].name));
    }
}

static void test_names_of_sources(void **state)
{
    (void)state;
    for (int i = 0; i < SAR_SOURCES; i++)
        for (int k = 0; k < i; k++)
            assert_string_not_equal(sar_config_source_name((enum sar_config_source)i),
                                    sar_config_source_name((enum sar_config_source)k));
    assert_string_equal(sar_config_source_name(SAR_SOURCE_ENVIRONMENT), "environment");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values_are_shown),
        cmocka_unit_test(test_switches_are_shown),
        cmocka_unit_test(test_defaults_are_shown),
        cmocka_unit_test(test_sources),
        cmocka_unit_test(test_a_bad_source_changes_nothing),
        cmocka_unit_test(test_spelling),
        cmocka_unit_test(test_source_of_a_setting),
        cmocka_unit_test(test_comparison),
        cmocka_unit_test(test_names_of_sources),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
