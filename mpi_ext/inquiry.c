/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions that look and do not reduce. */

#include "mpi_ext/arguments.h"
#include "mpi_ext/attribute.h"
#include "mpi_ext/error.h"
#include "mpi_ext/memory.h"
#include "mpi_ext/types.h"
#include "plan/forward.h"
#include "plan/progress.h"

/* Slots of a profile that was asked for: exact up to this many elements. */
enum { PROFILE_SLOTS = 1 << 20 };

static void copy_profile(const struct sar_profile *from, const struct sar_context *context, MPI_Count count,
                         MPIX_Sparse_profile_t *to)
{
    *to = (MPIX_Sparse_profile_t){
        .count = count,
        .ranks = context->net.ranks,
        .density = from->density,
        .density_max = from->density_max,
        .density_out = from->density_out,
        .overlap = from->overlap,
        .skewness = from->skewness,
        .sampled = (MPI_Count)from->sampled,
    };
    for (int i = 1; i < from->gamma.entries; i++) {
        to->gamma_ranks[to->gammas] = from->gamma.ranks[i];
        to->gamma[to->gammas++] = from->gamma.ratio[i];
    }
}

static void check_profile(struct sar_call *call, const void *buf, MPI_Count count, struct sar_datatype type,
                          const MPIX_Sparse_profile_t *profile)
{
    if (count < 0)
        sar_blame(&call->verdict, SAR_BAD_COUNT, (int64_t)count);
    if (!type.valid || !type.native)
        sar_blame(&call->verdict, SAR_BAD_DATATYPE, type.valid ? type.number : 0);
    if (count > 0)
        sar_look_at_array(&call->verdict, buf, SAR_BAD_BUF);
    if (profile == NULL)
        sar_blame(&call->verdict, SAR_BAD_OUTPUT, SAR_OUTPUT_PROFILE);
}

int PMPIX_Sparse_profile(const void *buf, MPI_Count count, MPI_Datatype datatype, MPI_Comm comm,
                         MPIX_Sparse_profile_t *profile)
{
    static const char function[] = "MPIX_Sparse_profile";
    struct sar_context *context;
    struct sar_profile measured;
    struct sar_datatype type = sar_datatype_look(datatype);
    struct sar_call call = { .dense_face = true,
                             .buffers = { .sendbuf = buf, .count = (uint64_t)count, .datatype = datatype },
                             .field = { [SAR_FIELD_CALL] = SAR_CALL_PROFILE,
                                        [SAR_FIELD_COUNT] = (int64_t)count,
                                        [SAR_FIELD_DATATYPE] = type.number } };
    check_profile(&call, buf, count, type, profile);
    if (count > 0)
        sar_memory_look(&call, buf, SAR_BAD_BUF);
    int code = sar_attribute_need(comm, function, &context);
    if (code != MPI_SUCCESS)
        return code;
    call.shape = (struct sar_shape){ .count = (uint64_t)(count > 0 ? count : 0),
                                     .row = type.row,
                                     .element_size = type.extent,
                                     .base = type.base };
    call.shape.index_size = sar_index_size(call.shape.count);
    sar_memory_enter(&call, context);
    sar_progress_drain(context);
    sar_call_profile(context, &call, PROFILE_SLOTS, &measured);
    sar_memory_release(&call);
    if (call.verdict.status == SAR_OK)
        copy_profile(&measured, context, count, profile);
    return sar_raise(comm, function, &call.verdict, NULL);
}

int PMPIX_Sparse_get_report(MPI_Comm comm, MPIX_Sparse_report_t *report)
{
    static const char function[] = "MPIX_Sparse_get_report";
    struct sar_context *context = NULL;
    char sentence[SAR_SENTENCE];
    struct sar_verdict verdict = { .status = sar_attribute_peek(comm, &context, sentence) };
    if (verdict.status == SAR_BAD_COMM)
        return sar_raise(MPI_COMM_NULL, function, &verdict, sentence);
    if (verdict.status != SAR_OK)
        return sar_raise(comm, function, &verdict, NULL);
    if (report == NULL)
        verdict = (struct sar_verdict){ .status = SAR_BAD_OUTPUT, .value = SAR_OUTPUT_REPORT };
    else if (context == NULL || !context->reported)
        verdict.status = SAR_NO_REPORT;
    else
        *report = context->forwarded_last ? sar_forward_report(context) : sar_context_report(context);
    return sar_raise(comm, function, &verdict, NULL);
}

int PMPIX_Sparse_get_version(int *version)
{
    if (version == NULL)
        return sar_error_code("MPIX_Sparse_get_version", SAR_BAD_OUTPUT, SAR_OUTPUT_VERSION);
    *version = MPIX_SPARSE_VERSION;
    return MPI_SUCCESS;
}

#pragma weak MPIX_Sparse_profile = PMPIX_Sparse_profile
#pragma weak MPIX_Sparse_get_report = PMPIX_Sparse_get_report
#pragma weak MPIX_Sparse_get_version = PMPIX_Sparse_get_version
