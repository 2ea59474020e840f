/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/config.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

#define PREFIX "MPIX_SPARSE_"

struct knob;

/* How a knob is read from a text, and written as one. */
struct kind {
    bool (*parse)(const struct knob *knob, const char *text, struct sar_config *config);
    void (*show)(const struct knob *knob, const struct sar_config *config, char *text, size_t room);
};

struct knob {
    const char *name, *fallback, *help;
    size_t offset;
    const struct kind *kind;
    const char *const *names; /* of a choice, ended by NULL */
    double least, most;       /* of a number */
};

static void *field_of(const struct knob *knob, struct sar_config *config)
{
    return (char *)config + knob->offset;
}

static const void *value_of(const struct knob *knob, const struct sar_config *config)
{
    return (const char *)config + knob->offset;
}

static bool parse_text(const struct knob *knob, const char *text, struct sar_config *config)
{
    return text[0] != '\0' && snprintf(field_of(knob, config), SAR_KNOB_TEXT, "%s", text) < SAR_KNOB_TEXT;
}

static void show_text(const struct knob *knob, const struct sar_config *config, char *text, size_t room)
{
    snprintf(text, room, "%s", (const char *)value_of(knob, config));
}

static bool parse_path(const struct knob *knob, const char *text, struct sar_config *config)
{
    return text[0] != '\0' && snprintf(field_of(knob, config), SAR_KNOB_PATH, "%s", text) < SAR_KNOB_PATH;
}

static bool parse_log(const struct knob *knob, const char *text, struct sar_config *config)
{
    enum sar_log_level levels[SAR_ROOMS];
    return sar_log_parse(text, levels) && parse_text(knob, text, config);
}

/* One name for both steps of a scheme, or push/pull. */
static bool parse_wires(const struct knob *knob, const char *text, struct sar_config *config)
{
    (void)knob;
    size_t push = strcspn(text, "/");
    const char *pull = text[push] == '/' ? text + push + 1 : text;
    if (push == 0 || push >= SAR_KNOB_TEXT || pull[0] == '\0' || strlen(pull) >= SAR_KNOB_TEXT)
        return false;
    memcpy(config->push_wire, text, push);
    config->push_wire[push] = '\0';
    snprintf(config->pull_wire, SAR_KNOB_TEXT, "%s", pull);
    return true;
}

static void show_wires(const struct knob *knob, const struct sar_config *config, char *text, size_t room)
{
    bool one = strcmp(config->push_wire, config->pull_wire) == 0;
    (void)knob;
    snprintf(text, room, "%s%s%s", config->push_wire, one ? "" : "/", one ? "" : config->pull_wire);
}

static bool choose(const struct knob *knob, const char *text, int *choice)
{
    for (int i = 0; knob->names[i] != NULL; i++) {
        if (strcmp(knob->names[i], text) == 0) {
            *choice = i;
            return true;
        }
    }
    return false;
}

static bool parse_choice(const struct knob *knob, const char *text, struct sar_config *config)
{
    return choose(knob, text, field_of(knob, config));
}

static void show_choice(const struct knob *knob, const struct sar_config *config, char *text, size_t room)
{
    snprintf(text, room, "%s", knob->names[*(const int *)value_of(knob, config)]);
}

static bool parse_switch(const struct knob *knob, const char *text, struct sar_config *config)
{
    int choice;
    if (!choose(knob, text, &choice))
        return false;
    *(bool *)field_of(knob, config) = choice % 2 == 1;
    return true;
}

static void show_switch(const struct knob *knob, const struct sar_config *config, char *text, size_t room)
{
    snprintf(text, room, "%s", knob->names[*(const bool *)value_of(knob, config)]);
}

static bool parse_double(const struct knob *knob, const char *text, struct sar_config *config)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end != '\0' || !(value >= knob->least && value <= knob->most))
        return false;
    *(double *)field_of(knob, config) = value;
    return true;
}

/* As few digits as give the number back. */
static void show_double(const struct knob *knob, const struct sar_config *config, char *text, size_t room)
{
    double value = *(const double *)value_of(knob, config);
    char digits[SAR_KNOB_TEXT];
    int precision = 5;
    do {
        snprintf(digits, sizeof digits, "%.*g", ++precision, value);
    } while (strtod(digits, NULL) != value);
    snprintf(text, room, "%s", digits);
}

