/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows: calls of all kinds of rows, and their reports. */

#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L /* nanosleep */
#endif

#include "bench/perf/row.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/lib/device_buffers.h"
#include "bench/lib/names.h"
#include "bench/limits/membw.h"
#include "bench/perf/collective.h"
#include "mpi_ext/attribute.h"

/* MPI gets no device memory: the vector is copied to the host, reduced in place, and copied back. */
static int dense_device_call(const struct perf_case *c, const struct perf_tensor *tensor, int step,
                             void *recv, MPI_Comm comm)
{
    int code;

    perf_device_copy(recv, tensor->step[step].buffers.dense, perf_case_bytes(c));
    code = perf_collective_dense(c, MPI_IN_PLACE, recv, comm);
    perf_device_copy(tensor->device_recv, recv, perf_case_bytes(c));
    return code;
}

static int dense_call(struct perf_row *row, const struct perf_case *c, const struct perf_tensor *tensor,
                      int step, void *recv)
{
    const void *send = tensor->send.data;
    MPI_Comm comm = row->comm;

    if (c->options->collective == SAR_ALLGATHER)
        return perf_gather_call(row, c, &tensor->step[step]);
    if (tensor->device_recv != NULL)
        return dense_device_call(c, tensor, step, recv, comm);

    if (c->options->interface == PERF_DENSE)
        send = c->options->in_place ? NULL : tensor->step[step].dense.data;
    return perf_collective_dense(c, send != NULL ? send : MPI_IN_PLACE, recv, comm);
}

static bool is_memory_bound(const struct perf_row *row)
{
    return row->kind == PERF_ROW_MEMORY || row->kind == PERF_ROW_MEMORY_NODE;
}

