/* SPDX-License-Identifier: BSD-3-Clause */
/* End of a call: the result in the caller's buffers, timing feedback, report and log. Runs in every call;
 * costs at most one pass over a dense buffer.
 *
 * The next agreement makes a call's time known to all ranks. The time a rank waits for others in an
 * agreement says nothing about the scheme, so the scheme's time starts after the agreement. */

#include "core/prepare.h"

#include <math.h>
#include <string.h>

#include "base/log.h"
#include "base/parallel.h"
#include "vector/dense.h"

enum {
    CACHE_LINE = 64, /* bytes */
    /* Streaming all lines pays if there are up to so many lines from an element to the next: */
    STREAM_LINES = 8,    /* if the buffer is to be updated, */
    STREAM_ALL_LINES = 3 /* if it would have to be zeroed first */
};

/* A call whose program computed for a longer share of its time: messages moved meanwhile, or waited. */
static const double COMPUTING_SHARE = 1. / 4;

static const double IMBALANCE_CHANGE = 1. / 8; /* relative change up to which prices stay valid */

/* Prices hold for the imbalance that they were made for; an unknown one counts as none. */
static bool has_changed(const struct sar_agree_pull *known, const struct sar_agree_pull *found)
{
    double before = known->permille > 0 ? known->permille : 1e3;
    return fabs(found->permille - before) > IMBALANCE_CHANGE * before;
}

void sar_timing_feedback_apply(struct sar_active_call *op)
{
    struct sar_timing_feedback *feedback = &op->comm_state->feedback;
    const struct sar_agree_msg *all = &op->common.agreement.global;
    struct sar_tensor_state *tensor = feedback->tensor;
    if (tensor == NULL)
        return;
    tensor->costs.untimed = all->last_call_ns == SAR_CALL_NS_UNKNOWN;
    if (all->last_call_ns > 0 && !tensor->costs.untimed) {
        sar_cost_history_add_pre_scheme(&tensor->costs, (double)all->pre_scheme_ns * 1e-9);
        sar_cost_history_add(&tensor->costs, feedback->scheme, feedback->predicted,
                             (double)all->last_call_ns * 1e-9);
    }
    if (all->pull.permille > 0) {
        tensor->prices.valid &= !has_changed(&tensor->pull, &all->pull);
        tensor->pull = all->pull;
    }
    feedback->tensor = NULL;
}

/* Timing differs between ranks from here on: set first what later choices depend on. */
void sar_timing_feedback_begin(struct sar_active_call *op)
{
    int scheme = op->common.selection.scheme;
    op->comm_state->feedback = (struct sar_timing_feedback){ op->common.tensor,
                                                             scheme,
                                                             op->common.selection.prices[scheme].predicted,
                                                             (int64_t)(op->time.pre_scheme * 1e9),
                                                             0,
                                                             { 0, 0 } };
    op->common.tensor->costs.last_choice = op->common.selection.choice + 1;
}

/* The parts of other schemes have other maps, whose imbalance says nothing about those of `balanced`. */
void sar_timing_feedback_end(struct sar_active_call *op)
{
    struct sar_timing_feedback *feedback = &op->comm_state->feedback;
    const struct sar_scheme_report *report = &op->task.report;
    if (feedback->tensor != op->common.tensor)
        return;
    double seconds = sar_active_call_seconds(op), computing = op->time.computing;
    feedback->scheme_ns = computing > COMPUTING_SHARE * (seconds + computing)
                              ? SAR_CALL_NS_UNKNOWN
                              : (int64_t)((seconds - op->time.pre_scheme) * 1e9);
    bool scatters = op->args->sig.collective == SAR_REDUCE_SCATTER;
    double imbalance = scatters ? report->push_imbalance : report->pull_imbalance;
    if (op->task.scheme == &sar_scheme_balanced && report->map_parts > 0)
        feedback->pull = (struct sar_agree_pull){ (int32_t)(imbalance * 1e3), report->map_parts };
}

/* True if it is faster to write all lines whole than to read and write those that hold elements of the
 * result. */
static bool streams_pay(const struct sar_vec_desc *desc, size_t nnz, unsigned lines)
{
    uint64_t element_bytes = desc->element_size > CACHE_LINE ? desc->element_size : CACHE_LINE;
    uint64_t bytes = desc->count * desc->element_size;
    return bytes >= SAR_NT_STORE_MIN && sar_mul_saturate(nnz, element_bytes * lines) > bytes;
}

/* Returns the vec_desc of the dense result: the whole vector, or this rank's part. */
static struct sar_vec_desc dense_result_desc(const struct sar_call_args *args)
{
    struct sar_vec_desc desc = args->sig.desc;
    if (args->data.buffers.parts > 0)
        desc.count /= args->data.buffers.parts;
    return desc;
}

/* In place, only the elements of this rank and of the result differ from zero, and a scheme that rounds
 * values may drop elements of this rank. That does not hold for a part of the vector: it is written whole. */
