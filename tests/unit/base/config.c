/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests the table of settings: defaults, accepted and refused values, unknown names. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array_length.h"
#include "base/config.h"
#include "settings.h"

static enum sar_status load_one(const char *name, const char *text, struct sar_config *config, char *sentence,
                                size_t room)
{
    struct setting settings[] = { { name, text }, { NULL, NULL } };
    return sar_config_load(config, setting_find, settings, sentence, room);
}

enum field { TEXT, INT, BOOL, WHOLE, DOUBLE };

/* Expected value of a field of the configuration. */
struct wanted {
    const char *setting, *text;
    enum field field;
    size_t offset;
    const char *as_text;
    double as_number;
};

#define AT(name) offsetof(struct sar_config, name)

static void check(const struct sar_config *config, const struct wanted *w)
{
    const char *field = (const char *)config + w->offset;
    double number = 0;
    switch (w->field) {
    case TEXT: assert_string_equal(field, w->as_text); return;
    case INT: number = *(const int *)field; break;
    case BOOL: number = *(const bool *)field; break;
    case WHOLE: number = (double)*(const uint64_t *)field; break;
    case DOUBLE: number = *(const double *)field; break;
    }
    if (number != w->as_number)
        fail_msg("%s=%s gave %g", w->setting, w->text, number);
}

static const struct wanted defaults[] = {
    { "SCHEME", "auto", TEXT, AT(scheme), "auto", 0 },
    { "WIRE", "auto", TEXT, AT(push_wire), "auto", 0 },
    { "WIRE", "auto", TEXT, AT(pull_wire), "auto", 0 },
    { "WIRE_VALUES", "full", INT, AT(wire_values), NULL, SAR_PRECISION_FULL },
    { "ELEMENT", "integer", INT, AT(element), NULL, SAR_ELEMENT_INTEGER },
    { "PARTITION", "auto", TEXT, AT(partition), "auto", 0 },
    { "GRAIN", "auto", INT, AT(grain), NULL, SAR_AUTO },
    { "COLUMNS", "auto", WHOLE, AT(columns), NULL, 0x1p64 },
    { "RELAY", "auto", INT, AT(relay), NULL, SAR_RELAY_AUTO },
    { "IMBALANCE", "1.1", DOUBLE, AT(imbalance), NULL, 1.1 },
    { "SEED", "0", WHOLE, AT(seed), NULL, 0 },
    { "MODEL", "measured", INT, AT(model), NULL, SAR_MODEL_MEASURED },
    { "LEARN", "on", BOOL, AT(learn), NULL, 1 },
    { "PROFILE_EVERY", "256", WHOLE, AT(profile_every), NULL, 256 },
    { "CHECK_STARTS", "off", BOOL, AT(check_starts), NULL, 0 },
    { "SPECULATE", "on", BOOL, AT(speculate), NULL, 1 },
    { "FORWARD", "63", WHOLE, AT(forward), NULL, 63 },
    { "SEGMENT", "auto", WHOLE, AT(segment), NULL, 0x1p64 },
    { "CHUNK", "536870912", WHOLE, AT(chunk), NULL, 536870912 },
    { "THROTTLE", "auto", WHOLE, AT(throttle), NULL, 0x1p64 },
    { "LONG", "65536", WHOLE, AT(long_message), NULL, 65536 },
    { "RECOMPUTE", "64", WHOLE, AT(recompute), NULL, 64 },
    { "FUSE", "auto", WHOLE, AT(fuse), NULL, 0x1p64 },
    { "NODES", "0", WHOLE, AT(nodes), NULL, 0 },
    { "ALPHA", "0", DOUBLE, AT(alpha), NULL, 0 },
    { "BETA", "0", DOUBLE, AT(beta), NULL, 0 },
    { "GAMMA", "0", DOUBLE, AT(gamma), NULL, 0 },
    { "OVERHEAD", "0", DOUBLE, AT(overhead), NULL, 0 },
    { "CALIBRATION", "none", TEXT, AT(calibration), "none", 0 },
    { "CUDA_AWARE", "auto", INT, AT(cuda_aware), NULL, SAR_CUDA_AWARE_AUTO },
    { "STAGING", "4194304", WHOLE, AT(staging), NULL, 4194304 },
    { "CUDA_LEAST", "16384", WHOLE, AT(cuda_least), NULL, 16384 },
    { "PROGRESS", "wait", INT, AT(progress), NULL, SAR_PROGRESS_WAIT },
    { "THREADS", "auto", WHOLE, AT(threads), NULL, 0x1p64 },
    { "EXPLAIN", "off", BOOL, AT(explain), NULL, 0 },
    { "STALL", "60", DOUBLE, AT(stall), NULL, 60 },
    { "LOG", "warn", TEXT, AT(log), "warn", 0 },
    { "LOG_FILE", "stderr", TEXT, AT(log_file), "stderr", 0 },
    { "TRACE", "none", TEXT, AT(trace), "none", 0 },
    { "PRELOAD_MIN_BYTES", "65536", WHOLE, AT(preload_min_bytes), NULL, 65536 },
    { "PRELOAD_LIMIT", "0.02", DOUBLE, AT(preload_limit), NULL, 0.02 },
    { "PRELOAD_NONBLOCKING", "off", BOOL, AT(preload_nonblocking), NULL, 0 },
    { "PRELOAD_REPORT", "none", TEXT, AT(preload_report), "none", 0 },
};