static bool parse_whole(const struct knob *knob, const char *text, struct sar_config *config)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || (double)value < knob->least ||
        (knob->most > 0 && (double)value > knob->most))
        return false;
    *(uint64_t *)field_of(knob, config) = value;
    return true;
}

static void show_whole(const struct knob *knob, const struct sar_config *config, char *text, size_t room)
{
    snprintf(text, room, "%llu", (unsigned long long)*(const uint64_t *)value_of(knob, config));
}

/* "auto", or a whole number. */
static bool parse_whole_or_auto(const struct knob *knob, const char *text, struct sar_config *config)
{
    if (strcmp(text, "auto") != 0)
        return parse_whole(knob, text, config);
    *(uint64_t *)field_of(knob, config) = SAR_WHOLE_AUTO;
    return true;
}

static void show_whole_or_auto(const struct knob *knob, const struct sar_config *config, char *text,
                               size_t room)
{
    if (*(const uint64_t *)value_of(knob, config) == SAR_WHOLE_AUTO)
        snprintf(text, room, "auto");
    else
        show_whole(knob, config, text, room);
}

/* "auto", or a power of two. */
static bool parse_grain(const struct knob *knob, const char *text, struct sar_config *config)
{
    int *field = field_of(knob, config);
    char *end;
    long value = strtol(text, &end, 10);
    *field = SAR_AUTO;
    if (strcmp(text, "auto") == 0)
        return true;
    if (*end != '\0' || value < 1 || (double)value > knob->most || (value & (value - 1)) != 0)
        return false;
    *field = (int)value;
    return true;
}

static void show_grain(const struct knob *knob, const struct sar_config *config, char *text, size_t room)
{
    int grain = *(const int *)value_of(knob, config);
    if (grain == SAR_AUTO)
        snprintf(text, room, "auto");
    else
        snprintf(text, room, "%d", grain);
}

static const struct kind as_text = { parse_text, show_text }, as_wires = { parse_wires, show_wires },
                         as_choice = { parse_choice, show_choice }, as_switch = { parse_switch, show_switch },
                         as_double = { parse_double, show_double }, as_whole = { parse_whole, show_whole },
                         as_grain = { parse_grain, show_grain }, as_path = { parse_path, show_text },
                         as_whole_or_auto = { parse_whole_or_auto, show_whole_or_auto },
                         as_log = { parse_log, show_text };

static const char *const switch_names[] = { "off", "on", "0", "1", "no", "yes", NULL };
static const char *const values_names[] = { "full", "bf16", "fp16", NULL };
static const char *const element_names[] = { "integer", "bf16", "fp16", NULL };
static const char *const model_names[] = { "measured", "paper", NULL };
static const char *const aware_names[] = { "auto", "yes", "no", NULL };
static const char *const progress_names[] = { "wait", "thread", NULL };

#define FIELD(name) offsetof(struct sar_config, name)