static struct sar_span_work write_host(const struct sar_active_call *op, const struct sar_scatter_src *src)
{
    const struct sar_call_args *args = op->args;
    const struct sar_task *task = &op->task;
    unsigned char *buf = args->data.buffers.recvbuf;
    struct sar_span_work work = sar_span_work_make("write", task->result.vec.nnz, args->sig.desc.element_size,
                                                   args->sig.desc.count * args->sig.desc.row_len);
    struct sar_vec_desc result = dense_result_desc(args);
    if (args->data.buffers.parts > 0) {
        sar_dense_expand(&result, src->vecs, src->n, buf);
        work.format = "expand";
    } else if (task->result.parts_overlap) {
        sar_dense_accumulate(&args->sig.desc, src->vecs, src->n, args->sig.in_place ? &task->input.vec : NULL,
                             buf);
        work.format = args->sig.in_place ? "fold_in_place" : "fold";
    } else if (!src->clear && streams_pay(&args->sig.desc, task->result.vec.nnz, STREAM_LINES)) {
        sar_dense_update(&args->sig.desc, src->vecs, src->n, buf);
        work.format = "update";
    } else if (!args->sig.in_place || streams_pay(&args->sig.desc, task->result.vec.nnz, STREAM_ALL_LINES)) {
        sar_dense_expand(&args->sig.desc, src->vecs, src->n, buf);
        work.format = "expand";
    } else {
        if (src->clear)
            sar_dense_clear(&args->sig.desc, &task->input.vec, buf);
        for (size_t i = 0; i < src->n; i++)
            sar_dense_scatter(&args->sig.desc, &src->vecs[i], buf);
        work.format = "scatter";
    }
    return work;
}

/* No two parts have an index in common, so that reducing them only sorts them. */
static enum sar_status write_device_coo(struct sar_active_call *op)
{
    struct sar_task *task = &op->task;
    struct sar_vec_desc desc = sar_task_output_desc(task);
    struct sar_spvec out;
    SAR_TRY(task->output->alloc_device(task->output, &op->args->device.memory, &desc, task->result.vec.nnz,
                                       &out));
    SAR_TRY(sar_device_exec_reduce_into(task->device.exec, &desc, task->result.parts, task->result.n_parts,
                                        &out));
    return sar_device_exec_wait(task->device.exec);
}

/* Write the result into the packed output of an enqueued call. Returns false if the result has to be
 * written into the call's buffers, and is not there yet. In place, packed elements occupy memory that a
 * dense result needs. */
static bool write_packed(struct sar_active_call *op, const struct sar_scatter_src *src)
{
    const struct sar_call_args *args = op->args;
    struct sar_packed_vec *packed = args->device.packed[1];
    if (packed == NULL)
        return false;
    if (sar_packed_vec_fill(&args->sig.desc, src->vecs, src->n, packed))
        return true;
    if (!sar_call_args_has_packed(args))
        return false;
    sar_dense_expand(&args->sig.desc, src->vecs, src->n, args->data.buffers.recvbuf);
    return true;
}

void sar_active_call_write(struct sar_active_call *op, struct sar_span_work *work)
{
    struct sar_call_args *args = op->args;
    const struct sar_task *task = &op->task;
    struct sar_scatter_src src = { &task->result.vec, 1, !args->sig.in_place || !task->result.covers_input,
                                   task->device.exec != NULL };
    if (!args->sig.dense_face && task->device.exec != NULL)
        args->result.error.status = write_device_coo(op);
    if (!args->sig.dense_face || task->result.in_place)
        return;
    if (task->result.parts != NULL) {
        src.vecs = task->result.parts;
        src.n = task->result.n_parts;
    }
    struct sar_scatter_dst to = { &args->device.memory, &args->sig.desc, args->device.copy[1].device,
                                  args->device.block_bytes };
    if (args->device.resident)
        args->result.error.status = sar_device_scatter(&to, &src);
    else if (!write_packed(op, &src))
        *work = write_host(op, &src);
}

/* `to` is all zeros. */
static void copy_name(char *to, const char *from)
{
    const char *name = from == NULL ? "none" : from;
    size_t length = strlen(name);
    memcpy(to, name, length < MPIX_SPARSE_NAME_MAX ? length : MPIX_SPARSE_NAME_MAX - 1);
}

/* Calls with a negative label compare arguments for a layer above this library. */
static bool is_unreported(const struct sar_active_call *op)
{
    const struct sar_call_sig *sig = &op->args->sig;
    return op->plan == NULL && sig->collective == SAR_ALLREDUCE && sig->field[SAR_AGREE_LABEL] < 0;
}

