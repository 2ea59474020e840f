/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/setting_type.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/env.h"
#include "base/log.h"

static void *field_of(const struct sar_setting *setting, const void *config)
{
    return (char *)config + setting->offset;
}

static bool parse_text(const struct sar_setting *setting, const char *text, void *config)
{
    return text[0] != '\0' &&
           snprintf(field_of(setting, config), SAR_SETTING_TEXT, "%s", text) < SAR_SETTING_TEXT;
}

static void format_text(const struct sar_setting *setting, const void *config, char *text, size_t capacity)
{
    snprintf(text, capacity, "%s", (const char *)field_of(setting, config));
}

static bool parse_path(const struct sar_setting *setting, const char *text, void *config)
{
    return text[0] != '\0' &&
           snprintf(field_of(setting, config), SAR_SETTING_PATH, "%s", text) < SAR_SETTING_PATH;
}

static bool parse_log(const struct sar_setting *setting, const char *text, void *config)
{
    enum sar_log_level levels[SAR_LOG_COMPONENTS];
    return sar_log_parse(text, levels) && parse_text(setting, text, config);
}

static bool choose(const struct sar_setting *setting, const char *text, int *choice,
                   int (*compare)(const char *, const char *))
{
    for (int i = 0; setting->choices[i] != NULL; i++) {
        if (compare(setting->choices[i], text) == 0) {
            *choice = i;
            return true;
        }
    }
    return false;
}

static bool parse_choice(const struct sar_setting *setting, const char *text, void *config)
{
    return choose(setting, text, field_of(setting, config), strcmp);
}

static void format_choice(const struct sar_setting *setting, const void *config, char *text, size_t capacity)
{
    snprintf(text, capacity, "%s", setting->choices[*(const int *)field_of(setting, config)]);
}

static bool parse_switch(const struct sar_setting *setting, const char *text, void *config)
{
    int choice;
    if (!choose(setting, text, &choice, strcasecmp))
        return false;
    *(bool *)field_of(setting, config) = choice % 2 == 1;
    return true;
}

static void format_switch(const struct sar_setting *setting, const void *config, char *text, size_t capacity)
{
    snprintf(text, capacity, "%s", setting->choices[*(const bool *)field_of(setting, config)]);
}

static bool parse_double(const struct sar_setting *setting, const char *text, void *config)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end != '\0' || !(value >= setting->min && value <= setting->max))
        return false;
    *(double *)field_of(setting, config) = value;
    return true;
}

/* Writes as few digits as parse back to the same number. */
static void format_double(const struct sar_setting *setting, const void *config, char *text, size_t capacity)
{
    double value = *(const double *)field_of(setting, config);
    char digits[SAR_SETTING_TEXT];
    int precision = 5;
    do {
        snprintf(digits, sizeof digits, "%.*g", ++precision, value);
    } while (strtod(digits, NULL) != value);
    snprintf(text, capacity, "%s", digits);
}

static bool parse_u64(const struct sar_setting *setting, const char *text, void *config)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || (double)value < setting->min ||
        (setting->max > 0 && (double)value > setting->max))
        return false;
    *(uint64_t *)field_of(setting, config) = value;
    return true;
}

static void format_u64(const struct sar_setting *setting, const void *config, char *text, size_t capacity)
{
    snprintf(text, capacity, "%llu", (unsigned long long)*(const uint64_t *)field_of(setting, config));
}

static bool parse_u64_or_auto(const struct sar_setting *setting, const char *text, void *config)
{
    if (strcmp(text, "auto") != 0)
        return parse_u64(setting, text, config);
    *(uint64_t *)field_of(setting, config) = SAR_U64_AUTO;
    return true;
}

static void format_u64_or_auto(const struct sar_setting *setting, const void *config, char *text,
                               size_t capacity)
{
    if (*(const uint64_t *)field_of(setting, config) == SAR_U64_AUTO)
        snprintf(text, capacity, "auto");
    else
        format_u64(setting, config, text, capacity);
}

static bool parse_grain(const struct sar_setting *setting, const char *text, void *config)
{
    int *field = field_of(setting, config);
    char *end;
    long value = strtol(text, &end, 10);
    *field = SAR_AUTO;
    if (strcmp(text, "auto") == 0)
        return true;
    if (*end != '\0' || value < 1 || (double)value > setting->max || (value & (value - 1)) != 0)
        return false;
    *field = (int)value;
    return true;
}

static void format_grain(const struct sar_setting *setting, const void *config, char *text, size_t capacity)
{
    int grain = *(const int *)field_of(setting, config);
    if (grain == SAR_AUTO)
        snprintf(text, capacity, "auto");
    else
        snprintf(text, capacity, "%d", grain);
}

const struct sar_setting_type sar_setting_text = { parse_text, format_text };
const struct sar_setting_type sar_setting_path = { parse_path, format_text };
const struct sar_setting_type sar_setting_log = { parse_log, format_text };
const struct sar_setting_type sar_setting_choice = { parse_choice, format_choice };
const struct sar_setting_type sar_setting_switch = { parse_switch, format_switch };
const struct sar_setting_type sar_setting_double = { parse_double, format_double };
const struct sar_setting_type sar_setting_u64 = { parse_u64, format_u64 };
const struct sar_setting_type sar_setting_u64_or_auto = { parse_u64_or_auto, format_u64_or_auto };
const struct sar_setting_type sar_setting_grain = { parse_grain, format_grain };
