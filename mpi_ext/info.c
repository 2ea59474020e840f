/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads settings from an MPI_Info. */

#include "mpi_ext/info.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/comm_state.h"

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
    snprintf(error_text, SAR_ERROR_TEXT_SIZE,
             "mpix_sparse_stream is '%.60s'; it must be the address of a stream: 0x…", text);
    return SAR_BAD_SETTING;
}