static void test_defaults(void **state)
{
    struct setting none = { NULL, NULL };
    struct sar_config config;
    char sentence[256] = "";
    (void)state;
    memset(&config, 0xff, sizeof config);
    assert_int_equal(sar_config_load(&config, setting_find, &none, sentence, sizeof sentence), SAR_OK);
    for (size_t i = 0; i < LENGTH(defaults); i++)
        check(&config, &defaults[i]);
    assert_string_equal(sentence, "");
}

/* The documented list, which manual pages and the benchmark are checked against, has exactly these
 * settings. */
static void test_description(void **state)
{
    const char *name = NULL, *fallback = NULL, *help = NULL;
    size_t settings = 0;
    (void)state;
    for (size_t i = 0; i < LENGTH(defaults); i++) {
        if (i > 0 && strcmp(defaults[i].setting, defaults[i - 1].setting) == 0)
            continue;
        assert_true(sar_config_setting(settings++, &name, &fallback, &help));
        assert_string_equal(name, defaults[i].setting);
        assert_string_equal(fallback, defaults[i].text);
        assert_true(strlen(help) > 10);
    }
    assert_false(sar_config_setting(settings, &name, &fallback, &help));
    assert_false(sar_config_setting(SIZE_MAX, &name, &fallback, &help));
}

