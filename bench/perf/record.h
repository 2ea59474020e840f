/* SPDX-License-Identifier: BSD-3-Clause */
/* The record of a measured row, as reported in all formats. */
#ifndef PERF_RECORD_H
#define PERF_RECORD_H

#include <mpix_sparse.h>
#include <stdbool.h>

#include "bench/lib/case.h"
#include "bench/lib/schema.h"
#include "bench/lib/workload.h"
#include "bench/lib/stats.h"
#include "bench/perf/row.h"

/** All fields of the output. Texts are borrowed from the case and the row. */
struct perf_record {
    long long ranks, nodes, count, row_len, nnz_in_max, nnz_out, grain, columns;
    long long bytes_sent_max, bytes_received_max, header_bytes_sent_max, messages_sent_max,
        messages_relayed_max, hash_reruns_max, threads, wrong, iterations, between, seed, scale, gpus,
        block; /**< of a reduce_scatter; 0: none */
    double density, overlap, overlap_measured, skew, nnz_in_mean, gamma, push_imbalance, pull_imbalance,
        serial_share_max;
    double bytes_floor, predicted, median, min, p99, dense_median, allgather_median, memory_median,
        replay_median;
    double unequal, drift, late, jitter;
    double over_memory, over_replay; /**< median as a multiple of the two baselines */
    double cacheline;                /**< see struct perf_baselines */
    struct perf_sim_work sim_work;
    struct perf_overlap wait, thread;
    double wait_ratio, thread_ratio;
    double bytes;      /**< size of the dense vector */
    const char *label; /**< NULL: none */
    const char *collective, *interface, *buffers, *datatype, *op, *order, *index;
    const char *wire_values, *scheme, *wire_requested, *partition_requested, *columns_requested,
        *threads_requested, *ran, *push_wire, *pull_wire, *partition, *reason;
    char workload[PERF_WORKLOAD_MAX];
    const struct perf_phases *phases;
    bool in_place, plan, overlap_compute, replays, chosen, extrapolated;
    bool shows_threads; /**< true if the table has a column of threads */
    bool reduces;       /**< true if the row reduces, so that its result can be checked */
};

extern const struct perf_schema perf_record_schema;

/** Seconds of the baselines of a row; NaN if not measured. */
struct perf_baselines {
    double dense, allgather, memory, replay;
    double cacheline; /**< latency of a cache line; the longer one of before and after the case */
};

/** Fills in a record. Local. */
void perf_record_make(struct perf_record *record, const struct perf_case *c,
                      const struct perf_tensor_stats *stats, const struct perf_row *row,
                      struct perf_baselines baselines);

#endif
