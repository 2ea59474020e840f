/* SPDX-License-Identifier: BSD-3-Clause */
/* The environment variables MPIX_SPARSE_* that the benchmark sets for a communicator. */
#ifndef PERF_SETTINGS_H
#define PERF_SETTINGS_H

#include <stdbool.h>

#include "base/config.h"
#include "bench/lib/base.h"
#include "bench/lib/parse.h"

/** The settings, in the order of the table in settings.c. */
enum perf_setting {
    PERF_SETTING_SCHEME,
    PERF_SETTING_WIRE,
    PERF_SETTING_PARTITION,
    PERF_SETTING_GRAIN,
    PERF_SETTING_COLUMNS,
    PERF_SETTING_SEED,
    PERF_SETTING_PROGRESS,
    PERF_SETTING_WIRE_VALUES,
    PERF_SETTING_THREADS,
    PERF_SETTINGS
};

/** Values of the settings. An empty string leaves the variable alone. */
struct perf_settings {
    char at[PERF_SETTINGS][PERF_NAME_MAX];
};

/** Saved values of the environment; NULL: the variable was not set. */
struct perf_environment {
    char *saved[PERF_SETTINGS];
};

/** Copies the value of a variable to `value`, PERF_NAME_MAX bytes. Returns false and leaves `value` alone if
 * the variable is unset or empty. */
bool perf_setting_get(enum perf_setting setting, char *value);

/** Sets the variables and saves their former values; restores these values and frees them. */
void perf_settings_set(const struct perf_settings *settings, struct perf_environment *before);
void perf_settings_restore(struct perf_environment *before);

/** Checks all settings of the library in rank 0's environment, and the calibration file that they name, if
 * with_calibration. Returns false on all ranks, after printing the error to stderr once. Collective. */
bool perf_settings_check(const struct perf_world *world, bool with_calibration);

/** Returns all settings of the library from the environment. Ends all ranks if a value is wrong. */
struct sar_config perf_settings_config(void);

#endif
