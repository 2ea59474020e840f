/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of all settings, and the layers that a configuration is built from: defaults, calibration file,
 * environment, info objects. */

#include "base/config.h"

#include <assert.h>
#include <ctype.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/nearest.h"
#include "base/parallel.h"

extern char **environ;

static const char *const switch_names[] = { "off", "on", "0", "1", "no", "yes", "false", "true", NULL };
static const char *const precision_names[] = { "full", "bf16", "fp16", NULL };
static const char *const element_names[] = { "integer", "bf16", "fp16", NULL };
static const char *const model_names[] = { "measured", "paper", NULL };
static const char *const aware_names[] = { "auto", "yes", "no", NULL };
static const char *const relay_names[] = { "auto", "on", "off", NULL };
static const char *const progress_names[] = { "wait", "thread", NULL };

/* One format for both steps of a scheme, or "push/pull". */
static bool parse_wires(const struct sar_setting *setting, const char *text, void *values)
{
    struct sar_config *config = values;
    (void)setting;
    size_t push = strcspn(text, "/");
    const char *pull = text[push] == '/' ? text + push + 1 : text;
    if (push == 0 || push >= SAR_SETTING_TEXT || pull[0] == '\0' || strlen(pull) >= SAR_SETTING_TEXT)
        return false;
    memcpy(config->push_wire, text, push);
    config->push_wire[push] = '\0';
    snprintf(config->pull_wire, SAR_SETTING_TEXT, "%s", pull);
    return true;
}

static void format_wires(const struct sar_setting *setting, const void *values, char *text, size_t capacity)
{
    const struct sar_config *config = values;
    bool equal = strcmp(config->push_wire, config->pull_wire) == 0;
    (void)setting;
    snprintf(text, capacity, "%s%s%s", config->push_wire, equal ? "" : "/", equal ? "" : config->pull_wire);
}

static const struct sar_setting_type wires = { parse_wires, format_wires };

#define FIELD(name) offsetof(struct sar_config, name)

