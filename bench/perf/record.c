/* SPDX-License-Identifier: BSD-3-Clause */
/* The record of a row: the table of its fields, and their values. */

#include "bench/perf/record.h"

#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include "bench/perf/collective.h"

#define FIELD(key, kind, member) PERF_FIELD(perf_record, key, kind, member)

/* clang-format off */
static const struct perf_field fields[] = {
    FIELD("label", PERF_TEXT, label),
    FIELD("ranks", PERF_INTEGER, ranks),
    FIELD("nodes", PERF_INTEGER, nodes),
    FIELD("collective", PERF_TEXT, collective),
    FIELD("block", PERF_INTEGER, block),
    FIELD("interface", PERF_TEXT, interface),
    FIELD("buffers", PERF_TEXT, buffers),
    FIELD("count", PERF_INTEGER, count),
    FIELD("row", PERF_INTEGER, row_len),
    FIELD("datatype", PERF_TEXT, datatype),
    FIELD("op", PERF_TEXT, op),
    FIELD("workload", PERF_LETTERS, workload),
    FIELD("scale", PERF_INTEGER, scale),
    FIELD("gpus", PERF_INTEGER, gpus),
    FIELD("unequal", PERF_REAL, unequal),
    FIELD("drift", PERF_REAL, drift),
    FIELD("density", PERF_REAL, density),
    FIELD("overlap", PERF_REAL, overlap),
    FIELD("overlap_measured", PERF_REAL, overlap_measured),
    FIELD("skew", PERF_REAL, skew),
    FIELD("order", PERF_TEXT, order),
    FIELD("index", PERF_TEXT, index),
    FIELD("in_place", PERF_BOOL, in_place),
    FIELD("plan", PERF_BOOL, plan),
    FIELD("nnz_in_max", PERF_INTEGER, nnz_in_max),
    FIELD("nnz_in_mean", PERF_REAL, nnz_in_mean),
    FIELD("nnz_out", PERF_INTEGER, nnz_out),
    FIELD("gamma", PERF_REAL, gamma),
    FIELD("scheme", PERF_TEXT, scheme),
    FIELD("wire_requested", PERF_TEXT, wire_requested),
    FIELD("partition_requested", PERF_TEXT, partition_requested),
    FIELD("columns_requested", PERF_TEXT, columns_requested),
    FIELD("threads_requested", PERF_TEXT, threads_requested),
    FIELD("wire_values", PERF_TEXT, wire_values),
    FIELD("chosen", PERF_BOOL, chosen),
    FIELD("ran", PERF_TEXT, ran),
    FIELD("push_wire", PERF_TEXT, push_wire),
    FIELD("pull_wire", PERF_TEXT, pull_wire),
    FIELD("partition", PERF_TEXT, partition),
    FIELD("grain", PERF_INTEGER, grain),
    FIELD("columns", PERF_INTEGER, columns),
    FIELD("threads", PERF_INTEGER, threads),
    FIELD("push_imbalance", PERF_REAL, push_imbalance),
    FIELD("pull_imbalance", PERF_REAL, pull_imbalance),
    FIELD("bytes_sent_max", PERF_INTEGER, bytes_sent_max),
    FIELD("bytes_received_max", PERF_INTEGER, bytes_received_max),
    FIELD("header_bytes_sent_max", PERF_INTEGER, header_bytes_sent_max),
    FIELD("messages_sent_max", PERF_INTEGER, messages_sent_max),
    FIELD("messages_relayed_max", PERF_INTEGER, messages_relayed_max),
    FIELD("hash_reruns_max", PERF_INTEGER, hash_reruns_max),
    FIELD("serial_share_max", PERF_REAL, serial_share_max),
    FIELD("bytes_floor", PERF_REAL, bytes_floor),
    FIELD("predicted_s", PERF_REAL, predicted),
    FIELD("median_s", PERF_REAL, median),
    FIELD("min_s", PERF_REAL, min),
    FIELD("p99_s", PERF_REAL, p99),
    FIELD("dense_median_s", PERF_REAL, dense_median),
    FIELD("allgather_median_s", PERF_REAL, allgather_median),
    FIELD("memory_median_s", PERF_REAL, memory_median),
    FIELD("skeleton_median_s", PERF_REAL, replay_median),
    FIELD("over_memory", PERF_REAL, over_memory),
    FIELD("over_skeleton", PERF_REAL, over_replay),
    FIELD("line_s", PERF_REAL, cacheline),
    FIELD("phases", PERF_BREAKDOWN, phases),
    FIELD("work_s", PERF_REAL, sim_work.measured),
    FIELD("charged_s", PERF_REAL, sim_work.modelled),
    FIELD("extrapolated", PERF_BOOL, extrapolated),
    FIELD("wait_call_s", PERF_REAL, wait.call),
    FIELD("wait_compute_s", PERF_REAL, wait.compute),
    FIELD("wait_both_s", PERF_REAL, wait.both),
    FIELD("wait_ratio", PERF_REAL, wait_ratio),
    FIELD("thread_call_s", PERF_REAL, thread.call),
    FIELD("thread_compute_s", PERF_REAL, thread.compute),
    FIELD("thread_both_s", PERF_REAL, thread.both),
    FIELD("thread_ratio", PERF_REAL, thread_ratio),
    FIELD("wrong", PERF_INTEGER, wrong),
    FIELD("reason", PERF_TEXT, reason),
    FIELD("iterations", PERF_INTEGER, iterations),
    FIELD("between", PERF_INTEGER, between),
    FIELD("late_us", PERF_REAL, late),
    FIELD("jitter_us", PERF_REAL, jitter),
    FIELD("seed", PERF_INTEGER, seed),
};
/* clang-format on */

