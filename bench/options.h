/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line. Rank 0 reads it and hands the outcome to the others, so all ranks do the same. */
#ifndef PERF_OPTIONS_H
#define PERF_OPTIONS_H

#include <stdbool.h>

#include "base.h"
#include "parse.h"

/* Plain data without pointers: it is broadcast as bytes. */
struct perf_options {
    struct perf_counts count;  /* empty: left to the study */
    struct perf_reals density; /* likewise */
    long long row;
    struct perf_names scheme, wire, partition;
    char plain_wire[PERF_NAME_MAX], plain_partition[PERF_NAME_MAX]; /* of rows that nobody asked for */
    char grain[PERF_NAME_MAX];
    struct perf_choices type, op;
    int interface, buffers, index, values, order, format, study;
    bool in_place, alone, skeleton, profile, overlap_compute, help, version, seed_given;
    double overlap, skew;
    struct perf_content content; /* of the workload */
    char label[PERF_PATH_MAX];   /* empty: none */
    long long batch, iterations, warmup, between, check, seed, timeout, memory, parts, every, budget, scale;
    char json[PERF_PATH_MAX];      /* empty: none */
    char calibrate[PERF_PATH_MAX]; /* empty: none */
    char costs[PERF_PATH_MAX];     /* empty: none */
    char charge[PERF_PATH_MAX];    /* empty: none */
};

enum perf_verdict { PERF_GO_ON, PERF_DONE, PERF_BAD_USAGE };

/* Collective. Prints help, version or the sentence on what is wrong, as needed. */
enum perf_verdict perf_options_read(int argc, char **argv, const struct perf_world *world,
                                    struct perf_options *options);

#endif