static const struct sar_setting settings[] = {
    { "SCHEME", "auto", "name of a scheme, or auto to let the cost model choose", FIELD(scheme),
      &sar_setting_text, NULL, 0, 0 },
    { "WIRE", "auto",
      "format of messages, auto for the cheapest, smallest for the fewest bytes; or push/pull", 0, &wires,
      NULL, 0, 0 },
    { "WIRE_VALUES", "full", "precision of floats in messages: full, or rounded to 16 bits as bf16 or fp16",
      FIELD(wire_values), &sar_setting_choice, precision_names, 0, 0 },
    { "ELEMENT", "integer", "meaning of integers of 2 bytes: integer, or floats as bf16 or fp16",
      FIELD(element), &sar_setting_choice, element_names, 0, 0 },
    { "PARTITION", "auto", "map of elements to parts: auto, hash, cyclic, range or hierarchical",
      FIELD(partition), &sar_setting_text, NULL, 0, 0 },
    { "GRAIN", "auto", "consecutive elements that stay in one part: auto, or a power of two from 1 to 256",
      FIELD(grain), &sar_setting_grain, NULL, 1, 256 },
    { "COLUMNS", "auto",
      "ranks that share a row, each owning a slice of its columns, at most: auto, or from 1 to 1048576",
      FIELD(columns), &sar_setting_u64_or_auto, NULL, 1, 1 << 20 },
    { "RELAY", "auto",
      "relayed pull of balanced, so that no rank sends more than the others: auto, on or off", FIELD(relay),
      &sar_setting_choice, relay_names, 0, 0 },
    { "IMBALANCE", "1.1", "predicted imbalance that an automatic grain stays below: a number from 1 on",
      FIELD(imbalance), &sar_setting_double, NULL, 1, 1e9 },
    { "SEED", "0", "seed of the hash: a whole number from 0 on, 0 to draw one", FIELD(seed), &sar_setting_u64,
      NULL, 0, 0 },
    { "MODEL", "measured",
      "cost model: measured, with the machine's constants, or paper, with the paper's two equations",
      FIELD(model), &sar_setting_choice, model_names, 0, 0 },
    { "LEARN", "on", "correction of prices by measured times of calls: on or off", FIELD(learn),
      &sar_setting_switch, switch_names, 0, 0 },
    { "PROFILE_EVERY", "256", "calls from one profile of a tensor to the next: a whole number from 1 on",
      FIELD(profile_every), &sar_setting_u64, NULL, 1, 0 },
    { "CHECK_STARTS", "off", "consistency check in all starts of plans: on, or off once a scheme is settled",
      FIELD(check_starts), &sar_setting_switch, switch_names, 0, 0 },
    { "SPECULATE", "on", "first messages of small calls beside their consistency check: on or off",
      FIELD(speculate), &sar_setting_switch, switch_names, 0, 0 },
    { "FORWARD", "63",
      "calls, at most, passed through to MPI_Allreduce after a dense one: a whole number from 0 on, 0 to "
      "check every call",
      FIELD(forward), &sar_setting_u64, NULL, 0, 0 },
    { "SEGMENT", "auto",
      "bytes of a message from which balanced and two_level work in segments: auto, or a number from 1 on",
      FIELD(segment), &sar_setting_u64_or_auto, NULL, 1, 0 },
    { "CHUNK", "536870912", "most bytes handed to MPI at a time: from 8192 to 1073741824", FIELD(chunk),
      &sar_setting_u64, NULL, 8192, 1 << 30 },
    { "THROTTLE", "auto",
      "long messages that a rank sends to other nodes at a time: auto, or up to 1048576, 0 for all",
      FIELD(throttle), &sar_setting_u64_or_auto, NULL, 0, 1 << 20 },
    { "LONG", "65536", "bytes from which a message is long: a whole number from 1 on", FIELD(long_message),
      &sar_setting_u64, NULL, 1, 0 },
    { "RECOMPUTE", "64", "calls of a tensor for which oktopk keeps its boundaries: a number from 1 on",
      FIELD(recompute), &sar_setting_u64, NULL, 1, 0 },
    { "FUSE", "auto",
      "bytes of a plan up to which it is fused with others started together: auto, or a number, 0 for none",
      FIELD(fuse), &sar_setting_u64_or_auto, NULL, 0, 0 },
    { "NODES", "0", "nodes that the ranks are taken to be on: up to 1048576, 0 for those that they are on",
      FIELD(nodes), &sar_setting_u64, NULL, 0, 1 << 20 },
    { "ALPHA", "0", "seconds for a message between nodes: a number from 0 on, 0 to measure", FIELD(alpha),
      &sar_setting_double, NULL, 0, 1e9 },
    { "BETA", "0", "seconds for a byte between nodes: a number from 0 on, 0 to measure", FIELD(beta),
      &sar_setting_double, NULL, 0, 1e9 },
    { "GAMMA", "0", "seconds for an element reduced: a number from 0 on, 0 to measure", FIELD(gamma),
      &sar_setting_double, NULL, 0, 1e9 },
    { "OVERHEAD", "0",
      "seconds for each further message between nodes of several at once: a number from 0 on, 0 to measure",
      FIELD(overhead), &sar_setting_double, NULL, 0, 1e9 },
    { "CALIBRATION", "none",
      "file of mpix_sparse_perf --calibrate that holds the machine's constants, or none", FIELD(calibration),
      &sar_setting_path, NULL, 0, 0 },
    { "CUDA_AWARE", "auto", "use of device memory in MPI calls: yes, no, or auto to test if MPI accepts it",
      FIELD(cuda_aware), &sar_setting_choice, aware_names, 0, 0 },
    { "STAGING", "4194304",
      "bytes of a block of pinned memory, four of which an array of a device passes through: from 4096 to "
      "1073741824",
      FIELD(staging), &sar_setting_u64, NULL, 4096, 1 << 30 },
    { "CUDA_LEAST", "16384",
      "elements of a message from which vectors in device memory are reduced and coded there: a whole number",
      FIELD(cuda_least), &sar_setting_u64, NULL, 0, 0 },
    { "PROGRESS", "wait", "progress of nonblocking calls: wait, by callers that wait or test; or thread",
      FIELD(progress), &sar_setting_choice, progress_names, 0, 0 },
    { "THREADS", "auto",
      "threads that the work of a call may use: auto, for the rank's share of its processors, or from 1 to "
      "1024",
      FIELD(threads), &sar_setting_u64_or_auto, NULL, 1, SAR_THREADS_MAX },
    { "EXPLAIN", "off", "table of prices at each selection: on or off", FIELD(explain), &sar_setting_switch,
      switch_names, 0, 0 },
    { "STALL", "60",
      "seconds of waiting after which the log names missing ranks: a number without a unit, 0 for never",
      FIELD(stall), &sar_setting_double, NULL, 0, 1e9 },
    { "LOG", "warn",
      "level of the log: warn, info, debug or trace; "
      "with :component,component for these alone: " SAR_LOG_COMPONENT_NAMES,
      FIELD(log), &sar_setting_log, NULL, 0, 0 },
    { "LOG_FILE", "stderr", "file of the log, with %h for the host, %p the process, %r the rank; or stderr",
      FIELD(log_file), &sar_setting_path, NULL, 0, 0 },
    { "TRACE", "none", "file for the times of calls, with %h, %p and %r, else .rank is added; or none",
      FIELD(trace), &sar_setting_path, NULL, 0, 0 },
    { "PRELOAD_MIN_BYTES", "65536",
      "bytes of the smallest vector that libmpix_sparse_preload may take: a whole number from 0 on",
      FIELD(preload_min_bytes), &sar_setting_u64, NULL, 0, 0 },
    { "PRELOAD_LIMIT", "0.02",
      "share of calls that probes of libmpix_sparse_preload may cost: a number from 0 on",
      FIELD(preload_limit), &sar_setting_double, NULL, 0, 1e9 },
    { "PRELOAD_NONBLOCKING", "off", "nonblocking calls for libmpix_sparse_preload too: on or off",
      FIELD(preload_nonblocking), &sar_setting_switch, switch_names, 0, 0 },
    { "PRELOAD_REPORT", "none", "file that libmpix_sparse_preload writes its report to, or none",
      FIELD(preload_report), &sar_setting_path, NULL, 0, 0 },
};