const struct perf_schema perf_record_schema = PERF_SCHEMA(fields);

/* The library reports 0 for an unknown figure. */
static double positive(double figure)
{
    return figure > 0 ? figure : NAN;
}

static void fill_case(struct perf_record *r, const struct perf_case *c, const struct perf_tensor_stats *stats)
{
    const struct perf_options *options = c->options;
    bool from_options = options->workload.kind == PERF_RANDOM; /* case drawn by the options */

    r->ranks = c->world->ranks;
    r->nodes = c->world->nodes;
    r->collective = perf_collective_name(options->collective);
    r->block = options->collective == SAR_ALLREDUCE ? 0 : (long long)perf_collective_block(c);
    r->interface = perf_interface_name(options->interface);
    r->buffers = perf_buffers_name(options->buffers);
    r->count = (long long)c->count;
    r->row_len = (long long)c->row_len;
    r->bytes = (double)perf_case_bytes(c);
    r->datatype = c->type->name;
    r->op = perf_op_name(c->op);
    perf_source_name(&options->workload, r->workload, sizeof r->workload);
    r->label = options->label[0] != '\0' ? options->label : NULL;
    r->scale = options->scale;
    r->gpus = options->gpus;
    r->unequal = options->unequal;
    r->drift = options->drift;
    r->density = from_options ? c->density : stats->nnz_in_mean / (double)c->count;
    r->overlap = from_options ? options->overlap : stats->overlap;
    r->overlap_measured = stats->overlap;
    r->skew = from_options ? options->skew : stats->head_share;
    r->order = perf_order_name(options->order);
    r->index = perf_index_name(c->index);
    r->in_place = options->in_place;
    r->plan = options->plan;
    r->wire_values = perf_values_name(perf_case_values(c));
    r->overlap_compute = options->overlap_compute;
    r->replays = options->message_replay;
    r->shows_threads = perf_options_show_threads(options);
    r->nnz_in_max = stats->nnz_in_max;
    r->nnz_in_mean = stats->nnz_in_mean;
    r->nnz_out = stats->nnz_out;
    r->gamma = stats->nnz_in_mean > 0 ? (double)stats->nnz_out / stats->nnz_in_mean : NAN;
    r->between = options->between;
    r->late = options->late;
    r->jitter = options->jitter;
    r->seed = options->seed;
}

