/* SPDX-License-Identifier: BSD-3-Clause */
#include "row.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "device.h"
#include "names.h"
#include "touch.h"

/* MPI_Allreduce of basic values, in pieces that its int counts can hold. */
static int plain_allreduce(const struct perf_case *c, const void *send, void *recv, MPI_Comm comm)
{
    const size_t piece = (size_t)1 << 30;
    size_t values = c->count * c->row;
    int code = MPI_SUCCESS;

    for (size_t at = 0; at < values && code == MPI_SUCCESS; at += values > INT_MAX ? piece : values) {
        size_t n = values > INT_MAX && values - at > piece ? piece : values - at;
        const void *from = send == MPI_IN_PLACE ? send : (const char *)send + at * c->type->size;
        code = MPI_Allreduce(from, (char *)recv + at * c->type->size, (int)n, c->basic, c->mpi_op, comm);
    }
    return code;
}

/* MPI is not handed device memory: the vector is fetched and sent back, in place. */
static int plain_device_call(const struct perf_case *c, const struct perf_tensor *tensor, int step,
                             void *recv, MPI_Comm comm)
{
    int code;

    perf_device_copy(recv, tensor->step[step].handed.dense, perf_case_bytes(c));
    code = plain_allreduce(c, MPI_IN_PLACE, recv, comm);
    perf_device_copy(tensor->device_recv, recv, perf_case_bytes(c));
    return code;
}

static int plain_call(const struct perf_case *c, const struct perf_tensor *tensor, int step, void *recv,
                      MPI_Comm comm)
{
    const void *send = tensor->send.data;

    if (tensor->device_recv != NULL)
        return plain_device_call(c, tensor, step, recv, comm);

    if (c->options->interface == PERF_DENSE)
        send = c->options->in_place ? NULL : tensor->step[step].dense.data;
    return plain_allreduce(c, send != NULL ? send : MPI_IN_PLACE, recv, comm);
}

static int sparse_call(struct perf_row *row, const struct perf_case *c, const struct perf_step *step,
                       void *recv)
{
    if (c->options->interface == PERF_COO)
        return MPIX_Sparse_allreduce_coo(step->handed.index, step->handed.values, (MPI_Count)step->nnz,
                                         c->index_type, (MPI_Count)c->count, c->element, c->mpi_op, row->comm,
                                         &row->result);
    return MPIX_Sparse_allreduce(c->options->in_place ? MPI_IN_PLACE : step->handed.dense, recv,
                                 (MPI_Count)c->count, c->element, c->mpi_op, row->comm);
}

static int sparse_start(struct perf_row *row, const struct perf_case *c, const struct perf_step *step,
                        void *recv, MPI_Request *request)
{
    if (c->options->interface == PERF_COO)
        return MPIX_Isparse_allreduce_coo(step->handed.index, step->handed.values, (MPI_Count)step->nnz,
                                          c->index_type, (MPI_Count)c->count, c->element, c->mpi_op,
                                          row->comm, &row->result, request);
    return MPIX_Isparse_allreduce(c->options->in_place ? MPI_IN_PLACE : step->handed.dense, recv,
                                  (MPI_Count)c->count, c->element, c->mpi_op, row->comm, request);
}

static bool only_touches(const struct perf_row *row)
{
    return row->way == PERF_MEMORY || row->way == PERF_MEMORY_NODE;
}

/* Put the input where an in-place call takes it from. */
static void restore(const struct perf_row *row, const struct perf_case *c, const struct perf_tensor *tensor,
                    int step, void *recv)
{
    if (tensor->device_recv != NULL && c->options->in_place)
        perf_device_copy(tensor->device_recv, tensor->step[step].handed.dense, perf_case_bytes(c));
    else if (c->options->interface == PERF_DENSE && c->options->in_place)
        memcpy(recv, tensor->step[step].dense.data, perf_case_bytes(c));
    if (c->options->interface == PERF_COO && row->way == PERF_BY_MPI && tensor->send.data == NULL) {
        memset(recv, 0, perf_case_bytes(c));
        perf_tensor_scatter(tensor, c, 0, c->count, recv);
    }
}

static void read_result(MPIX_Sparse_result result, const struct perf_case *c)
{
    const void *indices, *values;
    MPI_Count nnz;

    if (result == MPIX_SPARSE_RESULT_NULL)
        return;
    MPIX_Sparse_result_get(result, &nnz, &indices, &values);
    perf_read(indices, (size_t)nnz * c->index_bytes);
    perf_read(values, (size_t)nnz * c->element_bytes);
}

static void use_outcome(const struct perf_row *row, const struct perf_case *c, const void *recv)
{
    if (c->options->interface == PERF_DENSE || row->way == PERF_BY_MPI)
        perf_read(recv, perf_case_bytes(c));
    else if (row->way == PERF_BY_LIBRARY)
        read_result(row->result, c);
    else if (only_touches(row))
        perf_read(row->memory.part.data, row->memory.written);
    else if (row->skeleton.copies_too)
        perf_read(row->skeleton.copies.memory.part.data, row->skeleton.copies.memory.written);
}