static const struct knob knobs[] = {
    { "SCHEME", "auto", "name of a scheme, or auto to let the cost model choose", FIELD(scheme), &as_text,
      NULL, 0, 0 },
    { "WIRE", "auto",
      "format of messages, auto for the cheapest, smallest for the fewest bytes; or push/pull", 0, &as_wires,
      NULL, 0, 0 },
    { "WIRE_VALUES", "full", "how floats travel: full, or rounded to 16 bits as bf16 or fp16",
      FIELD(wire_values), &as_choice, values_names, 0, 0 },
    { "ELEMENT", "integer", "what integers of 2 bytes stand for: integer, or floats as bf16 or fp16",
      FIELD(element), &as_choice, element_names, 0, 0 },
    { "PARTITION", "auto", "map of elements to parts: auto, hash, cyclic or range", FIELD(partition),
      &as_text, NULL, 0, 0 },
    { "GRAIN", "auto", "consecutive elements that stay in one part: auto, or a power of two from 1 to 256",
      FIELD(grain), &as_grain, NULL, 1, 256 },
    { "IMBALANCE", "1.1", "predicted imbalance that an automatic grain stays below: a number from 1 on",
      FIELD(imbalance), &as_double, NULL, 1, 1e9 },
    { "SEED", "0", "seed of the hash: a whole number, 0 to draw one", FIELD(seed), &as_whole, NULL, 0, 0 },
    { "MODEL", "measured",
      "what prices the schemes: measured, by the machine's constants, or paper, by the paper's two equations",
      FIELD(model), &as_choice, model_names, 0, 0 },
    { "LEARN", "on", "let measured times of calls correct the prices: on or off", FIELD(learn), &as_switch,
      switch_names, 0, 0 },
    { "PROFILE_EVERY", "256", "calls from one profile of a tensor to the next: a whole number from 1 on",
      FIELD(profile_every), &as_whole, NULL, 1, 0 },
    { "FORWARD", "63",
      "calls, at most, that go to MPI_Allreduce unseen after a dense one; 0 to agree on every call",
      FIELD(forward), &as_whole, NULL, 0, 0 },
    { "SEGMENT", "auto",
      "bytes of a message from which balanced and two_level work in segments: auto, or a number from 1 on",
      FIELD(segment), &as_whole_or_auto, NULL, 1, 0 },
    { "CHUNK", "536870912", "most bytes handed to MPI at a time: from 8192 to 1073741824", FIELD(chunk),
      &as_whole, NULL, 8192, 1 << 30 },
    { "THROTTLE", "auto",
      "long messages that a rank sends to other nodes at a time: auto, or up to 1048576, 0 for all",
      FIELD(throttle), &as_whole_or_auto, NULL, 0, 1 << 20 },
    { "LONG", "65536", "bytes from which a message is long: a whole number from 1 on", FIELD(long_message),
      &as_whole, NULL, 1, 0 },
    { "RECOMPUTE", "64", "calls of a tensor for which oktopk keeps its boundaries: a number from 1 on",
      FIELD(recompute), &as_whole, NULL, 1, 0 },
    { "FUSE", "auto",
      "bytes of a plan up to which it is fused with others started together: auto, or a number, 0 for none",
      FIELD(fuse), &as_whole_or_auto, NULL, 0, 0 },
    { "NODES", "0", "nodes that the ranks are taken to be on: up to 1048576, 0 for those that they are on",
      FIELD(nodes), &as_whole, NULL, 0, 1 << 20 },
    { "ALPHA", "0", "seconds for a message between nodes, 0 to measure", FIELD(alpha), &as_double, NULL, 0,
      1e9 },
    { "BETA", "0", "seconds for a byte between nodes, 0 to measure", FIELD(beta), &as_double, NULL, 0, 1e9 },
    { "GAMMA", "0", "seconds for an element reduced, 0 to measure", FIELD(gamma), &as_double, NULL, 0, 1e9 },
    { "OVERHEAD", "0", "seconds for each further message between nodes of several at once, 0 to measure",
      FIELD(overhead), &as_double, NULL, 0, 1e9 },
    { "CALIBRATION", "none",
      "file of mpix_sparse_perf --calibrate that holds the machine's constants, or none", FIELD(calibration),
      &as_path, NULL, 0, 0 },
    { "CUDA_AWARE", "auto",
      "whether MPI is handed device memory: yes, no, or auto to find out whether it can be",
      FIELD(cuda_aware), &as_choice, aware_names, 0, 0 },
    { "STAGING", "4194304",
      "bytes of a block of pinned memory, four of which an array of a device passes through: from 4096 to "
      "1073741824",
      FIELD(staging), &as_whole, NULL, 4096, 1 << 30 },
    { "CUDA_LEAST", "16384",
      "elements of a message from which vectors in device memory are reduced and coded there: a whole number",
      FIELD(cuda_least), &as_whole, NULL, 0, 0 },
    { "PROGRESS", "wait", "what moves nonblocking calls: wait, whoever waits or tests; or thread",
      FIELD(progress), &as_choice, progress_names, 0, 0 },
    { "EXPLAIN", "off", "print the table of prices at each selection: on or off", FIELD(explain), &as_switch,
      switch_names, 0, 0 },
    { "STALL", "60", "seconds of waiting after which it is warned of who is missing: a number, 0 for never",
      FIELD(stall), &as_double, NULL, 0, 1e9 },
    { "LOG", "warn",
      "what is logged: warn, info, debug or trace; with :room,room of these alone: " SAR_LOG_ROOMS,
      FIELD(log), &as_log, NULL, 0, 0 },
    { "LOG_FILE", "stderr", "file of the log, with %h for the host, %p the process, %r the rank; or stderr",
      FIELD(log_file), &as_path, NULL, 0, 0 },
    { "TRACE", "none", "file for the times of calls, with %h, %p and %r, else .rank is added; or none",
      FIELD(trace), &as_path, NULL, 0, 0 },
    { "PRELOAD_MIN_BYTES", "65536", "smallest vector that libmpix_sparse_preload looks at: a whole number",
      FIELD(preload_min_bytes), &as_whole, NULL, 0, 0 },
    { "PRELOAD_LIMIT", "0.02",
      "share of calls that looks of libmpix_sparse_preload may cost: a number from 0 on",
      FIELD(preload_limit), &as_double, NULL, 0, 1e9 },
    { "PRELOAD_NONBLOCKING", "off", "let libmpix_sparse_preload take nonblocking calls too: on or off",
      FIELD(preload_nonblocking), &as_switch, switch_names, 0, 0 },
    { "PRELOAD_REPORT", "none", "file that libmpix_sparse_preload writes its report to, or none",
      FIELD(preload_report), &as_path, NULL, 0, 0 },
};