#define LETTERS_63 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static const struct wanted good[] = {
    { "SCHEME", "balanced", TEXT, AT(scheme), "balanced", 0 },
    { "SCHEME", LETTERS_63, TEXT, AT(scheme), LETTERS_63, 0 },
    { "WIRE", "coo", TEXT, AT(push_wire), "coo", 0 },
    { "WIRE", "coo", TEXT, AT(pull_wire), "coo", 0 },
    { "WIRE", "coo/hash_bitmap", TEXT, AT(push_wire), "coo", 0 },
    { "WIRE", "coo/hash_bitmap", TEXT, AT(pull_wire), "hash_bitmap", 0 },
    { "WIRE", "smallest/auto", TEXT, AT(push_wire), "smallest", 0 },
    { "WIRE", "smallest/auto", TEXT, AT(pull_wire), "auto", 0 },
    { "WIRE", LETTERS_63 "/b", TEXT, AT(push_wire), LETTERS_63, 0 },
    { "WIRE", "b/" LETTERS_63, TEXT, AT(pull_wire), LETTERS_63, 0 },
    { "WIRE_VALUES", "bf16", INT, AT(wire_values), NULL, SAR_PRECISION_BF16 },
    { "WIRE_VALUES", "fp16", INT, AT(wire_values), NULL, SAR_PRECISION_FP16 },
    { "ELEMENT", "bf16", INT, AT(element), NULL, SAR_ELEMENT_BF16 },
    { "ELEMENT", "fp16", INT, AT(element), NULL, SAR_ELEMENT_FP16 },
    { "FORWARD", "0", WHOLE, AT(forward), NULL, 0 },
    { "PARTITION", "cyclic", TEXT, AT(partition), "cyclic", 0 },
    { "GRAIN", "1", INT, AT(grain), NULL, 1 },
    { "GRAIN", "64", INT, AT(grain), NULL, 64 },
    { "GRAIN", "256", INT, AT(grain), NULL, 256 },
    { "GRAIN", "auto", INT, AT(grain), NULL, SAR_AUTO },
    { "FUSE", "0", WHOLE, AT(fuse), NULL, 0 },
    { "FUSE", "65536", WHOLE, AT(fuse), NULL, 65536 },
    { "FUSE", "auto", WHOLE, AT(fuse), NULL, 0x1p64 },
    { "RELAY", "on", INT, AT(relay), NULL, SAR_RELAY_ON },
    { "RELAY", "off", INT, AT(relay), NULL, SAR_RELAY_OFF },
    { "COLUMNS", "1", WHOLE, AT(columns), NULL, 1 },
    { "COLUMNS", "1048576", WHOLE, AT(columns), NULL, 1048576 },
    { "COLUMNS", "auto", WHOLE, AT(columns), NULL, 0x1p64 },
    { "IMBALANCE", "1", DOUBLE, AT(imbalance), NULL, 1 },
    { "IMBALANCE", "2.5e3", DOUBLE, AT(imbalance), NULL, 2500 },
    { "SEED", "1", WHOLE, AT(seed), NULL, 1 },
    { "SEED", "18446744073709551615", WHOLE, AT(seed), NULL, 0x1p64 },
    { "MODEL", "paper", INT, AT(model), NULL, SAR_MODEL_PAPER },
    { "MODEL", "measured", INT, AT(model), NULL, SAR_MODEL_MEASURED },
    { "CUDA_AWARE", "no", INT, AT(cuda_aware), NULL, SAR_CUDA_AWARE_NO },
    { "STAGING", "4096", WHOLE, AT(staging), NULL, 4096 },
    { "PROGRESS", "thread", INT, AT(progress), NULL, SAR_PROGRESS_THREAD },
    { "LEARN", "off", BOOL, AT(learn), NULL, 0 },
    { "CHECK_STARTS", "on", BOOL, AT(check_starts), NULL, 1 },
    { "SPECULATE", "no", BOOL, AT(speculate), NULL, 0 },
    { "LEARN", "0", BOOL, AT(learn), NULL, 0 },
    { "LEARN", "no", BOOL, AT(learn), NULL, 0 },
    { "LEARN", "False", BOOL, AT(learn), NULL, 0 },
    { "CHECK_STARTS", "ON", BOOL, AT(check_starts), NULL, 1 },
    { "CHECK_STARTS", "true", BOOL, AT(check_starts), NULL, 1 },
    { "SEGMENT", "1", WHOLE, AT(segment), NULL, 1 },
    { "SEGMENT", "auto", WHOLE, AT(segment), NULL, 0x1p64 },
    { "CHUNK", "8192", WHOLE, AT(chunk), NULL, 8192 },
    { "CHUNK", "1073741824", WHOLE, AT(chunk), NULL, 1073741824 },
    { "THROTTLE", "0", WHOLE, AT(throttle), NULL, 0 },
    { "THROTTLE", "4", WHOLE, AT(throttle), NULL, 4 },
    { "THROTTLE", "auto", WHOLE, AT(throttle), NULL, 0x1p64 },
    { "LONG", "1", WHOLE, AT(long_message), NULL, 1 },
    { "RECOMPUTE", "1", WHOLE, AT(recompute), NULL, 1 },
    { "NODES", "3", WHOLE, AT(nodes), NULL, 3 },
    { "PROFILE_EVERY", "1", WHOLE, AT(profile_every), NULL, 1 },
    { "PROFILE_EVERY", "1000000000000", WHOLE, AT(profile_every), NULL, 1e12 },
    { "ALPHA", "2e-6", DOUBLE, AT(alpha), NULL, 2e-6 },
    { "BETA", "8e-11", DOUBLE, AT(beta), NULL, 8e-11 },
    { "GAMMA", "0.000000003", DOUBLE, AT(gamma), NULL, 3e-9 },
    { "OVERHEAD", "5e-7", DOUBLE, AT(overhead), NULL, 5e-7 },
    { "CALIBRATION", "some file.json", TEXT, AT(calibration), "some file.json", 0 },
    { "CALIBRATION", LETTERS_63 "/" LETTERS_63, TEXT, AT(calibration), LETTERS_63 "/" LETTERS_63, 0 },
    { "THREADS", "1", WHOLE, AT(threads), NULL, 1 },
    { "THREADS", "1024", WHOLE, AT(threads), NULL, 1024 },
    { "THREADS", "auto", WHOLE, AT(threads), NULL, 0x1p64 },
    { "EXPLAIN", "on", BOOL, AT(explain), NULL, 1 },
    { "EXPLAIN", "1", BOOL, AT(explain), NULL, 1 },
    { "EXPLAIN", "yes", BOOL, AT(explain), NULL, 1 },
    { "PRELOAD_LIMIT", "0", DOUBLE, AT(preload_limit), NULL, 0 },
};

