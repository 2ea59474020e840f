/* SPDX-License-Identifier: BSD-3-Clause */
/* What a call leaves behind: the outcome in dense buffers, the report, and lines in the log. */

#include <string.h>

#include "base/log.h"
#include "plan/steps.h"

enum {
    LINE = 64,       /* bytes */
    APART = 8,       /* lines from an element to the next, for which it is still faster to stream lines */
    APART_IN_ALL = 3 /* the same for streaming all of a buffer instead of zeroing first what was there */
};

/* Whether lines had better be written whole than those with elements of the outcome read and written. */
static bool fills(const struct sar_shape *shape, size_t nnz, unsigned apart)
{
    uint64_t each = shape->element_size > LINE ? shape->element_size : LINE;
    uint64_t bytes = shape->count * shape->element_size;
    return bytes >= SAR_STREAMED && sar_times(nnz, each * apart) > bytes;
}

/* In place, only the elements of this rank and of the outcome differ from zero. A scheme that rounds values
 * may lose some of the former. */
static struct sar_work write_here(const struct sar_pending *op, const struct sar_delivery *outcome)
{
    const struct sar_call *call = op->call;
    const struct sar_request *request = &op->request;
    unsigned char *buf = call->buffers.recvbuf;
    struct sar_work work = sar_work_on("write", request->output.nnz, call->shape.element_size,
                                       call->shape.count * call->shape.row);
    if (request->folds) {
        sar_dense_fold(&call->shape, outcome->runs, outcome->n, call->in_place ? &request->input : NULL, buf);
        work.format = call->in_place ? "fold_in_place" : "fold";
        return work;
    }
    if (!outcome->clear && fills(&call->shape, request->output.nnz, APART)) {
        request->device->update(&call->shape, outcome->runs, outcome->n, buf);
        work.format = "update";
        return work;
    }
    if (!call->in_place || fills(&call->shape, request->output.nnz, APART_IN_ALL)) {
        request->device->expand(&call->shape, outcome->runs, outcome->n, buf);
        work.format = "expand";
        return work;
    }
    if (outcome->clear)
        sar_dense_clear(&call->shape, &request->input, buf);
    for (size_t i = 0; i < outcome->n; i++)
        request->device->scatter(&call->shape, &outcome->runs[i], buf);
    work.format = "scatter";
    return work;
}

void sar_call_write(struct sar_pending *op, struct sar_work *work)
{
    struct sar_call *call = op->call;
    const struct sar_request *request = &op->request;
    struct sar_delivery outcome = { &request->output, 1, !call->in_place || !request->output_covers,
                                    request->worker != NULL };
    if (!call->dense_face && request->worker != NULL)
        call->verdict.status = sar_remote_assemble(op);
    if (!call->dense_face || request->output_in_place)
        return;
    if (request->pieces != NULL) {
        outcome.runs = request->pieces;
        outcome.n = request->pieces_n;
    }
    if (call->remote)
        call->verdict.status = sar_remote_write(op, &outcome);
    else if (!sar_call_send(op, &outcome))
        *work = write_here(op, &outcome);
}

/* Where there are zeros. */
static void name(char *to, const char *from)
{
    const char *known = from == NULL ? "none" : from;
    size_t length = strlen(known);
    memcpy(to, known, length < MPIX_SPARSE_NAME_MAX ? length : MPIX_SPARSE_NAME_MAX - 1);
}

void sar_call_report(struct sar_pending *op, double seconds)
{
    const struct sar_request *request = &op->request;
    const struct sar_notes *notes = &request->notes;
    MPIX_Sparse_report_t *r = &op->context->report;
    bool dense_buffers = op->call->dense_face && request->output_in_place;
    *r = (MPIX_Sparse_report_t){
        .grain = notes->grain,
        .ranks = op->context->net.ranks,
        .nodes = op->context->net.nodes.n,
        .count = (MPI_Count)op->call->shape.count,
        .row = (MPI_Count)op->call->shape.row,
        .nnz_in = dense_buffers ? -1 : (MPI_Count)request->input.nnz,
        .nnz_in_max = (MPI_Count)op->agreement.all.nnz_max,
        .nnz_in_sum = (MPI_Count)op->agreement.all.nnz_sum,
        .nnz_out = dense_buffers || request->folds ? -1 : (MPI_Count)request->output.nnz,
        .bytes_sent = (MPI_Count)request->exchange.traffic.bytes_sent,
        .bytes_received = (MPI_Count)request->exchange.traffic.bytes_received,
        .header_bytes_sent = (MPI_Count)request->exchange.traffic.header_bytes_sent,
        .messages_sent = (MPI_Count)request->exchange.traffic.messages_sent,
        .push_imbalance = notes->push_imbalance,
        .pull_imbalance = notes->pull_imbalance,
        .predicted_seconds = op->selection.prices[op->selection.runs].price,
        .measured_seconds = seconds,
    };
    name(r->scheme, request->scheme->name);
    name(r->choice, sar_schemes[op->selection.choice]->name);
    name(r->push_wire, notes->push_wire);
    name(r->pull_wire, notes->pull_wire);
    name(r->partition, notes->partition);
    op->context->told = op->selection;
    op->context->reported = true;
    op->context->forwarded_last = false;
}

void sar_call_tell_selection(const struct sar_pending *op)
{
    const struct sar_selection *s = &op->selection;
    const struct sar_scheme *forced = op->policy->forced, *runs = sar_schemes[s->runs];
    char reason[MPIX_SPARSE_REASON_MAX];
    if (!sar_log_wanted(SAR_LOG_INFO, SAR_ROOM_PLAN) || op->record->lessons.settled == s->choice + 1)
        return;
    sar_selection_reason(s, reason, sizeof reason);
    SAR_LOG(INFO, PLAN, "call %u: %llu elements of %zu B, nnz mean %.0f: %s, %s", op->context->epoch,
            (unsigned long long)op->agreed.shape.count, op->agreed.shape.element_size, op->agreed.nnz_mean,
            runs->name, reason);
    for (int i = 0; sar_schemes[i] != NULL; i++)
        if (sar_schemes[i] == forced && s->prices[i].obstacle != NULL)
            SAR_LOG(INFO, SCHEME, "%s cannot run: %s", forced->name, s->prices[i].obstacle);
        else if (s->prices[i].obstacle != NULL)
            SAR_LOG(DEBUG, SCHEME, "%s cannot run: %s", sar_schemes[i]->name, s->prices[i].obstacle);
}

void sar_call_tell_profile(const struct sar_pending *op)
{
    const struct sar_profile *p = &op->record->profile;
    if (op->status != SAR_OK)
        SAR_LOG(INFO, PLAN, "call %u: no profile was made", op->context->epoch);
    else
        SAR_LOG(DEBUG, PLAN,
                "call %u: profile: density %.3g, of the outcome %.3g, overlap %.3f, skewness %.2f",
                op->context->epoch, p->density, p->density_out, p->overlap, p->skewness);
}
