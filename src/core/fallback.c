/* SPDX-License-Identifier: BSD-3-Clause */
/* Decides which calls are fallbacks. Runs before every call on dense buffers; costs nanoseconds. */

#include "core/fallback.h"

#include <stdio.h>

enum { TYPE_BYTES_MAX = 8 /* bytes of a basic type, except rare ones */ };

static bool is_small(const struct sar_comm_state *comm_state, const struct sar_vec_desc *desc)
{
    uint64_t limit =
        sar_comm_single_node_group(&comm_state->comm) != NULL ? SAR_FALLBACK_BYTES_SHM : SAR_FALLBACK_BYTES;
    return sar_mul_saturate(desc->count, desc->element_size) <= limit;
}

/* If one rank's arguments are invalid, those of the others may be valid: the agreement reports the error on
 * all ranks. The exception are vectors so small that the other ranks do not agree either. */
static bool needs_agreement(const struct sar_call_args *args)
{
    enum sar_status status = args->result.error.status;
    bool unknown = status == SAR_BAD_DATATYPE || status == SAR_BAD_OP;
    return status == SAR_BAD_COUNT || status == SAR_BAD_RECVCOUNT ||
           (unknown && sar_mul_saturate(args->sig.desc.count, TYPE_BYTES_MAX) > SAR_FALLBACK_BYTES);
}

bool sar_fallback_always(const struct sar_comm_state *comm_state, const struct sar_call_args *args)
{
    const struct sar_policy *policy = &comm_state->settings.policy;
    if (policy->fallback_max == 0 || !args->sig.dense_face || needs_agreement(args))
        return false;
    if (!args->sig.native)
        return true;
    return policy->forced != NULL ? policy->forced->on_dense_buffers : is_small(comm_state, &args->sig.desc);
}

bool sar_fallback_take(struct sar_comm_state *comm_state, const struct sar_call_args *args)
{
    struct sar_tensor_state *tensor = sar_comm_state_find_tensor(comm_state, args->sig.field);
    if (tensor == NULL || tensor->fallback_left == 0)
        return false;
    tensor->fallback_left--;
    return true;
}

struct sar_fallback_entry sar_fallback_entry_make(struct sar_comm_state *comm_state,
                                                  const struct sar_call_args *args)
{
    bool always = sar_fallback_always(comm_state, args);
    return (struct sar_fallback_entry){
        .comm_state = comm_state,
        .tensor = always ? NULL : sar_comm_state_find_tensor(comm_state, args->sig.field),
        .tensors_made = comm_state->tensors.made,
        .desc = args->sig.desc
    };
}

void sar_fallback_plan(struct sar_tensor_state *tensor, const struct sar_selection *selection,
                       const struct sar_policy *policy)
{
    bool dense = sar_schemes[selection->scheme]->on_dense_buffers && selection->settled;
    uint64_t run = dense ? 2 * tensor->fallback_run + 1 : 0;
    tensor->fallback_left = tensor->fallback_run = run < policy->fallback_max ? run : policy->fallback_max;
}

struct sar_span sar_fallback_begin(struct sar_comm_state *comm_state, const struct sar_call_args *args,
                                   const char *name)
{
    comm_state->last.fallback_desc = args->sig.desc;
    comm_state->last.fallback =
        args->sig.collective == SAR_REDUCE_SCATTER ? SAR_FALLBACK_REDUCE_SCATTER : SAR_FALLBACK_ALLREDUCE;
    comm_state->last.reported = true;
    return sar_span_begin(name, 0, 0);
}

void sar_fallback_end(const struct sar_comm_state *comm_state, struct sar_span *span)
{
    sar_span_end(span, &(struct sar_span_context){ comm_state->comm.id, comm_state->epoch, -1, -1, 0, 0 });
}

MPIX_Sparse_report_t sar_fallback_report(const struct sar_comm_state *comm_state)
{
    const struct sar_vec_desc *desc = &comm_state->last.fallback_desc;
    double bytes = (double)desc->count * (double)desc->element_size;
    bool scatters = comm_state->last.fallback == SAR_FALLBACK_REDUCE_SCATTER;
    double share = (comm_state->comm.ranks - 1.) / comm_state->comm.ranks;
    MPI_Count ring = (MPI_Count)((scatters ? 1 : 2) * bytes * share);
    MPIX_Sparse_report_t report = {
        .scheme = "dense",
        .choice = "dense",
        .push_wire = "none",
        .pull_wire = "none",
        .partition = "none",
        .threads = 1,
        .ranks = comm_state->comm.ranks,
        .nodes = comm_state->comm.nodes.n,
        .count = (MPI_Count)desc->count,
        .row = (MPI_Count)desc->row_len,
        .nnz_in = -1,
        .nnz_in_max = -1,
        .nnz_in_sum = -1,
        .nnz_out = -1,
        .bytes_sent = ring,
        .bytes_received = ring,
        .predicted_seconds = -1,
        .measured_seconds = -1,
    };
    snprintf(report.reason, sizeof report.reason, "handed to %s: nothing to gain, or nothing gained lately",
             scatters ? "MPI_Reduce_scatter_block" : "MPI_Allreduce");
    return report;
}