enum { SETTINGS = sizeof settings / sizeof settings[0] };

_Static_assert((int)SETTINGS <= (int)SAR_SETTINGS_MAX, "sar_config.source has an element for each setting");

/* Returns the word that the value of a setting misspells, or NULL. */
static const char *nearest_value(const struct sar_setting *setting, const char *text)
{
    bool is_log = setting->type == &sar_setting_log;
    struct sar_nearest nearest = sar_nearest_begin(text, is_log ? strcspn(text, ":") : strlen(text));
    for (int i = 0; setting->choices != NULL && setting->choices[i] != NULL; i++)
        if (isalpha((unsigned char)setting->choices[i][0]))
            sar_nearest_try(&nearest, setting->choices[i]);
    for (int i = 0; is_log && sar_log_level_name(i) != NULL; i++)
        sar_nearest_try(&nearest, sar_log_level_name(i));
    return nearest.distance > 0 ? nearest.found : NULL; /* 0: the level is right, and the component is not */
}

/* A help text is "purpose: values", or the purpose alone. */
static void describe_bad_value(const struct sar_setting *setting, const char *full_name, const char *text,
                               char *error_text, size_t capacity)
{
    const char *values = strstr(setting->help, ": ");
    int purpose = (int)(values == NULL ? strlen(setting->help) : (size_t)(values - setting->help));
    int used = snprintf(error_text, capacity, "%s is '%.60s'; it must be %s", full_name, text,
                        values == NULL ? "the" : values + 2);
    if (used > 0 && (size_t)used < capacity)
        used += snprintf(error_text + used, capacity - (size_t)used, values == NULL ? " %.*s" : " (%.*s)",
                         purpose, setting->help);
    const char *nearest = nearest_value(setting, text);
    if (nearest != NULL && used > 0 && (size_t)used < capacity)
        snprintf(error_text + used, capacity - (size_t)used, "; did you mean %s?", nearest);
}

enum sar_status sar_config_apply(struct sar_config *config, const struct sar_config_layer *layer,
                                 char *error_text, size_t capacity)
{
    struct sar_config changed = *config;
    char full_name[SAR_SETTING_TEXT];
    for (size_t i = 0; i < SETTINGS; i++) {
        const char *text = layer->lookup(settings[i].name, layer->arg);
        if (text == NULL || changed.source[i] > layer->source)
            continue;
        if (!settings[i].type->parse(&settings[i], text, &changed)) {
            sar_config_spell(settings[i].name, layer->source, full_name, sizeof full_name);
            describe_bad_value(&settings[i], full_name, text, error_text, capacity);
            return SAR_BAD_SETTING;
        }
        changed.source[i] = (unsigned char)layer->source;
    }
    *config = changed;
    return SAR_OK;
}