/* A setting changes its field, and leaves all other fields at their defaults. */
static void test_good_values(void **state)
{
    (void)state;
    for (size_t i = 0; i < LENGTH(good); i++) {
        struct sar_config config;
        char sentence[256];
        assert_int_equal(load_one(good[i].setting, good[i].text, &config, sentence, sizeof sentence), SAR_OK);
        check(&config, &good[i]);
        for (size_t k = 0; k < LENGTH(defaults); k++) {
            if (strcmp(defaults[k].setting, good[i].setting) != 0)
                check(&config, &defaults[k]);
        }
    }
}

static const struct setting bad[] = {
    { "LOG", "" },
    { "LOG", "loud" },
    { "LOG", "info:attic" },
    { "LOG_FILE", "" },
    { "SCHEME", "" },
    { "SCHEME", LETTERS_63 "b" },
    { "WIRE", "" },
    { "WIRE", "/" },
    { "WIRE", "/coo" },
    { "WIRE", "coo/" },
    { "WIRE", LETTERS_63 "b" },
    { "WIRE", LETTERS_63 "b/coo" },
    { "WIRE", "coo/" LETTERS_63 "b" },
    { "ELEMENT", "float" },
    { "FORWARD", "-1" },
    { "PARTITION", "" },
    { "PARTITION", LETTERS_63 "b" },
    { "GRAIN", "" },
    { "GRAIN", "0" },
    { "GRAIN", "-1" },
    { "GRAIN", "3" },
    { "GRAIN", "96" },
    { "GRAIN", "512" },
    { "GRAIN", "64k" },
    { "GRAIN", "Auto" },
    { "GRAIN", "18446744073709551616" },
    { "FUSE", "" },
    { "FUSE", "-1" },
    { "FUSE", "64k" },
    { "FUSE", "Auto" },
    { "RELAY", "maybe" },
    { "COLUMNS", "0" },
    { "COLUMNS", "-1" },
    { "COLUMNS", "1048577" },
    { "COLUMNS", "Auto" },
    { "IMBALANCE", "" },
    { "IMBALANCE", "0.99" },
    { "IMBALANCE", "-2" },
    { "IMBALANCE", "1.1x" },
    { "IMBALANCE", "nan" },
    { "IMBALANCE", "inf" },
    { "SEED", "" },
    { "SEED", "-1" },
    { "SEED", "1.5" },
    { "SEED", "seed" },
    { "SEED", "0x10" },
    { "SEED", "18446744073709551616" },
    { "WIRE_VALUES", "" },
    { "WIRE_VALUES", "auto" },
    { "WIRE_VALUES", "float16" },
    { "MODEL", "" },
    { "MODEL", "Paper" },
    { "MODEL", "papers" },
    { "LEARN", "" },
    { "LEARN", "2" },
    { "LEARN", "tru" },
    { "SEGMENT", "0" },
    { "SEGMENT", "Auto" },
    { "CHUNK", "8191" },
    { "CHUNK", "1073741825" },
    { "THROTTLE", "1048577" },
    { "THROTTLE", "Auto" },
    { "LONG", "0" },
    { "RECOMPUTE", "0" },
    { "NODES", "-1" },
    { "NODES", "1048577" },
    { "STAGING", "1073741825" },
    { "CHECK_STARTS", "settled" },
    { "SPECULATE", "2" },
    { "PROFILE_EVERY", "0" },
    { "PROFILE_EVERY", "-5" },
    { "PROFILE_EVERY", "often" },
    { "ALPHA", "-1e-6" },
    { "ALPHA", "1us" },
    { "ALPHA", "nan" },
    { "BETA", "fast" },
    { "BETA", "inf" },
    { "GAMMA", "-0.1" },
    { "CALIBRATION", "" },
    { "THREADS", "0" },
    { "THREADS", "-1" },
    { "THREADS", "x" },
    { "THREADS", "1025" },
    { "THREADS", "100000" },
    { "EXPLAIN", "maybe" },
    { "EXPLAIN", "onn" },
    { "PRELOAD_LIMIT", "-1" },
};

