/* SPDX-License-Identifier: BSD-3-Clause */
/* The settings: read from the environment, and printed with their sources. */

#include <stdio.h>
#include <string.h>

#include "bench/info/info.h"
#include "bench/lib/schema.h"
#include "comm/calibration.h"
#include "core/policy.h"

extern char **environ;

static bool print_bad_setting(const char *error_text)
{
    fprintf(stderr, "mpix_sparse_info: %s\n", error_text);
    return false;
}

/* Without a communicator, the file's machine cannot be compared with the current one. */
static bool read_calibration(struct info_settings *settings)
{
    struct sar_machine machine;
    char error_text[SAR_ERROR_TEXT_SIZE] = "out of memory";
    bool fits = false;

    if (sar_calibration_apply(&settings->config, NULL, &machine, &fits, error_text, sizeof error_text) !=
        SAR_OK)
        return print_bad_setting(error_text);
    if (fits)
        settings->memory = machine.memory;
    else
        fprintf(stderr, "mpix_sparse_info: %s is not used: %s\n", settings->config.calibration, error_text);
    return true;
}

bool info_settings_read(struct info_settings *settings)
{
    char error_text[SAR_ERROR_TEXT_SIZE];
    const char *name;
    size_t at = 0, length;

    memset(settings, 0, sizeof *settings);
    while ((name = sar_config_unknown(environ, &at, &length)) != NULL) {
        size_t prefix = strlen(SAR_ENV_PREFIX);
        const char *nearest = sar_config_nearest(name + prefix, length - prefix);
        fprintf(stderr, "mpix_sparse_info: %.*s is set but is not a setting of this library%s%s\n",
                (int)length, name, nearest == NULL ? "" : "; did you mean " SAR_ENV_PREFIX,
                nearest == NULL ? "" : nearest);
    }
    if (sar_config_load(&settings->config, sar_env_setting, NULL, error_text, sizeof error_text) != SAR_OK ||
        sar_policy_check(&settings->config, error_text, sizeof error_text) != SAR_OK)
        return print_bad_setting(error_text);
    return strcmp(settings->config.calibration, "none") == 0 || read_calibration(settings);
}

struct record {
    char name[SAR_SETTING_TEXT], value[SAR_SETTING_PATH];
    const char *from, *what;
};

static void print_setting(const struct record *record, bool json)
{
    static const struct perf_field fields[] = {
        PERF_FIELD(record, "knob", PERF_LETTERS, name),
        PERF_FIELD(record, "value", PERF_LETTERS, value),
        PERF_FIELD(record, "from", PERF_TEXT, from),
        PERF_FIELD(record, "what", PERF_TEXT, what),
    };
    static const struct perf_schema schema = PERF_SCHEMA(fields);

    if (json)
        perf_write_json(stdout, &schema, record);
    else
        printf("%-29s %-16s %-17s %s\n", record->name, record->value, record->from, record->what);
}

void info_print_settings(const struct info_settings *settings, bool json)
{
    const char *name, *fallback, *help;

    if (!json)
        print_setting(&(struct record){ "# setting", "value", "from", "what" }, json);
    for (size_t i = 0; sar_config_setting(i, &name, &fallback, &help); i++) {
        struct record record = { .what = help };
        enum sar_config_source origin;
        sar_config_format(&settings->config, i, record.value, sizeof record.value, &origin);
        snprintf(record.name, sizeof record.name, "MPIX_SPARSE_%s", name);
        record.from = sar_config_source_name(origin);
        print_setting(&record, json);
    }
}