enum sar_status sar_config_load(struct sar_config *config, sar_config_lookup_fn lookup, void *arg,
                                char *error_text, size_t capacity)
{
    struct sar_config loaded;
    memset(&loaded, 0, sizeof loaded);
    for (size_t i = 0; i < SETTINGS; i++) {
        bool valid = settings[i].type->parse(&settings[i], settings[i].fallback, &loaded);
        assert(valid), (void)valid;
    }
    SAR_TRY(sar_config_apply(&loaded, &(struct sar_config_layer){ SAR_SOURCE_ENVIRONMENT, lookup, arg },
                             error_text, capacity));
    *config = loaded;
    return SAR_OK;
}

/* Returns the index of the setting whose name has these `length` characters, or SETTINGS. */
static size_t find_setting(const char *name, size_t length)
{
    size_t i = 0;
    while (i < SETTINGS &&
           (strlen(settings[i].name) != length || strncmp(settings[i].name, name, length) != 0))
        i++;
    return i;
}

const char *sar_config_unknown(char *const variables[], size_t *at, size_t *length)
{
    size_t prefix = strlen(SAR_ENV_PREFIX);
    while (variables[*at] != NULL) {
        const char *entry = variables[(*at)++];
        *length = strcspn(entry, "=");
        if (strncmp(entry, SAR_ENV_PREFIX, prefix) == 0 &&
            find_setting(entry + prefix, *length - prefix) == SETTINGS)
            return entry;
    }
    return NULL;
}

bool sar_config_setting(size_t i, const char **name, const char **fallback, const char **help)
{
    if (i >= SETTINGS)
        return false;
    *name = settings[i].name;
    *fallback = settings[i].fallback;
    *help = settings[i].help;
    return true;
}

bool sar_config_format(const struct sar_config *config, size_t i, char *text, size_t capacity,
                       enum sar_config_source *source)
{
    if (i >= SETTINGS)
        return false;
    settings[i].type->format(&settings[i], config, text, capacity);
    *source = (enum sar_config_source)config->source[i];
    return true;
}

bool sar_config_equal(const struct sar_config *a, const struct sar_config *b, size_t *at)
{
    char left[SAR_SETTING_PATH], right[SAR_SETTING_PATH];
    for (size_t i = 0; i < SETTINGS; i++) {
        settings[i].type->format(&settings[i], a, left, sizeof left);
        settings[i].type->format(&settings[i], b, right, sizeof right);
        if (strcmp(left, right) != 0) {
            *at = i;
            return false;
        }
    }
    return true;
}

enum sar_config_source sar_config_source_of(const struct sar_config *config, const char *name)
{
    size_t i = find_setting(name, strlen(name));
    return i < SETTINGS ? (enum sar_config_source)config->source[i] : SAR_SOURCE_DEFAULT;
}

void sar_config_spell(const char *name, enum sar_config_source source, char *text, size_t capacity)
{
    snprintf(text, capacity, SAR_ENV_PREFIX "%s", name);
    if (source != SAR_SOURCE_COMM_INFO && source != SAR_SOURCE_PLAN_INFO)
        return;
    for (; *text != '\0'; text++)
        *text = (char)tolower((unsigned char)*text);
}

const char *sar_config_source_name(enum sar_config_source source)
{
    static const char *const names[SAR_SOURCES] = { "default", "calibration file", "environment",
                                                    "info of the communicator", "info of the plan" };
    return names[source];
}

const char *sar_config_nearest(const char *name, size_t length)
{
    const char *setting, *fallback, *help;
    struct sar_nearest nearest = sar_nearest_begin(name, length);
    for (size_t i = 0; sar_config_setting(i, &setting, &fallback, &help); i++)
        sar_nearest_try(&nearest, setting);
    return nearest.found;
}

void sar_config_warn_unknown(void)
{
    static atomic_flag warned = ATOMIC_FLAG_INIT;
    size_t at = 0, length;
    const char *name;
    if (atomic_flag_test_and_set(&warned))
        return;
    while ((name = sar_config_unknown(environ, &at, &length)) != NULL) {
        size_t prefix = strlen(SAR_ENV_PREFIX);
        const char *nearest = sar_config_nearest(name + prefix, length - prefix);
        SAR_LOG(WARN, BASE, "%.*s is set but is not a setting of this library; %s%s", (int)length, name,
                nearest == NULL ? "mpix_sparse_info -c lists all" : "did you mean " SAR_ENV_PREFIX,
                nearest == NULL ? "" : nearest);
    }
}