void sar_active_call_report(struct sar_active_call *op, double seconds)
{
    if (is_unreported(op))
        return;
    const struct sar_task *task = &op->task;
    const struct sar_scheme_report *report = &task->report;
    const struct sar_hash_stats *hash = &report->hash;
    MPIX_Sparse_report_t *r = &op->comm_state->last.report;
    bool dense_buffers = op->args->sig.dense_face && task->result.in_place;
    *r = (MPIX_Sparse_report_t){
        .grain = report->grain,
        .columns = report->columns,
        .threads = sar_parallel_granted(),
        .ranks = op->comm_state->comm.ranks,
        .nodes = op->comm_state->comm.nodes.n,
        .count = (MPI_Count)op->args->sig.desc.count,
        .row = (MPI_Count)op->args->sig.desc.row_len,
        .nnz_in = dense_buffers ? -1 : (MPI_Count)task->input.vec.nnz,
        .nnz_in_max = (MPI_Count)op->common.agreement.global.nnz_max,
        .nnz_in_sum = (MPI_Count)op->common.agreement.global.nnz_sum,
        .nnz_out = dense_buffers || task->result.parts_overlap ? -1 : (MPI_Count)task->result.vec.nnz,
        .bytes_sent = (MPI_Count)task->exchange.traffic.bytes_sent,
        .bytes_received = (MPI_Count)task->exchange.traffic.bytes_received,
        .header_bytes_sent = (MPI_Count)task->exchange.traffic.header_bytes_sent,
        .messages_sent = (MPI_Count)task->exchange.traffic.messages_sent,
        .messages_relayed = (MPI_Count)report->messages_relayed,
        .hash_reruns = (MPI_Count)report->hash.reruns,
        .serial_share = hash->elements == 0 ? 0 : (double)hash->serial / (double)hash->elements,
        .push_imbalance = report->push_imbalance,
        .pull_imbalance = report->pull_imbalance,
        .predicted_seconds = op->common.selection.prices[op->common.selection.scheme].price,
        .measured_seconds = seconds,
    };
    copy_name(r->scheme, task->scheme->name);
    copy_name(r->choice, sar_schemes[op->common.selection.choice]->name);
    copy_name(r->push_wire, report->push_wire);
    copy_name(r->pull_wire, report->pull_wire);
    copy_name(r->partition, report->partition);
    op->comm_state->last.selection = op->common.selection;
    op->comm_state->last.reported = true;
    op->comm_state->last.fallback = SAR_FALLBACK_NONE;
}

/* Once for a communicator, since many calls may follow. */
static void warn_forced_cannot_run(const struct sar_active_call *op)
{
    const struct sar_selection *s = &op->common.selection;
    const struct sar_scheme *forced = op->policy->forced;
    char setting[SAR_SETTING_TEXT];
    if (forced == NULL || forced == sar_schemes[s->scheme] || op->comm_state->last.warned_forced)
        return;
    op->comm_state->last.warned_forced = true;
    if (op->comm_state->comm.rank != 0)
        return;
    sar_config_spell("SCHEME", sar_config_source_of(&op->policy->config, "SCHEME"), setting, sizeof setting);
    const char *why = sar_scheme_unsupported_reason(forced, &op->common.agreed);
    SAR_LOG(WARN, SCHEME, "%s is %s, which cannot run: %s; %s runs", setting, forced->name,
            why == NULL ? "the call has no sparse form" : why, sar_schemes[s->scheme]->name);
}

/* Sorting may take most of a call, and no scheme can help. */
static void log_order(const struct sar_active_call *op)
{
    if (!op->run.sorted_input)
        return;
    SAR_LOG(
        INFO, CORE,
        "call %u: the %llu coordinates of this rank are not ascending, or repeat: each call sorts and merges "
        "them into %zu",
        op->comm_state->epoch, (unsigned long long)op->args->data.coo.nnz, op->task.input.vec.nnz);
}

void sar_active_call_log_selection(const struct sar_active_call *op)
{
    const struct sar_selection *s = &op->common.selection;
    const struct sar_scheme *forced = op->policy->forced, *runs = sar_schemes[s->scheme];
    char reason[MPIX_SPARSE_REASON_MAX];
    warn_forced_cannot_run(op);
    if (!sar_log_wanted(SAR_LOG_INFO, SAR_COMPONENT_CORE) ||
        op->common.tensor->costs.last_choice == s->choice + 1)
        return;
    sar_selection_reason(s, reason, sizeof reason);
    SAR_LOG(INFO, CORE, "call %u: %llu elements of %zu B, nnz mean %.0f: %s, %s", op->comm_state->epoch,
            (unsigned long long)op->common.agreed.desc.count, op->common.agreed.desc.element_size,
            op->common.agreed.data.nnz_mean, runs->name, reason);
    log_order(op);
    for (int i = 0; sar_schemes[i] != NULL; i++)
        if (s->prices[i].unsupported_reason != NULL && sar_schemes[i] != forced)
            SAR_LOG(DEBUG, SCHEME, "%s is not considered: %s", sar_schemes[i]->name,
                    s->prices[i].unsupported_reason);
}

void sar_active_call_log_profile(const struct sar_active_call *op)
{
    const struct sar_profile *p = &op->common.tensor->profile;
    if (op->run.status != SAR_OK)
        SAR_LOG(INFO, CORE, "call %u: no profile was made", op->comm_state->epoch);
    else
        SAR_LOG(DEBUG, CORE,
                "call %u: profile: density %.3g, of the result %.3g, overlap %.3f, skewness %.2f",
                op->comm_state->epoch, p->density, p->density_out, p->overlap, p->skewness);
}