/* Returns the least bytes that a rank must send if each element is sent once: in a push, a pull, or both. */
static double least_bytes(const struct perf_case *c, const struct perf_tensor_stats *stats)
{
    double n = c->world->ranks, count = (double)c->count;
    double value = (double)(c->element_bytes / (perf_case_values(c) == PERF_FULL ? 1 : 2));
    bool pushes = c->options->collective != SAR_ALLGATHER,
         pulls = c->options->collective != SAR_REDUCE_SCATTER;
    double in = pushes ? stats->nnz_in_mean : 0, out = pulls ? (double)stats->nnz_out : 0;

    return (n - 1) / n *
           (in * (value + perf_index_bytes(count, in)) + out * (value + perf_index_bytes(count, out)));
}

/* A bound below the clock's resolution is none: computing may take no time in a simulation. */
static double over_memory(const struct perf_record *r)
{
    return r->memory_median > MPI_Wtick() ? r->median / r->memory_median : NAN;
}

void perf_record_make(struct perf_record *r, const struct perf_case *c, const struct perf_tensor_stats *stats,
                      const struct perf_row *row, struct perf_baselines baselines)
{
    const MPIX_Sparse_report_t *report = &row->report;

    fill_case(r, c, stats);
    r->scheme = row->settings.at[PERF_SETTING_SCHEME];
    r->wire_requested = row->settings.at[PERF_SETTING_WIRE];
    r->partition_requested = row->settings.at[PERF_SETTING_PARTITION];
    r->columns_requested = row->settings.at[PERF_SETTING_COLUMNS];
    r->threads_requested = row->settings.at[PERF_SETTING_THREADS];
    r->threads = row->threads;
    r->chosen = row->chosen;
    r->ran = report->scheme;
    r->push_wire = report->push_wire;
    r->pull_wire = report->pull_wire;
    r->partition = report->partition;
    r->grain = report->grain;
    r->columns = report->columns;
    r->reason = report->reason;
    r->push_imbalance = positive(report->push_imbalance);
    r->pull_imbalance = positive(report->pull_imbalance);
    r->bytes_sent_max = report->bytes_sent;
    r->bytes_received_max = report->bytes_received;
    r->header_bytes_sent_max = report->header_bytes_sent;
    r->messages_sent_max = report->messages_sent;
    r->messages_relayed_max = report->messages_relayed;
    r->hash_reruns_max = report->hash_reruns;
    r->serial_share_max = report->serial_share;
    r->bytes_floor = least_bytes(c, stats);
    r->predicted = positive(report->predicted_seconds);
    r->median = row->times.median;
    r->min = row->times.min;
    r->p99 = row->times.p99;
    r->iterations = row->times.n;
    r->dense_median = baselines.dense;
    r->allgather_median = baselines.allgather;
    r->memory_median = baselines.memory;
    r->replay_median = baselines.replay;
    r->cacheline = baselines.cacheline;
    r->over_memory = over_memory(r);
    r->over_replay = r->median / r->replay_median;
    r->phases = &row->phases;
    r->sim_work = perf_row_is_sparse(row) ? row->sim_work : (struct perf_sim_work){ NAN, NAN, NAN };
    r->extrapolated = r->sim_work.extrapolated > 0;
    r->reduces = perf_row_is_sparse(row);
    r->wait = row->overlap[PERF_PROGRESS_WAIT];
    r->thread = row->overlap[PERF_PROGRESS_THREAD];
    r->wait_ratio = perf_overlap_ratio(&r->wait);
    r->thread_ratio = perf_overlap_ratio(&r->thread);
    r->wrong = row->wrong;
}