static const char *help_of(const char *setting)
{
    const char *name, *fallback, *help;
    for (size_t i = 0; sar_config_setting(i, &name, &fallback, &help); i++) {
        if (strcmp(name, setting) == 0)
            return help;
    }
    return NULL;
}

static void test_bad_values(void **state)
{
    (void)state;
    for (size_t i = 0; i < LENGTH(bad); i++) {
        struct sar_config config, before;
        char sentence[256], name[64], value[64], purpose[128];
        memset(&config, 0x5a, sizeof config);
        memcpy(&before, &config, sizeof config);
        if (load_one(bad[i].name, bad[i].text, &config, sentence, sizeof sentence) != SAR_BAD_SETTING)
            fail_msg("%s took '%s'", bad[i].name, bad[i].text);
        assert_memory_equal(&config, &before, sizeof config);
        snprintf(name, sizeof name, "MPIX_SPARSE_%s", bad[i].name);
        snprintf(value, sizeof value, "'%.60s'", bad[i].text);
        assert_non_null(strstr(sentence, name));
        assert_non_null(strstr(sentence, value));
        const char *help = help_of(bad[i].name), *values = strstr(help, ": ");
        int length = (int)(values == NULL ? strlen(help) : (size_t)(values - help));
        snprintf(purpose, sizeof purpose, values == NULL ? " the %.*s" : " (%.*s)", length, help);
        assert_true(values == NULL || strstr(sentence, values + 2) != NULL);
        assert_non_null(strstr(sentence, purpose));
    }
}

static void test_refusals_name_the_nearest(void **state)
{
    static const struct {
        const char *name, *text, *end;
    } near[] = {
        { "LOG", "inf", "; did you mean info?" },       { "LOG", "dbug:comm", "; did you mean debug?" },
        { "LEARN", "onn", "; did you mean on?" },       { "MODEL", "papre", "; did you mean paper?" },
        { "LOG", "info:attic", " (level of the log)" }, { "LEARN", "2", ")" },
    };
    (void)state;
    for (size_t i = 0; i < LENGTH(near); i++) {
        struct sar_config config;
        char sentence[256];
        assert_int_equal(load_one(near[i].name, near[i].text, &config, sentence, sizeof sentence),
                         SAR_BAD_SETTING);
        assert_string_equal(sentence + strlen(sentence) - strlen(near[i].end), near[i].end);
    }
}

