/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of mpix_sparse_perf. Rank 0 reads it and broadcasts the result. */
#ifndef PERF_OPTIONS_H
#define PERF_OPTIONS_H

#include <stdbool.h>

#include "bench/lib/base.h"
#include "bench/lib/parse.h"
#include "scheme/engine/agreed.h"

/** All options. Plain data without pointers, because the struct is broadcast as bytes. */
struct perf_options {
    struct perf_counts count;  /**< empty: the study's own list */
    struct perf_reals density; /**< empty: the study's own list */
    long long row_len;         /**< basic values in an element */
    struct perf_names scheme, wire, partition, columns, threads;
    /** Requested settings of baselines and of `auto`. */
    char default_wire[PERF_NAME_MAX], default_partition[PERF_NAME_MAX], default_columns[PERF_NAME_MAX],
        default_threads[PERF_NAME_MAX];
    char grain[PERF_NAME_MAX];
    struct perf_choices type, op;
    int collective; /**< enum sar_collective_kind */
    int interface, buffers, index, values, order, format, study;
    bool in_place, plan, alone, message_replay, profile, overlap_compute, help, version, seed_given,
        threads_given, iterations_given;
    double overlap, skew;
    double unequal;                     /**< elements of rank 0, as a multiple of another rank's */
    double drift;                       /**< fraction of the vector, from one step to the next */
    double late, jitter;                /**< microseconds */
    double memory_bandwidth;            /**< GB/s of a node; 0: not given */
    struct perf_workload_spec workload; /**< source of the index sets */
    char label[PERF_PATH_MAX];          /**< empty: none */
    long long batch, iterations, warmup, between, check, seed, timeout, memory, parts, piece, every, budget,
        scale, gpus, block;
    char json[PERF_PATH_MAX];      /**< empty: none */
    char calibrate[PERF_PATH_MAX]; /**< empty: none */
    char costs[PERF_PATH_MAX];     /**< empty: none */
    char charge[PERF_PATH_MAX];    /**< empty: none */
};

enum perf_options_status { PERF_RUN, PERF_DONE, PERF_BAD_USAGE };

/** Reads the command line. Rank 0 prints the help, the version, or a sentence on an error. Collective. */
enum perf_options_status perf_options_read(int argc, char **argv, const struct perf_world *world,
                                           struct perf_options *options);

/** True if rows may differ in threads, or have a number that was asked for. */
bool perf_options_show_threads(const struct perf_options *options);

#endif
