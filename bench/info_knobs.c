/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "info.h"
#include "net/calibration.h"
#include "plan/context.h"
#include "serial.h"

extern char **environ;

static bool bad_knob(const char *sentence)
{
    fprintf(stderr, "mpix_sparse_info: %s\n", sentence);
    return false;
}

/* Whether the constants hold for a communicator is known when there is one. */
static bool read_calibration(struct info_settings *settings)
{
    struct sar_machine machine;
    char sentence[SAR_SENTENCE] = "out of memory";
    bool fits = false;

    if (sar_calibration_apply(&settings->config, NULL, &machine, &fits, sentence, sizeof sentence) != SAR_OK)
        return bad_knob(sentence);
    if (fits)
        settings->memory = machine.memory;
    else
        fprintf(stderr, "mpix_sparse_info: %s is not used: %s\n", settings->config.calibration, sentence);
    return true;
}

bool info_settings_read(struct info_settings *settings)
{
    char sentence[SAR_SENTENCE];
    const char *name;
    size_t at = 0, length;

    memset(settings, 0, sizeof *settings);
    while ((name = sar_config_unknown(environ, &at, &length)) != NULL)
        fprintf(stderr, "mpix_sparse_info: %.*s is set but is no knob of this library\n", (int)length, name);
    if (sar_config_load(&settings->config, sar_environment, NULL, sentence, sizeof sentence) != SAR_OK ||
        sar_context_check(&settings->config, sentence, sizeof sentence) != SAR_OK)
        return bad_knob(sentence);
    return strcmp(settings->config.calibration, "none") == 0 || read_calibration(settings);
}

struct line {
    char knob[SAR_KNOB_TEXT], value[SAR_KNOB_PATH];
    const char *from, *what;
};

static void print_line(const struct line *line, bool json)
{
    static const struct perf_field fields[] = {
        PERF_FIELD(line, "knob", PERF_LETTERS, knob),
        PERF_FIELD(line, "value", PERF_LETTERS, value),
        PERF_FIELD(line, "from", PERF_TEXT, from),
        PERF_FIELD(line, "what", PERF_TEXT, what),
    };
    static const struct perf_schema schema = PERF_SCHEMA(fields);

    if (json)
        perf_write_json(stdout, &schema, line);
    else
        printf("%-29s %-16s %-17s %s\n", line->knob, line->value, line->from, line->what);
}

void info_print_knobs(const struct info_settings *settings, bool json)
{
    const char *name, *fallback, *help;

    if (!json)
        print_line(&(struct line){ "# knob", "value", "from", "what" }, json);
    for (size_t i = 0; sar_config_describe(i, &name, &fallback, &help); i++) {
        struct line line = { .what = help };
        enum sar_origin origin;
        sar_config_show(&settings->config, i, line.value, sizeof line.value, &origin);
        snprintf(line.knob, sizeof line.knob, "MPIX_SPARSE_%s", name);
        line.from = sar_origin_name(origin);
        print_line(&line, json);
    }
}