/* What a program does between two calls: use the outcome of one, compute, in memory of its own, and in the
 * end the input of the next. The latter two: */
static void do_otherwise(const struct perf_row *row, const struct perf_case *c,
                         const struct perf_tensor *tensor, int step, const void *recv)
{
    if (tensor->between.data == NULL)
        return;
    memset(tensor->between.data, step, (size_t)c->options->between);
    if (row->way == PERF_BY_MPI && tensor->send.data != NULL)
        perf_read(tensor->send.data, perf_case_bytes(c));
    else
        perf_memory_read(c, &tensor->step[step], recv);
}

static void note(struct perf_row *row, int code)
{
    if (row->code == MPI_SUCCESS)
        row->code = code;
}

double perf_row_call(struct perf_row *row, const struct perf_case *c, const struct perf_tensor *tensor,
                     int step, int i)
{
    void *recv = perf_tensor_recv(tensor, i);
    double start, seconds;
    int code = MPI_SUCCESS;

    if (tensor->between.data != NULL && i > 0)
        use_outcome(row, c, perf_tensor_recv(tensor, i - 1));
    restore(row, c, tensor, step, recv);
    do_otherwise(row, c, tensor, step, recv);
    MPI_Barrier(MPI_COMM_WORLD);
    start = MPI_Wtime();
    switch (row->way) {
    case PERF_BY_LIBRARY:
        code = sparse_call(row, c, &tensor->step[step], perf_tensor_target(tensor, i));
        break;
    case PERF_BY_MPI: code = plain_call(c, tensor, step, recv, row->comm); break;
    case PERF_MEMORY:
    case PERF_MEMORY_NODE: perf_memory_pass(&row->memory, c, &tensor->step[step], recv); break;
    case PERF_SKELETON: perf_skeleton_pass(&row->skeleton, c, &tensor->step[step], recv); break;
    }
    seconds = MPI_Wtime() - start;
    note(row, code);
    return seconds;
}

double perf_row_start(struct perf_row *row, const struct perf_case *c, const struct perf_tensor *tensor,
                      int step, int i, MPI_Request *request)
{
    void *recv = perf_tensor_recv(tensor, i);
    double start;

    *request = MPI_REQUEST_NULL;
    restore(row, c, tensor, step, recv);
    MPI_Barrier(MPI_COMM_WORLD);
    start = MPI_Wtime();
    note(row, sparse_start(row, c, &tensor->step[step], perf_tensor_target(tensor, i), request));
    return start;
}

void perf_row_wait(struct perf_row *row, MPI_Request *request)
{
    note(row, MPI_Wait(request, MPI_STATUS_IGNORE));
}

/* No rank leaves the call before rank 0, whose environment counts, has entered it. */
static void open_library(struct perf_row *row, const struct perf_case *c, const struct perf_tensor *tensor)
{
    struct perf_environment before;

    MPI_Comm_dup(MPI_COMM_WORLD, &row->comm);
    MPI_Comm_set_errhandler(row->comm, MPI_ERRORS_RETURN);
    perf_knobs_set(&row->knobs, &before);
    row->estimate = perf_row_call(row, c, tensor, 0, 0);
    perf_knobs_restore(&before);
}

/* The barrier before each call leaves what belongs to MPI_COMM_WORLD in the caches; no row runs there. */
static void open_plain(struct perf_row *row, const struct perf_case *c, const struct perf_tensor *tensor)
{
    MPI_Comm_dup(MPI_COMM_WORLD, &row->comm);
    row->estimate = perf_row_call(row, c, tensor, 0, 0);
}

/* Whether what a row did, as it reports, was up to MPI_Allreduce, whose messages are its own. */
static bool left_to_mpi(const struct perf_row *row, MPIX_Sparse_report_t *report)
{
    return MPIX_Sparse_get_report(row->comm, report) != MPI_SUCCESS ||
           !perf_scheme_find(report->scheme).wires;
}

/* The first call may do what others do not, so the second one is taken. */
static void open_skeleton(struct perf_row *row, const struct perf_case *c, const struct perf_tensor *tensor)
{
    struct perf_row *model = row->model;
    MPIX_Sparse_report_t report;

    row->refused = model->refused || left_to_mpi(model, &report);
    if (row->refused)
        return;
    perf_skeleton_begin(&row->skeleton);
    perf_row_call(model, c, tensor, 0, 0);
    perf_skeleton_end(&row->skeleton, c, tensor, &report);
    row->estimate = perf_row_call(row, c, tensor, 0, 0);
}

static void open_memory(struct perf_row *row, const struct perf_case *c, const struct perf_tensor *tensor)
{
    perf_memory_open(&row->memory, c, tensor, row->way == PERF_MEMORY_NODE ? c->world->node_ranks : 1);
    row->estimate = perf_row_call(row, c, tensor, 0, 0);
}

