/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads settings from an MPI_Info. */

#include "mpi_ext/info.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/log.h"
#include "base/config.h"
#include "core/comm_state.h"

static const char prefix[] = "mpix_sparse_";
static const char stream_key[] = "mpix_sparse_stream";

const char *sar_info_lookup(const char *name, void *info)
{
    struct sar_info *from = info;
    char key[MPI_MAX_INFO_KEY + 1];
    int found = 0;
    sar_config_spell(name, SAR_SOURCE_PLAN_INFO, key, sizeof key);
    if (from->info != MPI_INFO_NULL)
        PMPI_Info_get(from->info, key, MPI_MAX_INFO_VAL, from->value, &found);
    return found ? from->value : NULL;
}

static bool is_known(const char *key)
{
    char known[MPI_MAX_INFO_KEY + 1];
    const char *name, *fallback, *help;
    for (size_t i = 0; sar_config_setting(i, &name, &fallback, &help); i++) {
        sar_config_spell(name, SAR_SOURCE_PLAN_INFO, known, sizeof known);
        if (strcmp(key, known) == 0)
            return true;
    }
    return strcmp(key, stream_key) == 0;
}

/* Returns the setting that a key names if it is one of the process's own, which no hint changes; or NULL. */
static const char *setting_of_process(const char *key)
{
    static const char *const names[] = { "LOG",           "LOG_FILE",
                                         "TRACE",         "PRELOAD_MIN_BYTES",
                                         "PRELOAD_LIMIT", "PRELOAD_NONBLOCKING",
                                         "PRELOAD_REPORT" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcasecmp(key + sizeof prefix - 1, names[i]) == 0)
            return names[i];
    return NULL;
}

static void warn_unknown(const char *key)
{
    char known[MPI_MAX_INFO_KEY + 1] = "";
    size_t letters = sizeof prefix - 1;
    const char *nearest = sar_config_nearest(key + letters, strlen(key) - letters);
    if (nearest != NULL)
        sar_config_spell(nearest, SAR_SOURCE_PLAN_INFO, known, sizeof known);
    SAR_LOG(WARN, MPI, "hint %s is not a setting of this library; %s%s", key,
            nearest == NULL ? "mpix_sparse_info -c lists all" : "did you mean ", known);
}

static void warn_useless(const char *key)
{
    const char *setting = setting_of_process(key);
    if (setting != NULL)
        SAR_LOG(WARN, MPI, "hint %s has no effect; set " SAR_ENV_PREFIX "%s in the environment", key,
                setting);
    else if (!is_known(key))
        warn_unknown(key);
}

void sar_info_warn_unknown(MPI_Info info)
{
    char key[MPI_MAX_INFO_KEY + 1];
    int keys = 0;
    if (info != MPI_INFO_NULL)
        PMPI_Info_get_nkeys(info, &keys);
    for (int i = 0; i < keys; i++)
        if (PMPI_Info_get_nthkey(info, i, key) == MPI_SUCCESS &&
            strncasecmp(key, prefix, sizeof prefix - 1) == 0)
            warn_useless(key);
}

/* The stream is not a setting: settings are equal on all ranks, but an address is valid on one rank only. */
enum sar_status sar_info_get_stream(MPI_Info info, void **stream, char *error_text)
{
    struct sar_info from = { .info = info };
    const char *text = sar_info_lookup("STREAM", &from);
    char *end;
    if (text == NULL)
        return SAR_OK;
    errno = 0;
    unsigned long long address = strtoull(text, &end, 0);
    if (text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0 && address <= UINTPTR_MAX) {
        *stream = (void *)(uintptr_t)address;
        return SAR_OK;
    }
    snprintf(error_text, SAR_ERROR_TEXT_SIZE, "%s is '%.60s'; it must be the address of a stream: 0x…",
             stream_key, text);
    return SAR_BAD_SETTING;
}