/* Restores the input that an in-place call overwrites. */
static void restore(const struct perf_row *row, const struct perf_case *c, const struct perf_tensor *tensor,
                    int step, void *recv)
{
    if (tensor->device_recv != NULL && c->options->in_place)
        perf_device_copy(tensor->device_recv, tensor->step[step].buffers.dense, perf_case_bytes(c));
    else if (c->options->interface == PERF_DENSE && c->options->in_place)
        memcpy(recv, tensor->step[step].dense.data, perf_case_bytes(c));
    if (c->options->interface == PERF_COO && row->kind == PERF_ROW_DENSE && tensor->send.data == NULL) {
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
    perf_membw_read(indices, (size_t)nnz * c->index_bytes);
    perf_membw_read(values, (size_t)nnz * c->element_bytes);
}

static void read_output(const struct perf_row *row, const struct perf_case *c, const void *recv)
{
    if (c->options->interface == PERF_DENSE || row->kind == PERF_ROW_DENSE)
        perf_membw_read(recv, perf_case_bytes(c));
    else if (row->kind == PERF_ROW_SPARSE)
        read_result(row->result, c);
    else if (is_memory_bound(row))
        perf_membw_read(row->memory.part.data, row->memory.written);
    else if (row->replay.has_copies)
        perf_membw_read(row->replay.copy_bound.memory.part.data, row->replay.copy_bound.memory.written);
}

/* Option --between imitates a program: between two calls it uses the result, computes in its own memory, and
 * produces the next input. read_output does the first step, this function the others. */
static void run_between(const struct perf_row *row, const struct perf_case *c,
                        const struct perf_tensor *tensor, int step, const void *recv)
{
    if (tensor->between.data == NULL)
        return;
    memset(tensor->between.data, step, (size_t)c->options->between);
    if (row->kind == PERF_ROW_DENSE && tensor->send.data != NULL)
        perf_membw_read(tensor->send.data, perf_case_bytes(c));
    else
        perf_memory_bound_read(c, &tensor->step[step], recv);
}

static void keep_first_error(struct perf_row *row, int code)
{
    if (row->code == MPI_SUCCESS)
        row->code = code;
}

/* Options --late and --jitter. */
static void come_late(const struct perf_case *c, int i)
{
    const struct perf_world *world = c->world;
    uint64_t key = perf_mix((uint64_t)c->options->seed ^ perf_mix((uint64_t)world->rank << 32 | (uint64_t)i));
    double us = c->options->jitter * ((double)key / 18446744073709551616.0);
    struct timespec wait;

    if (world->rank == world->ranks - 1)
        us += c->options->late;
    if (us <= 0)
        return;
    wait.tv_sec = (time_t)(us / 1e6);
    wait.tv_nsec = (long)((us - 1e6 * (double)wait.tv_sec) * 1e3);
    nanosleep(&wait, NULL);
}

double perf_row_call(struct perf_row *row, const struct perf_case *c, const struct perf_tensor *tensor,
                     int step, int i)
{
    void *recv = perf_tensor_recv(tensor, i);
    double start, seconds;
    int code = MPI_SUCCESS;

    if (tensor->between.data != NULL && i > 0)
        read_output(row, c, perf_tensor_recv(tensor, i - 1));
    restore(row, c, tensor, step, recv);
    run_between(row, c, tensor, step, recv);
    perf_sim_work_set_threads(row->threads);
    perf_sim_work_align();
    start = MPI_Wtime();
    come_late(c, i);
    switch (row->kind) {
    case PERF_ROW_SPARSE:
        code = perf_collective_call(row, c, &tensor->step[step], perf_tensor_target(tensor, i));
        break;
    case PERF_ROW_DENSE: code = dense_call(row, c, tensor, step, recv); break;
    case PERF_ROW_MEMORY:
    case PERF_ROW_MEMORY_NODE: perf_memory_bound_run(&row->memory, c, &tensor->step[step], recv); break;
    case PERF_ROW_MESSAGE_REPLAY: perf_message_replay_run(&row->replay, c, &tensor->step[step], recv); break;
    }
    seconds = MPI_Wtime() - start;
    keep_first_error(row, code);
    return seconds;
}

double perf_row_start(struct perf_row *row, const struct perf_case *c, const struct perf_tensor *tensor,
                      int step, int i, MPI_Request *request)
{
    void *recv = perf_tensor_recv(tensor, i);
    double start;

    *request = MPI_REQUEST_NULL;
    restore(row, c, tensor, step, recv);
    perf_sim_work_set_threads(row->threads);
    perf_sim_work_align();
    start = MPI_Wtime();
    keep_first_error(row, perf_collective_start(row, c, &tensor->step[step], perf_tensor_target(tensor, i),
                                                request));
    return start;
}

void perf_row_wait(struct perf_row *row, MPI_Request *request)
{
    keep_first_error(row, MPI_Wait(request, MPI_STATUS_IGNORE));
}

/* Sets the number of threads that `auto` stands for, which is known after the first call. Collective. */
static void find_auto_threads(struct perf_row *row)
{
    MPIX_Sparse_report_t report;

    if (MPIX_Sparse_get_report(row->comm, &report) == MPI_SUCCESS)
        row->threads = report.threads;
    MPI_Allreduce(MPI_IN_PLACE, &row->threads, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
}

/* The row names the scheme that ran in place of its own. The library's warning of that names a variable, and
 * only a user who has set it knows it. Collective. */
static void open_without_warning(const struct perf_row *row, const struct perf_environment *before)
{
    struct sar_comm_state *state;

    if (sar_comm_state_get(row->comm, __func__, &state) == MPI_SUCCESS &&
        before->saved[PERF_SETTING_SCHEME] == NULL)
        state->last.warned_forced = true;
}

/* Rank 0's environment decides, and no rank completes the call before rank 0 has entered it. */
static void open_library(struct perf_row *row, const struct perf_case *c, const struct perf_tensor *tensor)
{
    struct perf_environment before;
    int asked = atoi(row->settings.at[PERF_SETTING_THREADS]);

    row->threads = asked > 0 ? asked : 1;
    MPI_Comm_dup(MPI_COMM_WORLD, &row->comm);
    MPI_Comm_set_errhandler(row->comm, MPI_ERRORS_RETURN);
    perf_settings_set(&row->settings, &before);
    open_without_warning(row, &before);
    row->estimate = perf_row_call(row, c, tensor, 0, 0);
    perf_settings_restore(&before);
    if (asked == 0)
        find_auto_threads(row);
}

/* The barrier before each call leaves MPI_COMM_WORLD's data in the caches, so no row uses that communicator.
 */
static void open_dense(struct perf_row *row, const struct perf_case *c, const struct perf_tensor *tensor)
{
    MPI_Comm_dup(MPI_COMM_WORLD, &row->comm);
    if (c->options->collective == SAR_ALLGATHER)
        perf_gather_open(row, c, tensor);
    row->estimate = perf_row_call(row, c, tensor, 0, 0);
}

/* True if MPI_Allreduce did the reported call. Its messages cannot be recorded. */
static bool is_dense(const struct perf_row *row, MPIX_Sparse_report_t *report)
{
    return MPIX_Sparse_get_report(row->comm, report) != MPI_SUCCESS ||
           !perf_scheme_find(report->scheme).wires;
}

/* Records the second call, because the first one may differ from all others. */
static void open_replay(struct perf_row *row, const struct perf_case *c, const struct perf_tensor *tensor)
{
    struct perf_row *original = row->original;
    MPIX_Sparse_report_t report;

    row->failed = original->failed || is_dense(original, &report);
    if (row->failed)
        return;
    perf_message_replay_begin(&row->replay);
    perf_row_call(original, c, tensor, 0, 0);
    perf_message_replay_end(&row->replay, c, tensor, &report);
    row->estimate = perf_row_call(row, c, tensor, 0, 0);
}

static void open_memory_bound(struct perf_row *row, const struct perf_case *c,
                              const struct perf_tensor *tensor)
{
    perf_memory_bound_open(&row->memory, c, tensor,
                           row->kind == PERF_ROW_MEMORY_NODE ? c->world->node_ranks : 1);
    row->estimate = perf_row_call(row, c, tensor, 0, 0);
}

void perf_row_open(struct perf_row *row, const struct perf_case *c, const struct perf_tensor *tensor)
{
    row->comm = MPI_COMM_NULL;
    row->result = MPIX_SPARSE_RESULT_NULL;
    row->code = MPI_SUCCESS;
    row->failed = false;
    row->wrong = -1;
    row->threads = -1;
    for (int mode = 0; mode < PERF_PROGRESS_MODES; mode++)
        row->overlap[mode] = (struct perf_overlap){ NAN, NAN, NAN };
    if (is_memory_bound(row) && c->options->buffers != PERF_HOST) {
        row->failed = true; /* traffic of host memory says nothing about a device */
        return;
    }
    switch (row->kind) {
    case PERF_ROW_SPARSE: open_library(row, c, tensor); break;
    case PERF_ROW_DENSE: open_dense(row, c, tensor); break;
    case PERF_ROW_MEMORY:
    case PERF_ROW_MEMORY_NODE: open_memory_bound(row, c, tensor); break;
    case PERF_ROW_MESSAGE_REPLAY: open_replay(row, c, tensor); break;
    }
    if (row->kind != PERF_ROW_MESSAGE_REPLAY)
        perf_row_agree_failure(row);
}

void perf_row_agree_failure(struct perf_row *row)
{
    int length = 0, failed = row->code != MPI_SUCCESS;

    snprintf(row->error, sizeof row->error, "another rank failed");
    if (failed) {
        MPI_Error_string(row->code, row->error, &length);
        row->error[length] = '\0';
    }
    MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    row->failed = failed;
}

/* Replaces figures by their maxima over ranks. Without messages there are no formats. */
static void max_report(MPIX_Sparse_report_t *r)
{
    enum { FIGURES = 11 };
    double largest[FIGURES] = {
        (double)r->bytes_sent,
        (double)r->bytes_received,
        (double)r->header_bytes_sent,
        (double)r->messages_sent,
        r->push_imbalance,
        r->pull_imbalance,
        r->predicted_seconds,
        r->nodes,
        (double)r->messages_relayed,
        (double)r->hash_reruns,
        r->serial_share,
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
    r->messages_relayed = (MPI_Count)largest[8];
    r->hash_reruns = (MPI_Count)largest[9];
    r->serial_share = largest[10];
    if (r->messages_sent == 0) {
        snprintf(r->push_wire, sizeof r->push_wire, "none");
        snprintf(r->pull_wire, sizeof r->pull_wire, "none");
    }
}

/* Fills in the report of a row that does not call the library. */
static void fill_report(MPIX_Sparse_report_t *r, const char *scheme, const char *reason)
{
    snprintf(r->scheme, sizeof r->scheme, "%s", scheme);
    snprintf(r->reason, sizeof r->reason, "%s", reason);
    snprintf(r->push_wire, sizeof r->push_wire, "none");
    snprintf(r->pull_wire, sizeof r->pull_wire, "none");
    snprintf(r->partition, sizeof r->partition, "none");
}

static void report_memory_bound(MPIX_Sparse_report_t *r, const char *name, const char *what,
                                const struct perf_memory_bound *memory)
{
    char reason[MPIX_SPARSE_REASON_MAX];

    snprintf(reason, sizeof reason, "the input is read once, %s is written once%s: %llu and %llu bytes", what,
             memory->nt_stores ? " past the caches" : "", memory->max_read, memory->max_written);
    fill_report(r, name, reason);
}

/* Other fields are those of the replayed row. */
static void report_replay(MPIX_Sparse_report_t *r, const struct perf_message_replay *replay)
{
    r->bytes_sent = r->bytes_received = r->messages_sent = 0;
    for (int i = 0; i < replay->log.n; i++) {
        const struct sar_message_event *event = &replay->log.at[i];
        *(event->sent ? &r->bytes_sent : &r->bytes_received) += (MPI_Count)event->bytes;
        r->messages_sent += event->sent;
    }
    r->predicted_seconds = 0;
    perf_message_replay_describe(replay, r->reason, sizeof r->reason);
}

void perf_row_report(struct perf_row *row)
{
    MPIX_Sparse_report_t *r = &row->report;

    memset(r, 0, sizeof *r);
    if (row->kind == PERF_ROW_MEMORY)
        report_memory_bound(r, "memory", "the output", &row->memory);
    if (row->kind == PERF_ROW_MEMORY_NODE)
        report_memory_bound(r, "memory_node", "a share of the node's output", &row->memory);
    if (row->kind == PERF_ROW_MESSAGE_REPLAY) {
        *r = row->original->report;
        report_replay(r, &row->replay);
    }
    if (perf_row_is_sparse(row) && MPIX_Sparse_get_report(row->comm, r) != MPI_SUCCESS)
        memset(r, 0, sizeof *r);
    max_report(r);
}

void perf_row_close(struct perf_row *row)
{
    MPIX_Sparse_result_free(&row->result);
    MPIX_Sparse_plan_free(&row->plan);
    perf_gather_close(row);
    if (row->comm != MPI_COMM_NULL)
        MPI_Comm_free(&row->comm);
    if (is_memory_bound(row))
        perf_memory_bound_close(&row->memory);
    if (row->kind == PERF_ROW_MESSAGE_REPLAY)
        perf_message_replay_free(&row->replay);
}
