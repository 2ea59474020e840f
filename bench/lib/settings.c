/* SPDX-License-Identifier: BSD-3-Clause */
/* Environment variables of the library. */

#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L /* setenv */
#endif

#include "bench/lib/settings.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/lib/base.h"
#include "comm/calibration.h"
#include "core/policy.h"

static const char *const names[PERF_SETTINGS] = {
    "MPIX_SPARSE_SCHEME",   "MPIX_SPARSE_WIRE",        "MPIX_SPARSE_PARTITION",
    "MPIX_SPARSE_GRAIN",    "MPIX_SPARSE_COLUMNS",     "MPIX_SPARSE_SEED",
    "MPIX_SPARSE_PROGRESS", "MPIX_SPARSE_WIRE_VALUES", "MPIX_SPARSE_THREADS",
};

bool perf_setting_get(enum perf_setting setting, char *value)
{
    const char *text = getenv(names[setting]);

    if (text == NULL || *text == '\0')
        return false;
    snprintf(value, PERF_NAME_MAX, "%s", text);
    return true;
}

void perf_settings_set(const struct perf_settings *settings, struct perf_environment *before)
{
    for (int i = 0; i < PERF_SETTINGS; i++) {
        const char *text = getenv(names[i]);

        before->saved[i] = NULL;
        if (text != NULL) {
            size_t bytes = strlen(text) + 1;
            before->saved[i] = perf_alloc(bytes, 1);
            memcpy(before->saved[i], text, bytes);
        }
        if (settings->at[i][0] != '\0')
            setenv(names[i], settings->at[i], 1);
    }
}

void perf_settings_restore(struct perf_environment *before)
{
    for (int i = 0; i < PERF_SETTINGS; i++) {
        if (before->saved[i] != NULL)
            setenv(names[i], before->saved[i], 1);
        else
            unsetenv(names[i]);
        free(before->saved[i]);
        before->saved[i] = NULL;
    }
}

static enum sar_status check(bool with_calibration, char *error_text)
{
    struct sar_config config;
    struct sar_machine machine;
    bool fits;

    SAR_TRY(sar_config_load(&config, sar_env_setting, NULL, error_text, SAR_ERROR_TEXT_SIZE));
    SAR_TRY(sar_policy_check(&config, error_text, SAR_ERROR_TEXT_SIZE));
    if (!with_calibration || strcmp(config.calibration, "none") == 0)
        return SAR_OK;
    return sar_calibration_apply(&config, NULL, &machine, &fits, error_text, SAR_ERROR_TEXT_SIZE);
}

bool perf_settings_check(const struct perf_world *world, bool with_calibration)
{
    char error_text[SAR_ERROR_TEXT_SIZE] = "out of memory";
    int valid = 1;

    if (world->rank == 0 && check(with_calibration, error_text) != SAR_OK) {
        fprintf(stderr, "mpix_sparse_perf: %s\n", error_text);
        valid = 0;
    }
    MPI_Bcast(&valid, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return valid;
}

struct sar_config perf_settings_config(void)
{
    struct sar_config config;
    char sentence[PERF_WHY_MAX];

    if (sar_config_load(&config, sar_env_setting, NULL, sentence, sizeof sentence) != SAR_OK) {
        fprintf(stderr, "mpix_sparse_perf: %s\n", sentence);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return config;
}