/* An error for a number above the maximum names the maximum. */
static void test_refusals_name_the_most(void **state)
{
    static const char *const limited[] = { "NODES", "THROTTLE", "STAGING", "CHUNK" };
    (void)state;
    for (size_t i = 0; i < LENGTH(limited); i++) {
        struct sar_config config;
        uint64_t least_refused = UINT64_C(1) << 63;
        char sentence[256], text[32];
        for (uint64_t step = least_refused / 2; step > 0; step /= 2) {
            snprintf(text, sizeof text, "%llu", (unsigned long long)(least_refused - step));
            if (load_one(limited[i], text, &config, sentence, sizeof sentence) != SAR_OK)
                least_refused -= step;
        }
        snprintf(text, sizeof text, "%llu", (unsigned long long)least_refused);
        assert_int_equal(load_one(limited[i], text, &config, sentence, sizeof sentence), SAR_BAD_SETTING);
        snprintf(text, sizeof text, "%llu", (unsigned long long)least_refused - 1);
        assert_int_equal(load_one(limited[i], text, &config, sentence, sizeof sentence), SAR_OK);
        load_one(limited[i], "18446744073709551615", &config, sentence, sizeof sentence);
        if (strstr(sentence, text) == NULL)
            fail_msg("%s takes up to %s, but says: %s", limited[i], text, sentence);
    }
}

static void test_a_sentence_keeps_to_its_room(void **state)
{
    (void)state;
    for (size_t room = 1; room < 40; room++) {
        struct sar_config config;
        char sentence[64];
        memset(sentence, '#', sizeof sentence);
        assert_int_equal(load_one("GRAIN", "3", &config, sentence, room), SAR_BAD_SETTING);
        assert_int_equal(strlen(sentence), room - 1);
        assert_int_equal(sentence[room], '#');
    }
}

/* The default that a setting prints equals its behaviour when it is not set. */
static void test_defaults_pass_through_the_parsers(void **state)
{
    struct setting settings[64] = { { NULL, NULL } }, none = { NULL, NULL };
    struct sar_config given, left;
    char sentence[256];
    const char *help;
    (void)state;
    for (size_t i = 0; sar_config_setting(i, &settings[i].name, &settings[i].text, &help); i++) {
        assert_true(i + 1 < LENGTH(settings));
        settings[i + 1].name = NULL;
    }
    memset(&given, 1, sizeof given);
    memset(&left, 1, sizeof left);
    assert_int_equal(sar_config_load(&given, setting_find, settings, sentence, sizeof sentence), SAR_OK);
    assert_int_equal(sar_config_load(&left, setting_find, &none, sentence, sizeof sentence), SAR_OK);
    for (size_t i = 0; i < LENGTH(defaults); i++) {
        check(&given, &defaults[i]);
        check(&left, &defaults[i]);
    }
}

static void test_the_environment(void **state)
{
    struct sar_config config;
    char sentence[256];
    (void)state;
    assert_int_equal(setenv("MPIX_SPARSE_GRAIN", "32", 1), 0);
    assert_string_equal(sar_env_setting("GRAIN", NULL), "32");
    assert_int_equal(sar_config_load(&config, sar_env_setting, NULL, sentence, sizeof sentence), SAR_OK);
    assert_int_equal(config.grain, 32);
    assert_int_equal(setenv("MPIX_SPARSE_GRAIN", "", 1), 0);
    assert_null(sar_env_setting("GRAIN", NULL));
    assert_int_equal(sar_config_load(&config, sar_env_setting, NULL, sentence, sizeof sentence), SAR_OK);
    assert_int_equal(config.grain, SAR_AUTO);
    assert_int_equal(unsetenv("MPIX_SPARSE_GRAIN"), 0);
    assert_null(sar_env_setting("GRAIN", NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_description),
        cmocka_unit_test(test_good_values),
        cmocka_unit_test(test_bad_values),
        cmocka_unit_test(test_refusals_name_the_most),
        cmocka_unit_test(test_refusals_name_the_nearest),
        cmocka_unit_test(test_a_sentence_keeps_to_its_room),
        cmocka_unit_test(test_defaults_pass_through_the_parsers),
        cmocka_unit_test(test_the_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