enum { KNOBS = sizeof knobs / sizeof knobs[0] };

_Static_assert((int)KNOBS <= (int)SAR_MOST_KNOBS, "struct sar_config keeps the origin of each knob");

static void set_defaults(struct sar_config *config)
{
    memset(config, 0, sizeof *config);
    for (size_t i = 0; i < KNOBS; i++) {
        bool good = knobs[i].kind->parse(&knobs[i], knobs[i].fallback, config);
        assert(good), (void)good;
    }
}

enum sar_status sar_config_apply(struct sar_config *config, const struct sar_source *source, char *sentence,
                                 size_t room)
{
    struct sar_config changed = *config;
    char spelled[SAR_KNOB_TEXT];
    for (size_t i = 0; i < KNOBS; i++) {
        const char *text = source->lookup(knobs[i].name, source->from);
        if (text == NULL || changed.origin[i] > source->origin)
            continue;
        if (!knobs[i].kind->parse(&knobs[i], text, &changed)) {
            sar_knob_spell(knobs[i].name, source->origin, spelled, sizeof spelled);
            snprintf(sentence, room, "%s is '%.60s'; it must be: %s", spelled, text, knobs[i].help);
            return SAR_BAD_KNOB;
        }
        changed.origin[i] = (unsigned char)source->origin;
    }
    *config = changed;
    return SAR_OK;
}

enum sar_status sar_config_load(struct sar_config *config, sar_lookup_fn lookup, void *from, char *sentence,
                                size_t room)
{
    struct sar_config loaded;
    set_defaults(&loaded);
    SAR_TRY(sar_config_apply(&loaded, &(struct sar_source){ SAR_FROM_ENVIRONMENT, lookup, from }, sentence,
                             room));
    *config = loaded;
    return SAR_OK;
}

const char *sar_variable(const char *name)
{
    const char *text = getenv(name);
    return text == NULL || text[0] == '\0' ? NULL : text;
}

const char *sar_environment(const char *name, void *unused)
{
    char full[SAR_KNOB_TEXT];
    (void)unused;
    snprintf(full, sizeof full, PREFIX "%s", name);
    return sar_variable(full);
}

static bool is_knob(const char *name, size_t length)
{
    for (size_t i = 0; i < KNOBS; i++)
        if (strlen(knobs[i].name) == length && strncmp(knobs[i].name, name, length) == 0)
            return true;
    return false;
}

const char *sar_config_unknown(char *const environ[], size_t *at, size_t *length)
{
    size_t prefix = strlen(PREFIX);
    while (environ[*at] != NULL) {
        const char *entry = environ[(*at)++];
        *length = strcspn(entry, "=");
        if (strncmp(entry, PREFIX, prefix) == 0 && !is_knob(entry + prefix, *length - prefix))
            return entry;
    }
    return NULL;
}

bool sar_config_describe(size_t i, const char **name, const char **fallback, const char **help)
{
    if (i >= KNOBS)
        return false;
    *name = knobs[i].name;
    *fallback = knobs[i].fallback;
    *help = knobs[i].help;
    return true;
}

bool sar_config_show(const struct sar_config *config, size_t i, char *text, size_t room,
                     enum sar_origin *origin)
{
    if (i >= KNOBS)
        return false;
    knobs[i].kind->show(&knobs[i], config, text, room);
    *origin = (enum sar_origin)config->origin[i];
    return true;
}
