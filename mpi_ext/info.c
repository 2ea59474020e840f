/* SPDX-License-Identifier: BSD-3-Clause */
/* Hints of communicators. MPI libraries may drop keys that they do not know, and do, so there are functions
 * of our own beside MPI_Comm_set_info and MPI_Comm_get_info. */

#include "mpi_ext/info.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi_ext/alive.h"
#include "mpi_ext/attribute.h"
#include "mpi_ext/error.h"
#include "plan/progress.h"

const char *sar_info_lookup(const char *name, void *info)
{
    struct sar_info *from = info;
    char key[MPI_MAX_INFO_KEY + 1];
    int found = 0;
    sar_knob_spell(name, SAR_FROM_PLAN_INFO, key, sizeof key);
    if (from->info != MPI_INFO_NULL)
        PMPI_Info_get(from->info, key, MPI_MAX_INFO_VAL, from->value, &found);
    return found ? from->value : NULL;
}

/* No knob: a stream is this rank's own, and no other rank knows what its address means. */
enum sar_status sar_info_stream(MPI_Info info, void **stream, char *sentence)
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
    snprintf(sentence, SAR_SENTENCE, "mpix_sparse_stream is '%.60s'; it must be the address of a stream: 0x…",
             text);
    return SAR_BAD_KNOB;
}

int PMPIX_Sparse_comm_set_info(MPI_Comm comm, MPI_Info info)
{
    static const char function[] = "MPIX_Sparse_comm_set_info";
    struct sar_context *context;
    char sentence[SAR_SENTENCE] = "";
    struct sar_info from = { .info = info };
    struct sar_source hints = { SAR_FROM_COMM_INFO, sar_info_lookup, &from };
    int code = sar_attribute_need(comm, function, &context);
    if (code != MPI_SUCCESS)
        return code;
    sar_progress_drain(context);
    void *stream = context->stream;
    struct sar_verdict verdict = { .status = sar_info_stream(info, &stream, sentence) };
    sar_alive_overturn();
    verdict.status = sar_context_configure(context, verdict.status, &hints, sentence);
    if (verdict.status == SAR_OK)
        context->stream = stream;
    else if (verdict.status == SAR_BAD_KNOB && sentence[0] == '\0')
        snprintf(sentence, sizeof sentence, "mpix_sparse_stream is no address on another rank");
    return sar_raise(comm, function, &verdict, sentence);
}

/* A value that MPI has no room for is left out. */
static void write_knobs(const struct sar_config *config, MPI_Info info)
{
    char key[MPI_MAX_INFO_KEY + 1], value[SAR_KNOB_PATH];
    const char *name, *fallback, *help;
    enum sar_origin origin;
    for (size_t i = 0; sar_config_describe(i, &name, &fallback, &help); i++) {
        sar_knob_spell(name, SAR_FROM_COMM_INFO, key, sizeof key);
        sar_config_show(config, i, value, sizeof value, &origin);
        if (strlen(value) < MPI_MAX_INFO_VAL)
            PMPI_Info_set(info, key, value);
    }
}

int PMPIX_Sparse_comm_get_info(MPI_Comm comm, MPI_Info *info_used)
{
    static const char function[] = "MPIX_Sparse_comm_get_info";
    struct sar_context *context = NULL;
    char sentence[SAR_SENTENCE];
    struct sar_verdict verdict = { .status = sar_attribute_peek(comm, &context, sentence) };
    if (verdict.status != SAR_OK)
        return sar_raise(verdict.status == SAR_BAD_COMM ? MPI_COMM_NULL : comm, function, &verdict, sentence);
    if (info_used == NULL)
        verdict = (struct sar_verdict){ .status = SAR_BAD_OUTPUT, .value = SAR_OUTPUT_INFO };
    else if (PMPI_Info_create(info_used) != MPI_SUCCESS)
        verdict.status = SAR_MPI_FAILED;
    else if (context != NULL)
        write_knobs(&context->policy.config, *info_used);
    return sar_raise(comm, function, &verdict, NULL);
}

#pragma weak MPIX_Sparse_comm_set_info = PMPIX_Sparse_comm_set_info
#pragma weak MPIX_Sparse_comm_get_info = PMPIX_Sparse_comm_get_info
