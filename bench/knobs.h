/* SPDX-License-Identifier: BSD-3-Clause */
/* The environment variables that tell the library what to do on a communicator. */
#ifndef PERF_KNOBS_H
#define PERF_KNOBS_H

#include <stdbool.h>

#include "base/config.h"
#include "parse.h"

enum perf_knob {
    PERF_KNOB_SCHEME,
    PERF_KNOB_WIRE,
    PERF_KNOB_PARTITION,
    PERF_KNOB_GRAIN,
    PERF_KNOB_SEED,
    PERF_KNOB_PROGRESS,
    PERF_KNOB_WIRE_VALUES,
    PERF_KNOBS
};

/* Values of the knobs; an empty one leaves the environment as it is. */
struct perf_knobs {
    char at[PERF_KNOBS][PERF_NAME_MAX];
};

/* What the environment held; NULL where there was nothing. */
struct perf_environment {
    char *was[PERF_KNOBS];
};

/* Copy what the environment says of a knob to PERF_NAME_MAX letters; false, with nothing written, if it says
 * nothing. */
bool perf_knob_get(enum perf_knob knob, char *value);

/* Put knobs into the environment, and take them out again. */
void perf_knobs_set(const struct perf_knobs *knobs, struct perf_environment *before);
void perf_knobs_restore(struct perf_environment *before);

/* All of the library's knobs, from the environment; a bad one ends all ranks. */
struct sar_config perf_knobs_config(void);

#endif
