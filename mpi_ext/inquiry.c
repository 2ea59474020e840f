/* SPDX-License-Identifier: BSD-3-Clause */
/* Public functions other than reductions: hints, profile, report and version. MPI libraries may drop info
 * keys that they do not know, so the library has its own functions to set and get hints. */

#include <stdio.h>
#include <string.h>

#include "mpi_ext/arguments.h"
#include "mpi_ext/attribute.h"
#include "mpi_ext/error.h"
#include "mpi_ext/fallback.h"
#include "mpi_ext/info.h"
#include "mpi_ext/lifecycle.h"
#include "mpi_ext/user_buffers.h"
#include "mpi_ext/datatypes.h"
#include "core/lifecycle.h"
#include "core/fallback.h"
#include "core/progress.h"

int PMPIX_Sparse_comm_set_info(MPI_Comm comm, MPI_Info info)
{
    static const char function[] = "MPIX_Sparse_comm_set_info";
    struct sar_comm_state *comm_state;
    char error_text[SAR_ERROR_TEXT_SIZE] = "";
    struct sar_info from = { .info = info };
    struct sar_config_layer hints = { SAR_SOURCE_COMM_INFO, sar_info_lookup, &from };
    int code = sar_comm_state_get(comm, function, &comm_state);
    if (code != MPI_SUCCESS)
        return code;
    if (comm_state->comm.rank == 0)
        sar_info_warn_unknown(info);
    sar_progress_drain(comm_state);
    void *stream = comm_state->device.stream;
    struct sar_error error = { .status = sar_info_get_stream(info, &stream, error_text) };
    sar_lifecycle_invalidate();
    error.status = sar_comm_state_configure(comm_state, error.status, &hints, error_text);
    if (error.status == SAR_OK)
        comm_state->device.stream = stream;
    else if (error.status == SAR_BAD_SETTING && error_text[0] == '\0')
        snprintf(error_text, sizeof error_text, "mpix_sparse_stream is no address on another rank");
    return sar_error_raise(comm, function, &error, error_text);
}

/* Values longer than MPI_MAX_INFO_VAL are omitted. */
static void write_settings(const struct sar_config *config, MPI_Info info)
{
    char key[MPI_MAX_INFO_KEY + 1], value[SAR_SETTING_PATH];
    const char *name, *fallback, *help;
    enum sar_config_source origin;
    for (size_t i = 0; sar_config_setting(i, &name, &fallback, &help); i++) {
        sar_config_spell(name, SAR_SOURCE_COMM_INFO, key, sizeof key);
        sar_config_format(config, i, value, sizeof value, &origin);
        if (strlen(value) < MPI_MAX_INFO_VAL)
            PMPI_Info_set(info, key, value);
    }
}

int PMPIX_Sparse_comm_get_info(MPI_Comm comm, MPI_Info *info_used)
{
    static const char function[] = "MPIX_Sparse_comm_get_info";
    struct sar_comm_state *comm_state;
    struct sar_error error = { .status = SAR_OK };
    int code = sar_comm_state_find(comm, function, &comm_state);
    if (code != MPI_SUCCESS)
        return code;
    if (info_used == NULL)
        error = (struct sar_error){ .status = SAR_BAD_OUTPUT, .value = SAR_NULL_INFO };
    else if (PMPI_Info_create(info_used) != MPI_SUCCESS)
        error.status = SAR_MPI_FAILED;
    else if (comm_state != NULL)
        write_settings(&comm_state->settings.policy.config, *info_used);
    return sar_error_raise(comm, function, &error, NULL);
}

int PMPIX_Sparse_comm_set_label(MPI_Comm comm, int label)
{
    static const char function[] = "MPIX_Sparse_comm_set_label";
    struct sar_comm_state *comm_state;
    int code = sar_comm_state_get(comm, function, &comm_state);
    if (code != MPI_SUCCESS)
        return code;
    sar_fallback_cache_clear(); /* a cached call would leave the label to a later one */
    comm_state->label = label;
    return MPI_SUCCESS;
}

/* Slots of a requested profile: vectors of up to this many elements are not sampled. */
enum { PROFILE_SLOTS = 1 << 20 };

static void copy_profile(const struct sar_profile *from, const struct sar_comm_state *comm_state,
                         MPI_Count count, MPIX_Sparse_profile_t *to)
{
    *to = (MPIX_Sparse_profile_t){
        .count = count,
        .ranks = comm_state->comm.ranks,
        .density = from->density,
        .density_max = from->density_max,
        .density_out = from->density_out,
        .overlap = from->overlap,
        .skewness = from->skewness,
        .sampled = (MPI_Count)from->sampled,
    };
    for (int i = 1; i < from->gamma.points; i++) {
        to->gamma_ranks[to->gammas] = from->gamma.ranks[i];
        to->gamma[to->gammas++] = from->gamma.ratio[i];
    }
}