void perf_row_open(struct perf_row *row, const struct perf_case *c, const struct perf_tensor *tensor)
{
    row->comm = MPI_COMM_NULL;
    row->result = MPIX_SPARSE_RESULT_NULL;
    row->code = MPI_SUCCESS;
    row->refused = false;
    row->wrong = -1;
    for (int mode = 0; mode < PERF_MODES; mode++)
        row->overlap[mode] = (struct perf_overlap){ NAN, NAN, NAN };
    if (only_touches(row) && c->options->buffers == PERF_CUDA) {
        row->refused = true; /* what the host reads and writes says nothing of a device */
        return;
    }
    switch (row->way) {
    case PERF_BY_LIBRARY: open_library(row, c, tensor); break;
    case PERF_BY_MPI: open_plain(row, c, tensor); break;
    case PERF_MEMORY:
    case PERF_MEMORY_NODE: open_memory(row, c, tensor); break;
    case PERF_SKELETON: open_skeleton(row, c, tensor); break;
    }
    if (row->way != PERF_SKELETON)
        perf_row_agree(row);
}

void perf_row_agree(struct perf_row *row)
{
    int length = 0, failed = row->code != MPI_SUCCESS;

    snprintf(row->error, sizeof row->error, "another rank failed");
    if (failed) {
        MPI_Error_string(row->code, row->error, &length);
        row->error[length] = '\0';
    }
    MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    row->refused = failed;
}

/* Figures of which the largest of any rank counts. Where no rank sends, no format does anything. */
static void agree_report(MPIX_Sparse_report_t *r)
{
    enum { FIGURES = 8 };
    double largest[FIGURES] = {
        (double)r->bytes_sent,
        (double)r->bytes_received,
        (double)r->header_bytes_sent,
        (double)r->messages_sent,
        r->push_imbalance,
        r->pull_imbalance,
        r->predicted_seconds,
        r->nodes,
    };

    MPI_Allreduce(MPI_IN_PLACE, largest, FIGURES, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    r->bytes_sent = (MPI_Count)largest[0];
    r->bytes_received = (MPI_Count)largest[1];
    r->header_bytes_sent = (MPI_Count)largest[2];
    r->messages_sent = (MPI_Count)largest[3];
    r->push_imbalance = largest[4];
    r->pull_imbalance = largest[5];
    r->predicted_seconds = largest[6];
    r->nodes = (int)largest[7];
    if (r->messages_sent == 0) {
        snprintf(r->push_wire, sizeof r->push_wire, "none");
        snprintf(r->pull_wire, sizeof r->pull_wire, "none");
    }
}

/* Of a row that makes no call of the library. */
static void report_instead(MPIX_Sparse_report_t *r, const char *scheme, const char *reason)
{
    snprintf(r->scheme, sizeof r->scheme, "%s", scheme);
    snprintf(r->reason, sizeof r->reason, "%s", reason);
    snprintf(r->push_wire, sizeof r->push_wire, "none");
    snprintf(r->pull_wire, sizeof r->pull_wire, "none");
    snprintf(r->partition, sizeof r->partition, "none");
}

static void report_memory(MPIX_Sparse_report_t *r, const char *name, const char *what,
                          const struct perf_memory *memory)
{
    char reason[MPIX_SPARSE_REASON_MAX];

    snprintf(reason, sizeof reason, "the input is read once, %s is written once%s: %llu and %llu bytes", what,
             memory->streams ? " past the caches" : "", memory->most_read, memory->most_written);
    report_instead(r, name, reason);
}

/* The rest is as with its model. */
static void report_skeleton(MPIX_Sparse_report_t *r, const struct perf_skeleton *skeleton)
{
    r->bytes_sent = r->bytes_received = r->messages_sent = 0;
    for (int i = 0; i < skeleton->messages.n; i++) {
        const struct sar_passage *passage = &skeleton->messages.at[i];
        *(passage->sent ? &r->bytes_sent : &r->bytes_received) += (MPI_Count)passage->bytes;
        r->messages_sent += passage->sent;
    }
    r->predicted_seconds = 0;
    perf_skeleton_tell(skeleton, r->reason, sizeof r->reason);
}

void perf_row_report(struct perf_row *row)
{
    MPIX_Sparse_report_t *r = &row->report;

    memset(r, 0, sizeof *r);
    if (row->way == PERF_MEMORY)
        report_memory(r, "memory", "the output", &row->memory);
    if (row->way == PERF_MEMORY_NODE)
        report_memory(r, "memory_node", "a share of the node's output", &row->memory);
    if (row->way == PERF_SKELETON) {
        *r = row->model->report;
        report_skeleton(r, &row->skeleton);
    }
    if (perf_row_is_ours(row) && MPIX_Sparse_get_report(row->comm, r) != MPI_SUCCESS)
        memset(r, 0, sizeof *r);
    agree_report(r);
}

void perf_row_close(struct perf_row *row)
{
    MPIX_Sparse_result_free(&row->result);
    if (row->comm != MPI_COMM_NULL)
        MPI_Comm_free(&row->comm);
    if (only_touches(row))
        perf_memory_close(&row->memory);
    if (row->way == PERF_SKELETON)
        perf_skeleton_free(&row->skeleton);
}
