/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L /* setenv */
#endif

#include "knobs.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"

static const char *const names[PERF_KNOBS] = {
    "MPIX_SPARSE_SCHEME", "MPIX_SPARSE_WIRE",     "MPIX_SPARSE_PARTITION",   "MPIX_SPARSE_GRAIN",
    "MPIX_SPARSE_SEED",   "MPIX_SPARSE_PROGRESS", "MPIX_SPARSE_WIRE_VALUES",
};

bool perf_knob_get(enum perf_knob knob, char *value)
{
    const char *text = getenv(names[knob]);

    if (text == NULL || *text == '\0')
        return false;
    snprintf(value, PERF_NAME_MAX, "%s", text);
    return true;
}

void perf_knobs_set(const struct perf_knobs *knobs, struct perf_environment *before)
{
    for (int i = 0; i < PERF_KNOBS; i++) {
        const char *text = getenv(names[i]);

        before->was[i] = NULL;
        if (text != NULL) {
            size_t bytes = strlen(text) + 1;
            before->was[i] = perf_alloc(bytes, 1);
            memcpy(before->was[i], text, bytes);
        }
        if (knobs->at[i][0] != '\0')
            setenv(names[i], knobs->at[i], 1);
    }
}

void perf_knobs_restore(struct perf_environment *before)
{
    for (int i = 0; i < PERF_KNOBS; i++) {
        if (before->was[i] != NULL)
            setenv(names[i], before->was[i], 1);
        else
            unsetenv(names[i]);
        free(before->was[i]);
        before->was[i] = NULL;
    }
}

struct sar_config perf_knobs_config(void)
{
    struct sar_config config;
    char sentence[PERF_WHY_MAX];

    if (sar_config_load(&config, sar_environment, NULL, sentence, sizeof sentence) != SAR_OK) {
        fprintf(stderr, "mpix_sparse_perf: %s\n", sentence);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return config;
}
