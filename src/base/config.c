/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/config.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX "MPIX_SPARSE_"

struct knob;
typedef bool (*parse_fn)(const struct knob *knob, const char *text, struct sar_config *config);

struct knob {
    const char *name, *fallback, *help;
    size_t offset;
    parse_fn parse;
    const char *const *names; /* of a choice, ended by NULL */
    double least, most;       /* of a number */
};

static void *field_of(const struct knob *knob, struct sar_config *config)
{
    return (char *)config + knob->offset;
}

static bool parse_text(const struct knob *knob, const char *text, struct sar_config *config)
{
    return text[0] != '\0' && snprintf(field_of(knob, config), SAR_KNOB_TEXT, "%s", text) < SAR_KNOB_TEXT;
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

static bool parse_switch(const struct knob *knob, const char *text, struct sar_config *config)
{
    int choice;
    if (!choose(knob, text, &choice))
        return false;
    *(bool *)field_of(knob, config) = choice % 2 == 1;
    return true;
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

static const char *const switch_names[] = { "off", "on", "0", "1", "no", "yes", NULL };
static const char *const model_names[] = { "measured", "paper", NULL };

#define FIELD(name) offsetof(struct sar_config, name)

static const struct knob knobs[] = {
    { "SCHEME", "auto", "name of a scheme, or auto to let the cost model choose", FIELD(scheme), parse_text,
      NULL, 0, 0 },
    { "WIRE", "auto",
      "format of messages, auto for the cheapest, smallest for the fewest bytes; or push/pull", 0,
      parse_wires, NULL, 0, 0 },
    { "PARTITION", "auto", "map of elements to parts: auto, hash, cyclic or range", FIELD(partition),
      parse_text, NULL, 0, 0 },
    { "GRAIN", "auto", "consecutive elements that stay in one part: auto, or a power of two from 1 to 256",
      FIELD(grain), parse_grain, NULL, 1, 256 },
    { "IMBALANCE", "1.1", "predicted imbalance that an automatic grain stays below: a number from 1 on",
      FIELD(imbalance), parse_double, NULL, 1, 1e9 },
    { "SEED", "0", "seed of the hash: a whole number, 0 to draw one", FIELD(seed), parse_whole, NULL, 0, 0 },
    { "MODEL", "measured", "what prices the schemes: measured constants, or the paper's two equations",
      FIELD(model), parse_choice, model_names, 0, 0 },
    { "LEARN", "on", "let measured times of calls correct the prices: on or off", FIELD(learn), parse_switch,
      switch_names, 0, 0 },
    { "PROFILE_EVERY", "256", "calls from one profile of a tensor to the next: a whole number from 1 on",
      FIELD(profile_every), parse_whole, NULL, 1, 0 },
    { "SEGMENT", "262144", "bytes of a message from which balanced works in segments: a number from 1 on",
      FIELD(segment), parse_whole, NULL, 1, 0 },
    { "CHUNK", "536870912", "most bytes handed to MPI at a time: from 8192 to 1073741824", FIELD(chunk),
      parse_whole, NULL, 8192, 1 << 30 },
    { "RECOMPUTE", "64", "calls of a tensor for which oktopk keeps its boundaries: a number from 1 on",
      FIELD(recompute), parse_whole, NULL, 1, 0 },
    { "ALPHA", "0", "seconds for a message, 0 to measure", FIELD(alpha), parse_double, NULL, 0, 1e9 },
    { "BETA", "0", "seconds for a byte, 0 to measure", FIELD(beta), parse_double, NULL, 0, 1e9 },
    { "GAMMA", "0", "seconds for an element reduced, 0 to measure", FIELD(gamma), parse_double, NULL, 0,
      1e9 },
    { "EXPLAIN", "off", "print the table of prices at each selection: on or off", FIELD(explain),
      parse_switch, switch_names, 0, 0 },
};

enum { KNOBS = sizeof knobs / sizeof knobs[0] };

enum sar_status sar_config_load(struct sar_config *config, sar_lookup_fn lookup, void *from, char *sentence,
                                size_t room)
{
    struct sar_config loaded;
    memset(&loaded, 0, sizeof loaded);
    for (size_t i = 0; i < KNOBS; i++) {
        const char *text = lookup(knobs[i].name, from);
        if (text == NULL)
            text = knobs[i].fallback;
        if (!knobs[i].parse(&knobs[i], text, &loaded)) {
            snprintf(sentence, room, PREFIX "%s is '%.60s'; it must be: %s", knobs[i].name, text,
                     knobs[i].help);
            return SAR_BAD_KNOB;
        }
    }
    *config = loaded;
    return SAR_OK;
}

const char *sar_environment(const char *name, void *unused)
{
    char full[SAR_KNOB_TEXT];
    (void)unused;
    snprintf(full, sizeof full, PREFIX "%s", name);
    return getenv(full);
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