static void check_profile(struct sar_call_args *call, const void *buf, MPI_Count count,
                          struct sar_datatype type, const MPIX_Sparse_profile_t *profile)
{
    if (count < 0)
        sar_error_set(&call->result.error, SAR_BAD_COUNT, (int64_t)count);
    if (!type.valid || !type.native)
        sar_error_set(&call->result.error, SAR_BAD_DATATYPE, type.valid ? type.id : 0);
    if (count > 0)
        sar_args_check_array(&call->result.error, buf, SAR_BAD_BUF);
    if (profile == NULL)
        sar_error_set(&call->result.error, SAR_BAD_OUTPUT, SAR_NULL_PROFILE);
}

/* One for each element gives exact numbers. */
static uint32_t slots_of(MPI_Count count)
{
    return count < 1 ? 1 : count < PROFILE_SLOTS ? (uint32_t)count : PROFILE_SLOTS;
}

int PMPIX_Sparse_profile(const void *buf, MPI_Count count, MPI_Datatype datatype, MPI_Comm comm,
                         MPIX_Sparse_profile_t *profile)
{
    static const char function[] = "MPIX_Sparse_profile";
    struct sar_comm_state *comm_state;
    struct sar_profile measured;
    struct sar_datatype type = sar_datatype_classify(datatype);
    struct sar_call_args call = {
        .sig.dense_face = true,
        .data.buffers = { .sendbuf = buf, .count = (uint64_t)count, .datatype = datatype },
        .sig.field = { [SAR_AGREE_FUNCTION] = SAR_FUNCTION_PROFILE,
                       [SAR_AGREE_COUNT] = (int64_t)count,
                       [SAR_AGREE_DATATYPE] = type.id }
    };
    check_profile(&call, buf, count, type, profile);
    if (count > 0)
        sar_user_buffers_locate(&call, buf, SAR_BAD_BUF);
    int code = sar_comm_state_get(comm, function, &comm_state);
    if (code != MPI_SUCCESS)
        return code;
    call.sig.desc = (struct sar_vec_desc){ .count = (uint64_t)(count > 0 ? count : 0),
                                           .row_len = type.row_len,
                                           .element_size = type.extent,
                                           .dtype = type.dtype };
    call.sig.desc.index_size = sar_index_size(call.sig.desc.count);
    sar_user_buffers_open(&call, comm_state);
    sar_progress_drain(comm_state);
    sar_progress_profile(comm_state, &call, slots_of(count), &measured);
    sar_user_buffers_release(&call);
    if (call.result.error.status == SAR_OK)
        copy_profile(&measured, comm_state, count, profile);
    return sar_error_raise(comm, function, &call.result.error, NULL);
}

int PMPIX_Sparse_get_report(MPI_Comm comm, MPIX_Sparse_report_t *report)
{
    static const char function[] = "MPIX_Sparse_get_report";
    struct sar_comm_state *comm_state;
    struct sar_error error = { .status = SAR_OK };
    int code = sar_comm_state_find(comm, function, &comm_state);
    if (code != MPI_SUCCESS)
        return code;
    if (report == NULL)
        error = (struct sar_error){ .status = SAR_BAD_OUTPUT, .value = SAR_NULL_REPORT };
    else if (comm_state == NULL || !comm_state->last.reported)
        error.status = SAR_NO_REPORT;
    else
        *report = comm_state->last.fallback != SAR_FALLBACK_NONE ? sar_fallback_report(comm_state)
                                                                 : sar_comm_state_report(comm_state);
    return sar_error_raise(comm, function, &error, NULL);
}

int PMPIX_Sparse_get_version(int *version)
{
    if (version == NULL)
        return sar_error_code("MPIX_Sparse_get_version", SAR_BAD_OUTPUT, SAR_NULL_VERSION);
    *version = MPIX_SPARSE_VERSION;
    return MPI_SUCCESS;
}

#pragma weak MPIX_Sparse_comm_set_info = PMPIX_Sparse_comm_set_info
#pragma weak MPIX_Sparse_comm_get_info = PMPIX_Sparse_comm_get_info
#pragma weak MPIX_Sparse_comm_set_label = PMPIX_Sparse_comm_set_label
#pragma weak MPIX_Sparse_profile = PMPIX_Sparse_profile
#pragma weak MPIX_Sparse_get_report = PMPIX_Sparse_get_report
#pragma weak MPIX_Sparse_get_version = PMPIX_Sparse_get_version
